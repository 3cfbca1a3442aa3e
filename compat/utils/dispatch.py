"""Signals that any part of a project can connect to, in Celery's manner.

Receivers are called with keywords only, are held weakly unless `weak=False`, and one that raises is
logged and never stops the sender. Unlike Celery, connecting to a signal that is never sent here is
said in a warning instead of passing in silence.
"""

from __future__ import annotations

import logging
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from taskmq.compat.exceptions import CeleryWarning

__all__ = ("Signal",)

log = logging.getLogger("taskmq.compat.signals")


class _Receiver(NamedTuple):
    key: tuple[Any, Any]
    sender: Any
    find: Callable[[], Any]


def _same_sender(wanted: Any, sender: Any) -> bool:
    if wanted is None or wanted is sender:
        return True
    # A receiver may name a task where the sender is its name, and the other way round.
    wanted_name, sender_name = getattr(wanted, "name", wanted), getattr(sender, "name", sender)
    return isinstance(wanted_name, str) and wanted_name == sender_name


class Signal:
    """One signal. `never_sent` says why it is never sent here, for the warning at `connect`."""

    def __init__(
        self,
        providing_args: Any = None,
        use_caching: bool = False,
        name: str | None = None,
        *,
        never_sent: str = "",
    ) -> None:
        self.name = name
        self.providing_args = set(providing_args or ())
        # Looking receivers up is a walk over a short list; there is nothing to cache.
        self.use_caching = use_caching
        self.never_sent = never_sent
        self._receivers: list[_Receiver] = []
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<Signal: {self.name} providing_args={sorted(self.providing_args)!r}>"

    def __bool__(self) -> bool:
        """Whether anybody is connected."""
        return bool(self._receivers)

    def connect(self, *args: Any, **kwargs: Any) -> Any:
        """Add a receiver: `signal.connect(fn)`, `@signal.connect`, `@signal.connect(sender=task)`.

        `sender` restricts it to one sender, `weak=False` keeps a receiver that nobody else holds,
        `dispatch_uid` makes connecting again a no-op, `retry=True` calls it again after an error.
        """
        if args and callable(args[0]):
            return self._connect(args[0], *args[1:], **kwargs)

        def decorate(receiver: Any) -> Any:
            return self._connect(receiver, *args, **kwargs)

        return decorate

    def _connect(
        self,
        receiver: Any,
        sender: Any = None,
        weak: bool = True,
        dispatch_uid: Any = None,
        retry: bool = False,
    ) -> Any:
        if not callable(receiver):
            raise TypeError(f"signal receivers are callable, got {receiver!r}")
        if self.never_sent:
            warnings.warn(
                f"signal {self.name} is never sent by TaskMQ: {self.never_sent}",
                CeleryWarning,
                stacklevel=4,
            )
        call = _retrying(receiver) if retry else receiver
        if weak and not retry:
            find: Callable[[], Any] = _weakly(receiver)
        else:

            def find() -> Any:
                return call

        key = (_identity(dispatch_uid or receiver), _identity(sender))
        with self._lock:
            if all(known.key != key for known in self._receivers):
                self._receivers.append(_Receiver(key, sender, find))
        return receiver

    def disconnect(
        self,
        receiver: Any = None,
        sender: Any = None,
        weak: bool | None = None,
        dispatch_uid: Any = None,
    ) -> bool:
        """Remove a receiver, given as it was connected; False when it was not. `weak` is not needed."""
        key = (_identity(dispatch_uid or receiver), _identity(sender))
        with self._lock:
            before = len(self._receivers)
            self._receivers = [known for known in self._receivers if known.key != key]
            return len(self._receivers) != before

    def has_listeners(self, sender: Any = None) -> bool:
        """Whether a receiver would be called for this sender."""
        return bool(self._live_receivers(sender))

    @property
    def receivers(self) -> list[tuple[Any, Any]]:
        """(key, receiver) of everything connected, as Celery shows it."""
        return [(known.key, known.find()) for known in self._receivers]

    def send(self, sender: Any, **named: Any) -> list[tuple[Any, Any]]:
        """Call the receivers with `signal`, `sender` and these; return (receiver, answer or error)."""
        answers: list[tuple[Any, Any]] = []
        if not self._receivers:
            return answers
        for receiver in self._live_receivers(sender):
            try:
                answer = receiver(signal=self, sender=sender, **named)
            except Exception as exc:
                log.exception("signal handler %r of %s raised %r", receiver, self.name, exc)
                answers.append((receiver, exc))
            else:
                answers.append((receiver, answer))
        return answers

    send_robust = send

    def _live_receivers(self, sender: Any) -> list[Any]:
        live, dead = [], []
        for known in self._receivers:
            receiver = known.find()
            if receiver is None:
                dead.append(known)
            elif _same_sender(known.sender, sender):
                live.append(receiver)
        if dead:
            with self._lock:
                self._receivers = [known for known in self._receivers if known not in dead]
        return live


def _identity(value: Any) -> Any:
    if value is None or isinstance(value, (str, int)):
        return value
    if hasattr(value, "__func__"):
        return id(value.__self__), id(value.__func__)
    name = getattr(value, "name", None)
    # A task and the stand-in for it are one sender.
    return name if isinstance(name, str) else id(value)


def _weakly(receiver: Any) -> Callable[[], Any]:
    if hasattr(receiver, "__func__") and hasattr(receiver, "__self__"):
        return weakref.WeakMethod(receiver)
    try:
        return weakref.ref(receiver)
    except TypeError:
        return lambda: receiver


def _retrying(receiver: Any, attempts: int = 3) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        for _ in range(attempts - 1):
            try:
                return receiver(*args, **kwargs)
            except Exception:
                log.exception("signal handler %r raised; it is called again", receiver)
        return receiver(*args, **kwargs)

    return call
