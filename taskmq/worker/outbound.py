"""Outcomes on their way to the transport; they stay here until a turn has committed them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from taskmq.clock import Clock
from taskmq.message import ResultRecord
from taskmq.transports.base import Outcome

if TYPE_CHECKING:
    from taskmq.app import App

# Progress alone is written this often at most; with an ending it goes along.
_PROGRESS_INTERVAL = 0.1


class Outbound:
    """What the next turn settles.

    Where results live in a store of their own they are written before the message is settled, so that a
    crash between the two repeats a task and never loses its result (row 5).
    """

    def __init__(self, app: App, *, clock: Clock) -> None:
        self._app = app
        self._clock = clock
        self._outcomes: list[Outcome] = []
        # The latest progress of each delivery; older ones nobody has seen are not missed.
        self._progress: dict[tuple[int, int], Outcome] = {}
        self._progress_at = 0.0

    def __len__(self) -> int:
        return len(self._outcomes)

    def add(self, outcome: Outcome) -> None:
        """An ending, a retry, a release."""
        last = self._progress.pop((outcome.delivery.seq, outcome.delivery.token), None)
        if last is not None and outcome.result is None:
            # An ending that writes no result leaves the one that is there, which is this.
            self._outcomes.append(last)
        self._outcomes.append(outcome)

    def progress(self, outcome: Outcome) -> None:
        """Progress of a delivery that goes on."""
        if outcome.result is not None:
            self._progress[outcome.delivery.seq, outcome.delivery.token] = outcome

    def due(self, now: float) -> bool:
        """Whether a turn is worth making for these alone."""
        return bool(self._outcomes) or (bool(self._progress) and now >= self._progress_at)

    def next_at(self) -> float | None:
        """Monotonic time at which progress that waits is due."""
        return self._progress_at if self._progress else None

    def take(self) -> list[Outcome]:
        """All that waits, for a turn. May raise `ResultUnavailable` or `TransportError`."""
        if self._progress:
            self._outcomes[:0] = self._progress.values()
            self._progress.clear()
            self._progress_at = self._clock.monotonic() + _PROGRESS_INTERVAL
        if self._outcomes and not self._app.results_with_messages:
            records = [r for outcome in self._outcomes for r in _records(outcome)]
            if records:
                self._app.results.put(records)
            # Written: a turn that fails after this does not write them again.
            self._outcomes = [_without_records(o) for o in self._outcomes]
        return self._outcomes

    def settled(self) -> None:
        """What `take` gave is committed."""
        self._outcomes = []


def _records(outcome: Outcome) -> Iterable[ResultRecord]:
    if outcome.result is not None:
        yield outcome.result
    yield from outcome.then.results


def _without_records(outcome: Outcome) -> Outcome:
    then = replace(outcome.then, results=()) if outcome.then.results else outcome.then
    return replace(outcome, result=None, then=then)
