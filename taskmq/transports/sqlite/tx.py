"""What every part of the engine is given: one transaction, the time it happens at, and its limits."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

from taskmq.clock import Clock
from taskmq.message import Message
from taskmq.policy.endings import Circumstances
from taskmq.policy.following import Consequence
from taskmq.transports.base import Settings
from taskmq.transports.sqlite.catalog import Catalog, Lane
from taskmq.transports.sqlite.mending import Malformed
from taskmq.transports.sqlite.rows import salvage, to_message
from taskmq.transports.sqlite.store import Store
from taskmq.transports.sqlite.times import micros

T = TypeVar("T")


class Tx:
    """One transaction, or one moment of reading.

    The clock is read when it begins, inside the lock: times in the file follow the order of commits.
    `time` is in seconds, `now` in microseconds. `more` says that a cap on the work was met. `followers`
    are the consequences of endings still to be applied. `any_scheduled` says, as of the last `refresh`,
    whether a look for what is due is worth it.
    """

    __slots__ = (
        "_any_revoked",
        "any_scheduled",
        "catalog",
        "connection",
        "execute",
        "executemany",
        "followers",
        "more",
        "now",
        "random",
        "settings",
        "time",
    )

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        time: float,
        settings: Settings,
        catalog: Catalog,
        random: Random,
    ) -> None:
        self.connection = connection
        self.execute = connection.execute
        self.executemany = connection.executemany
        self.time = time
        self.now = micros(time)
        self.settings = settings
        self.catalog = catalog
        self.random = random
        self.more = False
        self.followers: list[Consequence] = []
        self._any_revoked: bool | None = None
        self.any_scheduled = True

    def row(self, sql: str, parameters: Any = ()) -> Any:
        """The first row, or None. Fetches all: an open cursor would pin the log."""
        rows = self.execute(sql, parameters).fetchall()
        return rows[0] if rows else None

    def refresh(self) -> None:
        """Make the catalog current: before pauses count, and before lanes are listed."""
        self._any_revoked, self.any_scheduled = self.catalog.refresh(self.connection)

    def lane(self, number: int) -> Lane:
        """A lane by its number, also one that another process made meanwhile."""
        try:
            return self.catalog.lane(number)
        except KeyError:
            self.refresh()
            return self.catalog.lane(number)

    def names_of(self, number: int) -> tuple[str, str | None]:
        """Queue and rate key of a lane."""
        lane = self.lane(number)
        return lane.queue, lane.rate_key

    def booked_lane(self, number: int) -> int:
        """Where a message of a rate-limited lane waits once it has booked its token."""
        lane = self.lane(number)
        if lane.rate_key is None or lane.booked:
            return number
        return self.catalog.lane_id(self.connection, lane.queue, lane.rate_key, booked=True)

    def message(self, columns: Any) -> Message:
        """The message of a row of `rows.MESSAGE_COLUMNS`; of a malformed one what is left of it."""
        try:
            return to_message(columns, self.names_of)
        except Malformed:
            return salvage(columns, self.names_of)

    @property
    def any_revoked(self) -> bool:
        """Whether a look into the revocations is worth it; nearly always there are none."""
        if self._any_revoked is None:
            self._any_revoked = self.row("SELECT 1 FROM revoked LIMIT 1") is not None
        return self._any_revoked

    def revocation(self, task_id: str) -> str | None:
        """The reason a task was revoked for, None when it was not."""
        if not self.any_revoked:
            return None
        found = self.row("SELECT reason FROM revoked WHERE task_id = ?", (task_id,))
        return None if found is None else str(found[0])

    def ending(self) -> Circumstances:
        """The arguments every function of `policy.endings` takes."""
        return Circumstances(now=self.time, result_expires=self.settings.result_expires)


class Engine:
    """The store with what a transaction needs besides the connection."""

    def __init__(self, store: Store, settings: Settings, clock: Clock, random: Random) -> None:
        self.store = store
        self.settings = settings
        self.clock = clock
        self.random = random
        self._catalog = Catalog()
        self._reading = Catalog()
        store.on_rollback = self._catalog.clear
        store.on_reopen = self._forget

    def _forget(self) -> None:
        self._catalog.clear()
        self._reading.clear()

    def _tx(self, connection: sqlite3.Connection, catalog: Catalog) -> Tx:
        return Tx(
            connection,
            time=self.clock.now(),
            settings=self.settings,
            catalog=catalog,
            random=self.random,
        )

    def write(self, work: Callable[[Tx], T], *, room: bool = False) -> T:
        """`Store.write` with a `Tx`."""
        return self.store.write(lambda c: work(self._tx(c, self._catalog)), room=room)

    def submit(self, work: Callable[[Tx], T]) -> T:
        """`Store.submit` with a `Tx`."""
        return self.store.submit(lambda c: work(self._tx(c, self._catalog)))

    def glance(self, work: Callable[[Tx], T]) -> T:
        """`Store.glance` with a `Tx` that must only read."""
        return self.store.glance(lambda c: work(self._tx(c, self._catalog)))

    def read(self, work: Callable[[Tx], T]) -> T:
        """`Store.read` with a `Tx` that must only read."""
        return self.store.read(lambda c: self._read(c, work))

    def _read(self, connection: sqlite3.Connection, work: Callable[[Tx], T]) -> T:
        try:
            # One snapshot: rows of several tables belong together. The store ends it.
            connection.execute("BEGIN")
            return work(self._tx(connection, self._reading))
        except BaseException:
            # It may have been interrupted while it loaded.
            self._reading.clear()
            raise
