"""The seam's verbs on SQLite: each one transaction, or a look without a lock (DESIGN §6)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from taskmq.clock import Clock, SystemClock
from taskmq.coordination.base import Coordination
from taskmq.errors import ConfigError, TransportError, TransportMoved
from taskmq.failpoints import Failpoint, failpoint
from taskmq.message import Delivery, Message
from taskmq.policy.aging import Aging
from taskmq.policy.bands import Window
from taskmq.policy.sizes import check_messages
from taskmq.results.base import ResultStore
from taskmq.transports.base import (
    ALL_BANDS,
    Capabilities,
    Outcome,
    QueueShare,
    ReserveRequest,
    Settings,
    Started,
    Transport,
    Turn,
)
from taskmq.transports.operators import Operators
from taskmq.transports.sqlite import leases
from taskmq.transports.sqlite.claim import Claim, nothing_to_take
from taskmq.transports.sqlite.connect import affected_version
from taskmq.transports.sqlite.consequences import apply_followers
from taskmq.transports.sqlite.coordination import SQLiteCoordination
from taskmq.transports.sqlite.due import next_due
from taskmq.transports.sqlite.operators import SQLiteOperators
from taskmq.transports.sqlite.options import SQLiteOptions
from taskmq.transports.sqlite.paths import resolve_path
from taskmq.transports.sqlite.peek import peek
from taskmq.transports.sqlite.results import SQLiteResults
from taskmq.transports.sqlite.rows import encode
from taskmq.transports.sqlite.settle import settle_apart, settle_together
from taskmq.transports.sqlite.store import Store
from taskmq.transports.sqlite.submit import submit
from taskmq.transports.sqlite.tx import Engine, Tx
from taskmq.transports.sqlite.waiter import Waiter

T = TypeVar("T")


class SQLiteTransport(Transport):
    """Messages, results and coordination in one file that every process of one machine may share.

    `location` is a path, relative to `$TASKMQ_HOME`, `base_dir` or the current directory. Raises
    `ConfigError` for a place no database should be in.
    """

    name = "sqlite"
    capabilities = Capabilities(
        keeps_place=True,
        exact_peek=True,
        atomic_turn=True,
        leases=True,
        shared_limits=True,
        shared_results=True,
        persistent=True,
        processes=True,
    )

    def __init__(
        self,
        location: str | os.PathLike[str],
        settings: Settings | None = None,
        *,
        clock: Clock | None = None,
        random: Random | None = None,
        options: SQLiteOptions | None = None,
        base_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        text = os.fspath(location)
        if text.startswith("sqlite:"):
            raise ConfigError(f"SQLiteTransport takes a path; use open_transport for {text!r}")
        self.path = resolve_path(text, base_dir)
        self.clock = clock or SystemClock()
        self._settings = settings or Settings()
        self.looks_every = self._settings.poll_interval
        self._store = Store(self.path, options or SQLiteOptions(), random or Random())
        self._engine = Engine(self._store, self._settings, self.clock, random or Random())
        self._waiter = Waiter(self._store)
        self._results = SQLiteResults(self._engine, self._waiter)
        self._operators = SQLiteOperators(self._engine)
        self._coordination = SQLiteCoordination(self._engine)

    # -- life -------------------------------------------------------------------------------------

    def open(self) -> None:
        self._store.open()

    def close(self) -> None:
        self._waiter.close()
        self._store.close()

    def describe(self) -> str:
        return str(self.path)

    @property
    def created(self) -> bool:
        """Whether this object made the file: the banner says so, for it is often the wrong directory."""
        return self._store.created

    def notes(self) -> tuple[str, ...]:
        made = "the file was not there and has just been made" if self.created else None
        notes = (made, affected_version(), self._short_lease())
        return tuple(note for note in notes if note is not None)

    def _short_lease(self) -> str | None:
        wait, lease = self._store.options.busy_timeout, self._settings.lease
        if wait * 3 <= lease:
            return None
        return (
            f"the lease of {lease:g} s is shorter than three times the {wait:g} s a write waits for other "
            "programs (busy_timeout): while one keeps the file locked, leases may end before they are renewed"
        )

    # -- producers --------------------------------------------------------------------------------

    def submit(self, messages: Sequence[Message]) -> None:
        if not messages:
            return
        check_messages(messages, self._settings.max_body)
        encoded = [encode(message) for message in messages]

        def work(tx: Tx) -> None:
            submit(tx, encoded)
            apply_followers(tx)
            failpoint(Failpoint.IN_SUBMIT)

        self._engine.submit(work)
        failpoint(Failpoint.AFTER_SUBMIT)

    # -- workers ----------------------------------------------------------------------------------

    def turn(self, outcomes: Sequence[Outcome], request: ReserveRequest | None) -> Turn:
        if not outcomes and (request is None or self._idle(request)):
            return Turn()

        settling = settle_together

        def work(tx: Tx) -> Turn:
            lost = settling(tx, outcomes)
            if request is None or not (request.slots or request.room):
                return Turn(lost=tuple(lost))
            claim = Claim(tx, request)
            claim.run()
            if claim.deliveries:
                self._waiter.found_work()
            apply_followers(tx)
            return Turn(
                lost=tuple(lost),
                deliveries=tuple(claim.deliveries),
                refused=tuple(claim.refused),
                more=tx.more,
            )

        def write() -> Turn:
            return self._engine.write(work, room=bool(outcomes))

        try:
            return self._here(write)
        except Exception as exc:
            # One outcome was lost, or cannot be stored, and took the transaction with it; now each by itself.
            # A bare TransportError is what SQLite says of a value; its subclasses concern the whole store.
            if not outcomes or (
                isinstance(exc, TransportError) and type(exc) is not TransportError
            ):
                raise
            settling = settle_apart
            return self._here(write)

    def _idle(self, request: ReserveRequest) -> bool:
        return self._here(lambda: self._engine.glance(lambda tx: nothing_to_take(tx, request)))

    def _here(self, call: Callable[[], T]) -> T:
        """For a worker: when the file was replaced go on, once, with the one that is there now."""
        try:
            return call()
        except TransportMoved:
            return call()

    def start(self, deliveries: Sequence[Delivery]) -> Started:
        if not deliveries:
            return Started()

        def work(tx: Tx) -> Started:
            started = leases.start(tx, deliveries)
            apply_followers(tx)
            return started

        return self._engine.write(work, room=True)

    def peek_max_priority(
        self,
        queues: Sequence[QueueShare],
        *,
        window: Window = ALL_BANDS,
        aging: Aging | None = None,
    ) -> int | None:
        return self._engine.glance(lambda tx: peek(tx, queues, window, aging))

    def yield_reservation(self, delivery: Delivery, *, delay: float) -> bool:
        def work(tx: Tx) -> bool:
            yielded = leases.yield_back(tx, delivery, delay)
            apply_followers(tx)
            return yielded

        return self._engine.write(work, room=True)

    def extend(self, deliveries: Sequence[Delivery], lease: float) -> tuple[Delivery, ...]:
        if not deliveries:
            return ()
        return self._engine.write(lambda tx: leases.extend(tx, deliveries, lease), room=True)

    def wait(self, timeout: float, fds: Sequence[int] = ()) -> None:
        self._waiter.wait(timeout, fds, every=self.looks_every)

    def next_due(self, queues: Sequence[QueueShare]) -> float | None:
        def work(tx: Tx) -> float | None:
            tx.refresh()
            lanes = [lane.id for share in queues for lane in tx.catalog.lanes(share.name)]
            return next_due(tx, lanes)

        return self._engine.glance(work)

    # -- the other seams --------------------------------------------------------------------------

    @property
    def operators(self) -> Operators:
        return self._operators

    @property
    def coordination(self) -> Coordination:
        return self._coordination

    @property
    def results(self) -> ResultStore:
        return self._results
