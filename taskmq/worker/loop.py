"""Running a coordinator: step after step, and waiting in between for whatever comes first."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from taskmq.bell import readable
from taskmq.worker.coordinator import Coordinator
from taskmq.worker.stopping import Stage

log = logging.getLogger("taskmq.worker")

# How often (seconds) a worker whose transport looks for commits by itself takes a whole look all the same:
# what no commit tells (a clock that was set, a file that was replaced) is met there. The commands have this
# pace too, so it costs no waking of its own.
_WHOLE_LOOK = 0.25


def run(coordinator: Coordinator) -> int:
    """Step until the worker has stopped; the exit code. Opens and closes the coordinator."""
    coordinator.open()
    try:
        while coordinator.stage is not Stage.STOPPED:
            coordinator.step()
            if not coordinator.again:
                wait(coordinator)
    finally:
        coordinator.close()
    return coordinator.exit_code


def wait(coordinator: Coordinator) -> None:
    """Wait for news: of the pool, of the transport, a signal, or the time of the next thing to do."""
    if coordinator.stage is Stage.STOPPED or coordinator.pool.ready():
        return
    clock, link = coordinator.clock, coordinator.link
    now = clock.monotonic()
    fds = [*coordinator.pool.fds(), coordinator.bell.fd]
    looking = link.ready(now) and coordinator.reserving()
    timeout = timeout_of(coordinator, now, looking=looking)
    if timeout <= 0:
        return
    if not looking:
        # A busy worker is not woken by what it could not take anyway.
        coordinator.heard = coordinator.bell.fd in readable(fds, timeout)
        return
    coordinator.heard = True
    if link.attempt("waiting", partial(_wait_for_work, coordinator, timeout, fds)) is None:
        # The transport cannot wait: that must not become a loop without a pause.
        readable(fds, min(timeout, coordinator.rules.poll_interval))


def _wait_for_work(coordinator: Coordinator, timeout: float, fds: Sequence[int]) -> bool:
    rules, transport = coordinator.rules, coordinator.transport
    timeout = min(timeout, _longest(coordinator))
    due = transport.next_due(rules.queues)
    if due is not None:
        timeout = min(timeout, max(0.0, due - coordinator.clock.now()))
    transport.wait(timeout, fds)
    return True


def _longest(coordinator: Coordinator) -> float:
    """The longest wait for work: `poll_interval` (P15), unless the transport itself looks that often."""
    rules, every = coordinator.rules, coordinator.transport.looks_every
    # Aging brings what waits into the window of a slot with the time alone.
    if every is None or every > rules.poll_interval or rules.aging is not None:
        return rules.poll_interval
    return max(rules.poll_interval, _WHOLE_LOOK)


def timeout_of(coordinator: Coordinator, now: float, *, looking: bool) -> float:
    """Seconds until the coordinator has something to do by itself."""
    times = [coordinator.chores.next_at(now), coordinator.renewal.next_at]
    if not coordinator.link.ready(now):
        # Backing off: the chores and the turn wait for the transport, the leases have their own time.
        times = [max(times[0], coordinator.link.retry_at), coordinator.renewal.next_at]
    for at in (
        coordinator.pool.next_timer(),
        coordinator.outbound.next_at(),
        coordinator.ladder.deadline,
    ):
        if at is not None:
            times.append(at)
    if coordinator.outbound or looking:
        # What could not be settled is tried again when the link is ready.
        times.append(max(now, coordinator.link.retry_at) if coordinator.outbound else now + 60.0)
    return max(0.0, min(times) - now)
