"""Queues and lanes: names to numbers, cached, because they are never deleted.

What may change behind a cache (new lanes, pauses) raises `catalog.version`, which a reserve and a peek
read each time.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from typing import NamedTuple

from taskmq.transports.base import QueueShare

_LOOK = (
    "SELECT version, EXISTS(SELECT 1 FROM revoked), EXISTS(SELECT 1 FROM scheduled) FROM catalog"
)
# Sets of lanes remembered; a process asks for one or two.
_SETS = 64


class Lane(NamedTuple):
    """What has one head: a queue's plain messages, or those of one rate limit in it, booked or not."""

    id: int
    queue_id: int
    queue: str
    rate_key: str | None
    #: Whether its messages have booked a token; those without a booking are in its twin.
    booked: bool = False


class LaneSet(NamedTuple):
    """Lanes looked at together: their ids as the JSON a statement takes, and their rate keys."""

    lanes: tuple[Lane, ...]
    ids: str
    rate_keys: frozenset[str]

    @classmethod
    def of(cls, lanes: Iterable[Lane]) -> LaneSet:
        """These lanes."""
        chosen = tuple(lanes)
        return cls(
            chosen,
            json.dumps([lane.id for lane in chosen]),
            frozenset(lane.rate_key for lane in chosen if lane.rate_key is not None),
        )

    def only(self, wanted: Callable[[Lane], bool]) -> LaneSet:
        """Those that are wanted."""
        return LaneSet.of(lane for lane in self.lanes if wanted(lane))


NO_LANES = LaneSet((), "[]", frozenset())


class Catalog:
    """The queues and lanes of one file as this process knows them. Used only under the store's mutex
    or by one reader; a stale copy misses only what `refresh` brings."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything: a rollback took back what was created, or it is another file."""
        self._version = -1
        self._lanes: dict[int, Lane] = {}
        self._ids: dict[tuple[str, str | None, bool], int] = {}
        self._queues: dict[str, int] = {}
        self._of_queue: dict[str, list[Lane]] = {}
        self._paused: frozenset[str] = frozenset()
        self._sets: dict[tuple[QueueShare, ...], LaneSet] = {}

    # -- reading ----------------------------------------------------------------------------------

    def refresh(self, connection: sqlite3.Connection) -> tuple[bool, bool]:
        """Make lanes and pauses current; whether anything is revoked, and whether anything is scheduled,
        which the same look tells."""
        version, revocations, scheduled = connection.execute(_LOOK).fetchall()[0]
        if version != self._version:
            self._load(connection)
            self._version = version
        return bool(revocations), bool(scheduled)

    def _load(self, connection: sqlite3.Connection) -> None:
        queues = connection.execute("SELECT id, name, paused FROM queue").fetchall()
        lanes = connection.execute(
            "SELECT id, queue, rate_key, booked FROM lane ORDER BY id"
        ).fetchall()
        names = {number: name for number, name, _ in queues}
        self._queues = {name: number for number, name, _ in queues}
        self._paused = frozenset(name for _, name, paused in queues if paused)
        self._of_queue = {}
        self._sets = {}
        for number, queue, rate_key, booked in lanes:
            self._add(Lane(number, queue, names[queue], rate_key, bool(booked)))

    def _add(self, lane: Lane) -> None:
        self._lanes[lane.id] = lane
        self._ids[lane.queue, lane.rate_key, lane.booked] = lane.id
        self._of_queue.setdefault(lane.queue, []).append(lane)
        self._sets = {}

    def paused(self, queue: str) -> bool:
        """Whether nothing is reserved from this queue, as of the last `refresh`."""
        return queue in self._paused

    def lanes(self, queue: str) -> list[Lane]:
        """The lanes of a queue, the plain one among them; empty when nothing was ever in it."""
        return self._of_queue.get(queue, [])

    def lanes_of(self, queues: tuple[QueueShare, ...]) -> LaneSet:
        """The lanes of these queues that are not paused, in their order."""
        found = self._sets.get(queues)
        if found is None:
            found = LaneSet.of(
                lane
                for share in queues
                if share.name not in self._paused
                for lane in self.lanes(share.name)
            )
            if len(self._sets) >= _SETS:
                self._sets = {}
            self._sets[queues] = found
        return found

    def names(self) -> Iterable[str]:
        """Every queue."""
        return self._queues.keys()

    def queues_of(self, rate_key: str) -> set[str]:
        """The queues that messages of a rate limit were in."""
        return {lane.queue for lane in self._lanes.values() if lane.rate_key == rate_key}

    def lane(self, number: int) -> Lane:
        """A lane by its number, which must have been seen (`refresh`)."""
        return self._lanes[number]

    # -- writing, inside a transaction ------------------------------------------------------------

    def lane_id(
        self,
        connection: sqlite3.Connection,
        queue: str,
        rate_key: str | None,
        *,
        booked: bool = False,
    ) -> int:
        """The lane of a queue and rate key, made if there is none."""
        found = self._ids.get((queue, rate_key, booked))
        if found is not None:
            return found
        self.refresh(connection)
        found = self._ids.get((queue, rate_key, booked))
        if found is not None:
            return found
        queue_id = self.ensure_queue(connection, queue)
        number = connection.execute(
            "INSERT INTO lane(queue, rate_key, booked) VALUES (?, ?, ?)",
            (queue_id, rate_key, int(booked)),
        ).lastrowid
        assert number is not None
        self._add(Lane(number, queue_id, queue, rate_key, booked))
        if rate_key is not None and not booked:
            # Now, because a reader may look for it and could not make it.
            self.lane_id(connection, queue, rate_key, booked=True)
        self._raise_version(connection)
        return number

    def ensure_queue(self, connection: sqlite3.Connection, queue: str) -> int:
        """The number of a queue, made if there is none."""
        found = self._queues.get(queue)
        if found is None:
            self.refresh(connection)
            found = self._queues.get(queue)
        if found is None:
            found = connection.execute("INSERT INTO queue(name) VALUES (?)", (queue,)).lastrowid
            assert found is not None
            self._queues[queue] = found
            self._raise_version(connection)
        return found

    def set_paused(self, connection: sqlite3.Connection, queue: str, paused: bool) -> None:
        """Pause or resume a queue, made if there is none."""
        self.ensure_queue(connection, queue)
        connection.execute("UPDATE queue SET paused = ? WHERE name = ?", (int(paused), queue))
        self._raise_version(connection)

    def _raise_version(self, connection: sqlite3.Connection) -> None:
        # The cached copy is older than this now, so the next look loads it anew.
        connection.execute("UPDATE catalog SET version = version + 1")
