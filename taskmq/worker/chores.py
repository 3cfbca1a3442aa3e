"""What a worker does besides running tasks: commands, its row, sharing, duties, events. Each in its time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from taskmq import events as kinds
from taskmq.maintenance import Maintenance
from taskmq.transports.base import Outcome, Verb
from taskmq.worker.control import answer
from taskmq.worker.heartbeat import Heartbeat
from taskmq.worker.sharing import SEEN_WITHIN, Sharing
from taskmq.worker.stopping import Stage

if TYPE_CHECKING:
    from taskmq.worker.coordinator import Coordinator

# Commands are looked for this often: a worker whose slots are all taken does not poll otherwise.
CONTROL_INTERVAL = 0.25


class Chores:
    """The chores of one coordinator. Times are monotonic."""

    def __init__(
        self, worker: Coordinator, *, control: bool, heartbeat: bool, maintenance: bool
    ) -> None:
        self._worker = worker
        rules, clock = worker.rules, worker.clock
        self.sharing = Sharing(rules)
        control = control and worker.app.config.remote_control
        self._control_at: float | None = clock.monotonic() if control else None
        self._control_interval = max(CONTROL_INTERVAL, rules.poll_interval)
        self._heartbeat: Heartbeat | None = None
        if heartbeat:
            tasks = tuple(sorted(worker.app.registry))
            self._heartbeat = Heartbeat(rules, clock=clock, tasks=tasks)
        self._maintenance: Maintenance | None = None
        if maintenance:
            self._maintenance = Maintenance(
                worker.transport,
                clock=clock,
                holder=rules.name,
                lease=rules.lease,
                events=worker.events,
                depth_interval=rules.depth_interval,
                starvation_after=rules.starvation_after,
            )
        # Until then nothing is due, as long as slots stay free or taken and nothing new is held unstarted.
        self._quiet_until = 0.0
        self._quiet_with = (False, False)

    def tell(self) -> None:
        """Write the row now: its state has changed."""
        if self._heartbeat is not None:
            self._attempt("a heartbeat", self._beat)

    def run(self, now: float) -> bool:
        """Do what is due; whether one of them wants to go on at once."""
        worker = self._worker
        having = (self._free() > 0, worker.held.unstarted > 0)
        if now < self._quiet_until and having == self._quiet_with and not worker.events.on:
            return False
        again = self._run(now)
        self._quiet_with = having
        self._quiet_until = self._next_at(now)
        return again

    def _run(self, now: float) -> bool:
        worker = self._worker
        if self._control_at is not None and now >= self._control_at:
            self._control_at = now + self._control_interval
            self._attempt("looking for commands", self._commands)
        if self.sharing.due(now, worker.held.unstarted):
            self._attempt("looking at the other workers", partial(self._share, now))
        if self._heartbeat is not None and self._heartbeat.due(now, self._free()):
            self._attempt("a heartbeat", self._beat)
        if worker.events.due(now):
            flush = partial(worker.events.flush, worker.transport.coordination)
            self._attempt("writing events", flush)
        if self._maintenance is not None and now >= self._maintenance.next_at():
            return bool(self._attempt("maintenance", self._maintenance.run))
        return False

    def next_at(self, now: float) -> float:
        """When the next of them is due, as of the last `run`."""
        return self._next_at(now) if self._worker.events.on else self._quiet_until

    def _next_at(self, now: float) -> float:
        worker = self._worker
        times = [now + 60.0]
        if self._control_at is not None:
            times.append(self._control_at)
        if self._heartbeat is not None:
            times.append(self._heartbeat.next_at(now))
        if self._maintenance is not None:
            times.append(self._maintenance.next_at())
        for at in (worker.events.next_at(), self.sharing.next_at(worker.held.unstarted)):
            if at is not None:
                times.append(at)
        return min(times)

    def leave(self) -> None:
        """Leave nothing behind that says this worker lives."""
        worker = self._worker
        coordination = worker.transport.coordination
        self._attempt("the last events", partial(worker.events.flush, coordination))
        if self._maintenance is not None:
            self._attempt("giving up its duties", self._maintenance.drop)
        if self._heartbeat is not None:
            self._attempt("leaving", partial(coordination.leave, worker.rules.name))

    def _attempt(self, what: str, call: Callable[[], object]) -> object:
        # None of these may cost a task anything: a failure is logged, backed off from and tried again.
        if not self._worker.link.ready(self._worker.clock.monotonic()):
            return None
        return self._worker.link.attempt(what, call)

    def _free(self) -> int:
        worker = self._worker
        return worker.pool.free() if worker.stage is Stage.RUNNING else 0

    def _commands(self) -> None:
        worker = self._worker
        coordination = worker.transport.coordination
        for command in coordination.commands(worker.rules.name):
            reply = answer(worker, command)
            if command.reply_to is not None:
                coordination.reply(command.reply_to, worker.rules.name, reply)

    def _share(self, now: float) -> None:
        worker = self._worker
        workers = worker.transport.coordination.workers(seen_within=SEEN_WITHIN)
        for delivery in self.sharing.to_hand_back(now, workers, worker.held.waiting()):
            worker.held.drop(delivery)
            worker.outbound.add(Outcome(delivery=delivery, verb=Verb.RELEASE))

    def _beat(self) -> None:
        worker = self._worker
        assert self._heartbeat is not None
        info = self._heartbeat.info(
            state="running" if worker.stage is Stage.RUNNING else "draining",
            last_poll_at=worker.last_poll_at,
            details={
                "pool": worker.pool.name,
                "events": worker.events.on,
                "control": self._control_at is not None,
                "counts": dict(worker.reporter.counts),
            },
        )
        worker.transport.coordination.report(info)
        worker.events.add(kinds.WORKER_HEARTBEAT, slots=info.slots, free_slots=info.free_slots)
