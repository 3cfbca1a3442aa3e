"""The coordinator: one loop that settles, yields, reserves and dispatches. It runs no user code.

    poll the pool → outcomes → yield if something more urgent waits → one turn: settle, start, reserve →
    dispatch what started → renew leases → commands, heartbeat, duties, events → wait

`step` is one turn of the loop without waiting, so that tests drive the real thing with a clock of their
own; `taskmq.worker.loop` waits between steps. One thread at a time drives it (`taskmq.worker.baton` where
there are two); only `stop` may come from others.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from taskmq import events as kinds
from taskmq.bell import Bell, readable
from taskmq.events import EventLog
from taskmq.failpoints import Failpoint, failpoint
from taskmq.message import Delivery
from taskmq.pools.base import Pool
from taskmq.transports.base import Outcome, ReserveRequest, Transport, Turn, Verb
from taskmq.worker.chores import Chores
from taskmq.worker.dispatch import Dispatcher
from taskmq.worker.exits import EXIT_FAILED, EXIT_NO_CHILDREN, EXIT_OK
from taskmq.worker.holding import Holding
from taskmq.worker.leases import Renewal
from taskmq.worker.link import Link
from taskmq.worker.outbound import Outbound
from taskmq.worker.reporting import Reporter
from taskmq.worker.reserving import Reserving, make_room
from taskmq.worker.rules import Rules
from taskmq.worker.signals import DRAIN_SIGNALS, STOP_SIGNALS
from taskmq.worker.stopping import SETTLE_GRACE, Ladder, Stage, stopping

if TYPE_CHECKING:
    from taskmq.app import App

log = logging.getLogger("taskmq.worker")


# A loop that never waits looks for signals so often (seconds): a look costs as much as a statement.
_LISTEN_EVERY = 0.01


class Coordinator:
    """One worker over one pool and one transport."""

    def __init__(
        self,
        app: App,
        pool: Pool,
        rules: Rules,
        *,
        control: bool = True,
        heartbeat: bool = True,
        maintenance: bool = True,
    ) -> None:
        self.app = app
        self.pool = pool
        self.rules = rules
        self.clock = app.clock
        self.transport: Transport = app.transport
        self.bell = Bell()
        self.exit_code = EXIT_OK
        # Whether the last step left something that need not be waited for.
        self.again = False
        # Whether the bell may have rung since it was last listened to; the loop's wait says so.
        self.heard = True
        self._listen_at = 0.0
        self._closed = False
        # Called once when draining begins.
        self.on_draining: Callable[[], object] | None = None
        self.held = Holding()
        self.events = EventLog(clock=self.clock, worker=rules.name, on=rules.events)
        self.reporter = Reporter(self.events)
        self.outbound = Outbound(app, clock=self.clock)
        self.link = Link(
            self.transport, clock=self.clock, random=app.random, watchdog=rules.watchdog
        )
        self.ladder = Ladder(rules.drain_timeout, rules.lease)
        self.renewal = Renewal(rules.lease, self.clock.monotonic())
        self.started_at = self.last_poll_at = self.clock.now()
        self._reserving = Reserving(rules, self.held)
        self._dispatcher = Dispatcher(app, pool, rules, self.held, self.outbound, self.reporter)
        self.chores = Chores(self, control=control, heartbeat=heartbeat, maintenance=maintenance)

    @property
    def stage(self) -> Stage:
        """Whether it works, drains, or only settles."""
        return self.ladder.stage

    def open(self) -> None:
        """Start the pool and come online, so that commands find this worker before its first task runs."""
        self.pool.start()
        self.events.add(kinds.WORKER_ONLINE, queues=[q.name for q in self.rules.queues])
        self.chores.tell()

    def stop(self, reason: str, *, at_once: bool = False) -> None:
        """Drain and stop; asked a second time, or `at_once`, stop now. From any thread."""
        self.ladder.ask(reason, at_once=at_once)
        self.bell.ring()

    def step(self) -> bool:
        """One turn of the loop, without waiting; whether anything happened."""
        now = self.clock.monotonic()
        if self.heard or now >= self._listen_at:
            self._take_signals(now)
        if self.ladder.take(now):
            self._begin_draining(now)
        happened = self._dispatcher.poll()
        if self.renewal.due(now):
            self._renew_leases(now)
        self.again = False
        if self.stage is not Stage.RUNNING:
            self._drain(now)
        elif self.held.unstarted and self.link.ready(now):
            self.again = make_room(
                self.transport, self.link, self.rules, self.held, self.reporter, self.app.random
            )
        happened = self._turn(now) or self.again or happened
        if self.chores.run(now):
            self.again = True
        self._check(now)
        return happened

    def close(self) -> None:
        """Stop the pool and leave; what is still held comes back when its lease ends. Once is enough."""
        if self._closed:
            return
        self._closed = True
        self.pool.stop(hand_back=True)
        self.events.add(kinds.WORKER_OFFLINE, reason=self.ladder.reason)
        if self.link.fatal is None:
            self.chores.leave()
        self.bell.close()

    def keep(self) -> None:
        """Renew the leases of what is still to be handed back, when it is time."""
        now = self.clock.monotonic()
        if self._dispatcher.left and self.renewal.due(now) and self.link.ready(now):
            self._renew_leases(now)

    def hand_back(self) -> None:
        """Settle what `close` left: messages whose runs the pool could not stop.

        The very last thing a worker does, for another one may start them at once.
        """
        left, self._dispatcher.left = self._dispatcher.left, []
        for outcome in left:
            self.outbound.add(outcome)
        end_by = self.clock.monotonic() + SETTLE_GRACE
        while self.outbound and self.link.fatal is None:
            now = self.clock.monotonic()
            if now >= end_by:
                log.error("%d messages could not be handed back", len(self.outbound))
                return
            if not self._turn(now) and self.outbound:
                readable((), max(0.0, min(self.link.retry_at, end_by) - now))

    def stats(self) -> dict[str, Any]:
        """Counts since the start, and what is held."""
        return {
            "state": self.stage.value,
            "pool": self.pool.name,
            "pids": self.pool.pids(),
            "slots": self.rules.slots,
            "running": len(self.held.running),
            "unstarted": self.held.unstarted,
            "started_at": self.started_at,
            "counts": dict(self.reporter.counts),
        }

    # -- the turn ---------------------------------------------------------------------------------

    def reserving(self) -> bool:
        """Whether the next turn would ask for messages."""
        return self._request() is not None

    def _request(self) -> ReserveRequest | None:
        if self.stage is not Stage.RUNNING or not self.pool.up():
            return None
        # A full store takes what is done first: that needs no room, or gives some back.
        if self.link.full and self.outbound:
            return None
        return self._reserving.request(
            self.pool.free(), prefetch=not self.chores.sharing.others_idle
        )

    def _turn(self, now: float) -> bool:
        """Settle what ended, start what waited, reserve for what is free: one transaction."""
        if not self.link.ready(now):
            return False
        request = self._request()
        if request is None and not self.outbound.due(now):
            return False
        outcomes = self.link.attempt("storing results", self.outbound.take)
        if outcomes is None:
            return False
        if outcomes:
            failpoint(Failpoint.BEFORE_SETTLE)
        ask = partial(self.transport.turn, outcomes, request)
        turn = self.link.attempt("a turn", ask, poll=True)
        if turn is None:
            return False
        if outcomes:
            failpoint(Failpoint.AFTER_SETTLE)
        if turn.deliveries:
            failpoint(Failpoint.AFTER_CLAIM)
        self.outbound.settled()
        self.last_poll_at = self.clock.now()
        if turn.more or turn.refused:
            self.again = True
        if turn.deliveries and self.clock.monotonic() - now > self.rules.lease / 3:
            turn = self._still_ours(turn)
        self._apply(turn)
        return bool(outcomes or turn.deliveries or turn.refused)

    def _still_ours(self, turn: Turn) -> Turn:
        """Of a turn that took long (this process was stopped, say): what may be started still.

        The leases run from the commit; where one ended meanwhile, somebody else may have the message (I2).
        """
        renew = partial(self.transport.extend, turn.deliveries, self.rules.lease)
        lost = self.link.attempt("renewing leases", renew, poll=True)
        # Without an answer none is started: those that are ours come back when their leases end.
        gone = turn.deliveries if lost is None else lost
        for delivery in gone:
            self.held.drop(delivery)
            self.reporter.lease_lost(delivery, "before it started")
        kept = {(d.seq, d.token) for d in turn.deliveries} - {(d.seq, d.token) for d in gone}
        left = tuple(d for d in turn.deliveries if (d.seq, d.token) in kept)
        return replace(turn, deliveries=left)

    def _apply(self, turn: Turn) -> None:
        for delivery in turn.lost:
            self.reporter.lease_lost(delivery, "before its outcome was settled")
            self.app.hooks.task_lost.send(delivery)
        for delivery in turn.refused:
            self.held.drop(delivery)
        received = self.app.hooks.task_received
        for delivery in turn.deliveries:
            if received:
                received.send(delivery)
            self.reporter.received(delivery)
            if delivery.started:
                self._dispatcher.begin(delivery)
            else:
                self.held.hold(delivery)

    # -- leases -----------------------------------------------------------------------------------

    def _renew_leases(self, now: float) -> None:
        leased = self.held.leased()
        leased += [outcome.delivery for outcome in self._dispatcher.left]
        if leased:
            failpoint(Failpoint.BEFORE_EXTEND)
            renew = partial(self.transport.extend, leased, self.rules.lease)
            lost = self.link.attempt("renewing leases", renew, poll=True)
            if lost is None:
                self.renewal.failed(now)
                return
            if lost:
                self._lose(lost)
            # A worker with all slots taken takes no turn for long; that it renews shows that it is well.
            self.last_poll_at = self.clock.now()
        self.renewal.done(now)

    def _lose(self, lost: tuple[Delivery, ...]) -> None:
        gone = {(d.seq, d.token) for d in lost}
        for running in self.held.running.values():
            if not running.lost and (running.delivery.seq, running.delivery.token) in gone:
                running.lost = True
                self.pool.cancel(running.number, "its lease was lost")
                self.reporter.lease_lost(running.delivery, "while it ran")
                self.app.hooks.task_lost.send(running.delivery)
        self._dispatcher.left = [
            o for o in self._dispatcher.left if (o.delivery.seq, o.delivery.token) not in gone
        ]
        for delivery in list(self.held.waiting()):
            if (delivery.seq, delivery.token) in gone:
                self.held.drop(delivery)
                self.reporter.lease_lost(delivery, "before it started")

    # -- stopping ---------------------------------------------------------------------------------

    def _take_signals(self, now: float) -> None:
        self.heard = False
        self._listen_at = now + _LISTEN_EVERY
        for number in self.bell.drain():
            if number in STOP_SIGNALS or number in DRAIN_SIGNALS:
                self.ladder.ask(signal.Signals(number).name, at_once=number in STOP_SIGNALS)

    def _begin_draining(self, now: float) -> None:
        log.info(
            "%s",
            stopping(
                self.ladder.reason,
                running=len(self.held.running),
                unstarted=self.held.unstarted,
                left=self.ladder.left(now),
            ),
            extra={"event": "worker.draining"},
        )
        if self.held.unstarted:
            failpoint(Failpoint.BEFORE_RELEASE)
        for delivery in self.held.take_waiting():
            self.outbound.add(Outcome(delivery=delivery, verb=Verb.RELEASE))
        self.chores.tell()
        if self.on_draining is not None:
            self.on_draining()

    def _drain(self, now: float) -> None:
        if self.stage is not Stage.DRAINING:
            return
        if not self.held.running:
            self.ladder.end(now, hurried=False)
        elif self.ladder.late(now):
            running = len(self.held.running)
            log.warning(
                "%s and %s stopped now (%s)",
                "1 task still runs" if running == 1 else f"{running} tasks still run",
                "is" if running == 1 else "are",
                "asked again" if self.ladder.hurried else "the time to drain is over",
                extra={"event": "worker.deadline"},
            )
            self.pool.stop(hand_back=True)
            self._dispatcher.poll()
            self.ladder.end(now, hurried=True)

    def _check(self, now: float) -> None:
        """Whether the loop ends here."""
        if self.link.fatal is not None:
            self.exit_code = self.link.fatal
            self.ladder.stopped()
        elif self.stage is Stage.ENDING and not self.outbound:
            self.ladder.stopped()
        elif self.stage is Stage.ENDING and self.ladder.late(now):
            log.error(
                "%d %s could not be settled",
                len(self.outbound),
                "outcome" if len(self.outbound) == 1 else "outcomes",
            )
            self.exit_code = EXIT_FAILED
            self.ladder.stopped()
        elif self.stage is Stage.RUNNING and self.pool.broken() is not None:
            reason = str(self.pool.broken())
            log.critical("%s", reason, extra={"event": "pool.broken"})
            self.exit_code = EXIT_NO_CHILDREN
            self.ladder.ask(reason)
            self.again = True
