"""The queues a project declares, and which of them a message with a routing key belongs to.

TaskMQ has queues and no exchanges: what an exchange would do is worked out here, when a message is
submitted, from the declarations of `task_queues`. Direct and topic bindings are; a fanout (`Broadcast`)
is not yet, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from taskmq.compat.exceptions import ImproperlyConfigured, QueueNotFound
from taskmq.errors import nearest

__all__ = ("Queues", "DeclaredQueue")


class DeclaredQueue(NamedTuple):
    """One queue as the project declared it. `kind` is the type of its exchange."""

    name: str
    exchange: str = ""
    routing_key: str = ""
    kind: str = "direct"
    declared: Any = None

    def takes(self, exchange: str, routing_key: str) -> bool:
        """Whether a message sent to this exchange with this routing key would come to this queue."""
        if exchange and exchange not in (self.exchange, self.name):
            return False
        if self.kind == "topic":
            return topic_matches(self.routing_key, routing_key)
        return routing_key == self.routing_key


def topic_matches(pattern: str, routing_key: str) -> bool:
    """Whether a topic binding takes a key: `*` is one word, `#` any number of them."""
    return _words_match(pattern.split("."), routing_key.split(".") if routing_key else [])


def _words_match(pattern: list[str], words: list[str]) -> bool:
    if not pattern:
        return not words
    if pattern[0] == "#":
        return any(_words_match(pattern[1:], words[at:]) for at in range(len(words) + 1))
    return bool(words) and pattern[0] in ("*", words[0]) and _words_match(pattern[1:], words[1:])


class Queues(Mapping[str, DeclaredQueue]):
    """The queues of `task_queues` by name, and the default queue.

    Accepts names, kombu `Queue` objects (for their name, exchange and routing key), and the older
    mapping of names to options. Raises `ImproperlyConfigured` naming the entry otherwise.
    """

    def __init__(self, declared: Any, default: str, *, create_missing: bool = True) -> None:
        self.default = default
        self.create_missing = create_missing
        self._queues: dict[str, DeclaredQueue] = {}
        for entry in _entries(declared):
            queue = _declared(entry)
            self._queues[queue.name] = queue
        self._queues.setdefault(default, DeclaredQueue(default, default, default))

    def __getitem__(self, name: str) -> DeclaredQueue:
        return self._queues[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._queues)

    def __len__(self) -> int:
        return len(self._queues)

    @property
    def consume_from(self) -> Mapping[str, DeclaredQueue]:
        """The queues a worker consumes when `-Q` names none."""
        return dict(self._queues)

    def named(self, queue: Any) -> str:
        """The name of a queue given as a name or a kombu `Queue`.

        `QueueNotFound` for one that is not declared, while `task_create_missing_queues` is off.
        """
        name = queue if isinstance(queue, str) else getattr(queue, "name", None)
        if not isinstance(name, str) or not name:
            raise ImproperlyConfigured(f"queue: a name or a kombu Queue with one, got {queue!r}")
        if not self.create_missing and name not in self._queues:
            raise QueueNotFound(
                f"queue {name!r} is not in task_queues ({', '.join(self._queues)}) and "
                f"task_create_missing_queues is off.{nearest(name, self._queues)}"
            )
        return name

    def bound_to(self, exchange: Any, routing_key: Any) -> str:
        """The one queue that takes this routing key; `ImproperlyConfigured` for none or several."""
        source = exchange if isinstance(exchange, str) else getattr(exchange, "name", "") or ""
        key = str(routing_key or "")
        found = [queue.name for queue in self._queues.values() if queue.takes(source, key)]
        if len(found) == 1:
            return found[0]
        where = f"exchange {source!r}, routing key {key!r}" if source else f"routing key {key!r}"
        if not found:
            raise ImproperlyConfigured(
                f"no queue of task_queues is bound to {where}; name the queue with queue=, or declare "
                "one with this routing key"
            )
        raise ImproperlyConfigured(
            f"several queues are bound to {where}: {', '.join(found)}. Sending one message to several "
            "queues is not there yet; name one with queue="
        )


def _entries(declared: Any) -> Iterable[Any]:
    if not declared:
        return ()
    if isinstance(declared, str):
        return [part.strip() for part in declared.split(",") if part.strip()]
    if isinstance(declared, Mapping):
        return [(name, options) for name, options in declared.items()]
    return list(declared)


def _declared(entry: Any) -> DeclaredQueue:
    if isinstance(entry, str) and entry:
        return DeclaredQueue(entry, entry, entry)
    if isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str):
        name, options = entry
        if not isinstance(options, Mapping):
            options = {}
        return DeclaredQueue(
            name,
            str(options.get("exchange") or name),
            str(options.get("routing_key") or options.get("binding_key") or name),
            str(options.get("exchange_type") or "direct"),
        )
    name = getattr(entry, "name", None)
    if not isinstance(name, str) or not name:
        raise ImproperlyConfigured(
            f"task_queues: queue names, kombu Queue objects or a mapping of names, got {entry!r}"
        )
    exchange = getattr(entry, "exchange", None)
    kind = str(getattr(exchange, "type", "") or "direct")
    if kind not in ("direct", "topic"):
        raise ImproperlyConfigured(
            f"task_queues: queue {name!r} has an exchange of type {kind!r}; direct and topic work, one "
            "message for several queues does not yet"
        )
    return DeclaredQueue(
        name,
        str(getattr(exchange, "name", "") or name),
        str(getattr(entry, "routing_key", "") or name),
        kind,
        entry,
    )
