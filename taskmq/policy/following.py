"""What follows a finished task, as values that a transport applies in the settling transaction. Pure.

Every node of a workflow reaches a terminal state: a step that fails, expires, is revoked or is lost
ends what depends on it, and says so; an error callback runs once per failure (DESIGN §8).

A message's `follow` is a JSON object of any of

    chain      signatures behind it, Celery's order: the next one last
    callbacks  signatures to run with its result
    errbacks   signatures to run when it does not succeed
    chord      {"key", "index", "size", "body"}: the chord its end is a member of

The chord belongs to the end of the chain: a step hands it on, and only the last one counts. A result is
prepended to the arguments of what runs next, unless that is immutable. An error callback gets the id of
the failed task as its first argument (Celery's older convention, the one that works when the callback
runs elsewhere) and again in the header `taskmq-errback`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from taskmq.codec.values import as_json
from taskmq.errors import UpstreamFailed
from taskmq.message import Message, ResultRecord
from taskmq.policy.composition import chords_of, errbacks_of, nodes, without_repeats
from taskmq.policy.options import Options
from taskmq.policy.signatures import Chord, Sig, options_of, read_follow
from taskmq.policy.steps import ERRBACK, Steps
from taskmq.states import State


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


def succeeded(
    message: Message,
    body: bytes | None,
    content_type: str,
    *,
    now: float,
) -> Consequence:
    """What follows a task that returned; `body` is its encoded value, None for none.

    Its callbacks and the next step of its chain are submitted; without a chain it counts for its chord.
    Called again for the same message it makes the same ids. Never raises for what a message carries.
    """
    if message.follow is None:
        return NOTHING
    follow = read_follow(message.follow)
    given = as_json(body, content_type)
    steps = Steps(message, now)
    submits: list[Message] = []
    for number, callback in enumerate(follow.callbacks):
        submits += steps.expand(callback, given, f"callback/{number}")
    if follow.chain:
        submits += steps.expand(
            follow.chain[-1], given, "chain", rest=follow.chain[:-1], chord=follow.chord
        )
    chords: tuple[ChordPart | ChordFailure, ...] = ()
    if follow.chord is not None and not follow.chain:
        chords = (_part(steps, follow.chord, given),)
    return Consequence(submits=tuple(submits), chords=chords)


def ended(
    message: Message,
    state: State,
    failure: bytes | None,
    *,
    now: float,
    result_expires: float | None,
) -> Consequence:
    """What follows a task that failed, expired, was revoked or is dead; `failure` is its encoded failure.

    Its error callbacks are submitted; callbacks and steps that now never run end as FAILED with
    `UpstreamFailed`; the chord it counts for, and every chord around that, ends, its body's error
    callbacks told. `result_expires` in seconds is for the results written here; None or 0 keeps them
    for ever. Never raises for what a message carries.
    """
    if message.follow is None:
        return NOTHING
    follow = read_follow(message.follow)
    end = _End(Steps(message, now), _reason(message, state, failure), result_expires)
    chords = [follow.chord] if follow.chord is not None else []
    for sig in follow.chain:
        chords += chords_of(sig)
    told = without_repeats(follow.errbacks)
    return Consequence(
        submits=end.errbacks(told, message.task_id, "errback"),
        results=end.results((*reversed(follow.chain), *follow.callbacks)),
        chords=tuple(end.chords(chords, told)),
    )


def _part(steps: Steps, chord: Chord, given: bytes) -> ChordPart:
    then, prefix, suffix = steps.body(chord)
    return ChordPart(
        key=chord.key,
        index=chord.index,
        size=chord.size,
        part=given,
        then=then,
        prefix=prefix,
        suffix=suffix,
    )


@dataclass(frozen=True, slots=True)
class _End:
    """One ending without success, told to everything that waited for it."""

    steps: Steps
    reason: str
    result_expires: float | None

    def results(self, waiting: Iterable[Sig]) -> tuple[ResultRecord, ...]:
        """A final record for every task that now never runs and whose id somebody can hold."""
        out = []
        for sig in waiting:
            for node in nodes(sig):
                options = Options(options_of(node))
                task_id = options.text("task_id")
                if task_id is not None and options.get("ignore_result") is not True:
                    out.append(self._record(task_id, node["task"], options))
        return tuple(out)

    def errbacks(self, errbacks: Iterable[Sig], task_id: str, label: str) -> tuple[Message, ...]:
        given = json.dumps(task_id).encode()
        headers = {ERRBACK: task_id}
        out: list[Message] = []
        for number, sig in enumerate(errbacks):
            out += self.steps.expand(sig, given, f"{label}/{number}", headers=headers)
        return tuple(out)

    def chords(self, chords: Iterable[Chord], told: tuple[Sig, ...]) -> Iterator[ChordFailure]:
        """The end of these chords and of those around them."""
        for chord in chords:
            errbacks = without_repeats(errbacks_of(chord.body), told)
            yield ChordFailure(
                key=chord.key,
                size=chord.size,
                results=self.results((chord.body,)),
                submits=self.errbacks(errbacks, self._body_id(chord), f"chord/{chord.key}/errback"),
            )
            yield from self.chords(chords_of(chord.body), (*told, *errbacks))

    def _body_id(self, chord: Chord) -> str:
        """The task a chord's error callback is about: its body, or the member where that has no id."""
        for node in nodes(chord.body):
            task_id = Options(options_of(node)).text("task_id")
            if task_id is not None:
                return task_id
        return self.steps.parent.task_id

    def _record(self, task_id: str, task: str, options: Options) -> ResultRecord:
        now = self.steps.now
        seconds = options.seconds("result_expires")
        seconds = self.result_expires if seconds is None else seconds
        return ResultRecord(
            task_id=task_id,
            state=State.FAILED,
            body=json.dumps(
                {
                    "exc_type": UpstreamFailed.__name__,
                    "exc_module": UpstreamFailed.__module__,
                    "exc_message": [self.reason],
                }
            ).encode(),
            ended_at=now,
            expires_at=now + seconds if seconds else None,
            task=task,
            parent_id=self.steps.parent.task_id,
        )


def _reason(message: Message, state: State, failure: bytes | None) -> str:
    """One line that names the step, how it ended and why."""
    line = f"it depended on {message.task}[{message.task_id}], which is {state}"
    try:
        value = json.loads(failure or b"")
        told = f"{value['exc_type']}: {', '.join(str(a) for a in value['exc_message'])}"
    except (ValueError, TypeError, KeyError, RecursionError):
        return line
    return f"{line}: {told[:500]}"
