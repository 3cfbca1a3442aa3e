"""`self.request`: what a task can know of the message it is running for."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from taskmq.compat.app.scale import Scale

if TYPE_CHECKING:
    from taskmq.context import Context as EngineContext
    from taskmq.message import Message

__all__ = ("Context", "request_of")


class Context:
    """Attributes of one run. Those of a custom message header are there under the header's name.

    Without a message (a task called as a function) `called_directly` is True and `id` is None.
    """

    args: Any = None
    callbacks: Any = None
    called_directly = True
    chain: Any = None
    chord: Any = None
    correlation_id: str | None = None
    delivery_info: Any = None
    errbacks: Any = None
    eta: str | None = None
    expires: str | None = None
    group: str | None = None
    group_index: int | None = None
    headers: Any = None
    hostname: str | None = None
    id: str | None = None
    ignore_result = False
    is_eager = False
    kwargs: Any = None
    logfile: str | None = None
    loglevel: int | None = None
    origin: str | None = None
    parent_id: str | None = None
    properties: Any = None
    replaced_task_nesting = 0
    reply_to: str | None = None
    retries = 0
    root_id: str | None = None
    shadow: str | None = None
    stamped_headers: Any = None
    stamps: Any = None
    task: str | None = None
    taskset: str | None = None
    timelimit: Any = None
    utc: bool | None = None
    # Set once the body runs, so that a `__call__` that calls super() does not begin a second run.
    _protected = 0
    # What `retry(throw=False)` asked for; carried out when the body returns.
    _pending_retry: BaseException | None = None
    _engine: EngineContext | None = None
    #: The last state `update_state` gave this run, and its value.
    _own_state: tuple[str, Any] | None = None
    _children: list[Any] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.update(*args, **kwargs)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Set attributes from mappings and keywords."""
        for values in args:
            self.__dict__.update(values)
        self.__dict__.update(kwargs)

    def clear(self) -> None:
        """Forget everything that was set."""
        self.__dict__.clear()

    def get(self, key: str, default: Any = None) -> Any:
        """An attribute by name, or `default`."""
        return getattr(self, key, default)

    def __repr__(self) -> str:
        shown = {k: v for k, v in self.__dict__.items() if not k.startswith("_")}
        return f"<Context: {shown!r}>"

    @property
    def children(self) -> list[Any]:
        """The results of the tasks this run has published."""
        if self._children is None:
            self.__dict__["_children"] = []
        children: list[Any] = self.__dict__["_children"]
        return children

    @property
    def time_limit(self) -> float | None:
        """The hard limit in seconds."""
        return self.timelimit[0] if self.timelimit else None

    @property
    def soft_time_limit(self) -> float | None:
        """The soft limit in seconds."""
        return self.timelimit[1] if self.timelimit else None


def request_of(
    message: Message, args: Any, kwargs: Any, scale: Scale, *, worker: str = "", deliveries: int = 1
) -> Context:
    """The request of a message that a worker has taken."""
    follow = _follow(message)
    chord = follow.get("chord") or {}
    headers = dict(message.headers)
    return Context(
        headers,
        id=message.task_id,
        task=message.task,
        args=args,
        kwargs=kwargs,
        retries=message.retries,
        called_directly=False,
        hostname=worker or socket.gethostname(),
        origin=headers.get("origin"),
        parent_id=message.parent_id,
        root_id=message.root_id or message.task_id,
        correlation_id=message.task_id,
        eta=_iso(message.eta),
        expires=_iso(message.expires_at),
        timelimit=[message.time_limit, message.soft_time_limit],
        ignore_result=not message.store_result,
        headers=headers or None,
        callbacks=follow.get("callbacks"),
        errbacks=follow.get("errbacks"),
        chain=follow.get("chain"),
        chord=chord.get("body"),
        group=chord.get("key"),
        group_index=chord.get("index"),
        shadow=headers.get("shadow"),
        utc=True,
        delivery_info={
            "exchange": "",
            "routing_key": message.queue,
            "priority": scale.out(message.priority),
            "redelivered": deliveries > 1,
        },
        properties={
            "correlation_id": message.task_id,
            "content_type": message.content_type,
            "content_encoding": message.content_encoding,
            "priority": scale.out(message.priority),
        },
    )


def _follow(message: Message) -> Mapping[str, Any]:
    if not message.follow:
        return {}
    found = json.loads(message.follow)
    return found if isinstance(found, dict) else {}


def _iso(moment: float | None) -> str | None:
    if moment is None:
        return None
    return datetime.fromtimestamp(moment, timezone.utc).isoformat()
