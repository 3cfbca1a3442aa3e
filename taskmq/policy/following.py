"""What follows a finished task, as values that a transport applies in the settling transaction. Pure.

Every node of a workflow reaches a terminal state: a step that fails, expires, is revoked or is lost
ends what depends on it, and says so; an error callback runs once per failure (DESIGN §8).
"""

from __future__ import annotations

from dataclasses import dataclass

from taskmq.message import Message, ResultRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ChordPart:
    """One member of a chord ended with success.

    `key` names the chord, `index` its place among `size` members, `part` its JSON result. The move that
    completes the chord submits `then` with its body set to `prefix + parts joined by "," + suffix`:
    bytes concatenation, so that a Lua script can do it too. A member counted once is not counted
    again.
    """

    key: str
    index: int
    size: int
    part: bytes
    then: Message
    prefix: bytes
    suffix: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ChordFailure:
    """One member of a chord ended without success: the first to say so ends the chord.

    Only then are `results` written and `submits` sent; later parts and failures change nothing.
    """

    key: str
    size: int
    results: tuple[ResultRecord, ...] = ()
    submits: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """All that one ending brings about besides its own state and result."""

    submits: tuple[Message, ...] = ()
    results: tuple[ResultRecord, ...] = ()
    chords: tuple[ChordPart | ChordFailure, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.submits or self.results or self.chords)


NOTHING = Consequence()
