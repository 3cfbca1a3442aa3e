"""What follows an ending: messages to submit, results to write, chord members to count.

Applied under the lock of the operation that ends the message, so all of it happens or none.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from taskmq.policy import endings
from taskmq.policy.following import ChordFailure, ChordPart, Consequence
from taskmq.policy.sizes import too_large
from taskmq.states import State

if TYPE_CHECKING:
    from taskmq.transports.memory.store import Store


@dataclass(slots=True)
class _Chord:
    parts: dict[int, bytes] = field(default_factory=dict)
    ended_at: float | None = None


class Workflows:
    """The chords under way, and those that ended lately."""

    def __init__(self) -> None:
        self._chords: dict[str, _Chord] = {}

    def apply(self, store: Store, then: Consequence, now: float) -> None:
        """Carry out all that an ending brings about."""
        for message in then.submits:
            store.insert(message, now)
        for record in then.results:
            store.put_result(record)
        for move in then.chords:
            if isinstance(move, ChordPart):
                self._count(store, move, now)
            else:
                self._fail(store, move, now)

    def sweep(self, before: float) -> int:
        """Forget chords that ended before that time; until then late members change nothing."""
        old = [k for k, c in self._chords.items() if c.ended_at is not None and c.ended_at < before]
        for key in old:
            del self._chords[key]
        return len(old)

    def _count(self, store: Store, move: ChordPart, now: float) -> None:
        chord = self._chords.setdefault(move.key, _Chord())
        if chord.ended_at is not None:
            return
        chord.parts.setdefault(move.index, move.part)
        if len(chord.parts) < move.size:
            return
        parts = [chord.parts[index] for index in sorted(chord.parts)]
        chord.ended_at = now
        chord.parts = {}
        body = replace(move.then, body=move.prefix + b",".join(parts) + move.suffix)
        fault = too_large(body.body, store.settings.max_body, f"the body of chord {move.key}")
        if fault is None:
            store.insert(body, now)
            return
        # Its results do not fit into one message: the body cannot run, and says so.
        how = endings.end(body, State.FAILED, fault, **store.ending(now))
        if how.result is not None:
            store.put_result(how.result)
        self.apply(store, how.then, now)

    def _fail(self, store: Store, move: ChordFailure, now: float) -> None:
        chord = self._chords.setdefault(move.key, _Chord())
        if chord.ended_at is not None:
            return
        chord.ended_at = now
        chord.parts = {}
        self.apply(store, Consequence(submits=move.submits, results=move.results), now)
