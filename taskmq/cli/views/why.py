"""`taskmq why`: the one reason why a task waits, or what became of it. Pure.

Answered from the store alone, never by asking workers: a busy one could not answer. The reasons are
checked in the order in which they hold a message back, so that acting on the one given always helps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from taskmq.cli.text import duration, moment, plural
from taskmq.cli.views.results import because, failure_of
from taskmq.coordination.base import WorkerInfo
from taskmq.message import DeadLetter, ResultRecord
from taskmq.states import State
from taskmq.transports.operators import Found


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One reason: `kind` for programs, `sentence` for people, `facts` with its numbers and ids."""

    kind: str
    state: State
    sentence: str
    facts: dict[str, Any] = field(default_factory=dict)


def explain(
    found: Sequence[Found],
    record: ResultRecord | None,
    workers: Sequence[WorkerInfo],
    *,
    now: float,
    revoked: bool = False,
) -> Reason:
    """The reason for a task, from its messages (newest first), its result and the live workers.

    A live message is spoken of before a dead letter, and any message before a result: where several
    carry one task_id, what still can run is what a person waits for.
    """
    live = [f for f in found if f.dead is None]
    if live:
        return _held(live[0], now) or _waiting(live[0], workers, now)
    for one in found:
        if one.dead is not None:
            return _dead(one.dead, now)
    if record is not None:
        return _ended(record, now)
    if revoked:
        return Reason(
            kind="revoked",
            state=State.REVOKED,
            sentence="revoked before it was submitted: a message with this id will end at once",
        )
    return Reason(
        kind="unknown",
        state=State.UNKNOWN,
        sentence="unknown: no message, dead letter or result has this id (results are kept for "
        "`result_expires`)",
    )


def _held(one: Found, now: float) -> Reason | None:
    if one.state is State.RUNNING:
        sentence = f"running on {one.worker or 'a worker'}"
        if one.lease_until is not None and one.lease_until < now:
            ago = duration(now - one.lease_until)
            sentence += f", whose lease ended {ago} ago: it is taken back when nobody renews it"
        return _reason("running", one, sentence, worker=one.worker, lease_until=one.lease_until)
    if one.state is State.RESERVED:
        sentence = f"reserved by {one.worker or 'a worker'}, which has no free slot for it yet"
        return _reason("reserved", one, sentence, worker=one.worker, lease_until=one.lease_until)
    return None


def _waiting(one: Found, workers: Sequence[WorkerInfo], now: float) -> Reason:
    message = one.message
    if one.paused:
        return _reason("paused", one, f"queue {message.queue} is paused", queue=message.queue)
    if one.blocked_by:
        key = message.concurrency.key if message.concurrency else ""
        holders = ", ".join(one.blocked_by)
        return _reason(
            "concurrency_key",
            one,
            f"its concurrency key {key!r} is held by {holders}",
            key=key,
            held_by=list(one.blocked_by),
        )
    if one.rate_until is not None and one.rate_until > now:
        return _reason(
            "rate_limit",
            one,
            f"rate limit of {message.task}: its token is due {_when(one.rate_until, now)}",
            until=one.rate_until,
        )
    if one.due_at is not None and one.due_at > now:
        return _not_due(one, one.due_at, workers, now)
    return _nobody(one, workers) or _behind(one)


def _not_due(one: Found, due_at: float, workers: Sequence[WorkerInfo], now: float) -> Reason:
    when = _when(due_at, now)
    if one.yielded:
        sentence = f"yielded to more urgent work, comes back {when} in its old place"
        return _reason("yielded", one, sentence, until=due_at, yields=one.yields)
    if one.deliveries:
        # Handed back by workers that do not know it, it waits for one that does and not for the time.
        unknown = _unknown_task(
            one,
            workers,
            f"; it is offered again {when}, {one.deliveries} of {one.message.max_deliveries} deliveries "
            "are used up",
        )
        if unknown is not None:
            return unknown
        sentence = (
            f"delivery {one.deliveries} of {one.message.max_deliveries} was lost or handed back, "
            f"the next is due {when}"
        )
        return _reason("redelivery", one, sentence, until=due_at, deliveries=one.deliveries)
    if one.message.retries:
        sentence = f"retry {one.message.retries} is due {when}"
        return _reason("retry", one, sentence, until=due_at, retries=one.message.retries)
    return _reason("not_due", one, f"not due before {when.removeprefix('at ')}", until=due_at)


def _nobody(one: Found, workers: Sequence[WorkerInfo]) -> Reason | None:
    message = one.message
    serving = [w for w in workers if message.queue in w.queues]
    if not serving:
        sentence = f"no live worker consumes queue {message.queue}"
        return _reason("no_worker", one, sentence, queue=message.queue)
    unknown = _unknown_task(one, workers)
    if unknown is not None:
        return unknown
    if all(w.state == "draining" for w in serving):
        sentence = f"every worker of queue {message.queue} is stopping"
        return _reason("draining", one, sentence, queue=message.queue)
    return None


def _unknown_task(one: Found, workers: Sequence[WorkerInfo], more: str = "") -> Reason | None:
    message = one.message
    serving = [w for w in workers if message.queue in w.queues]
    # A worker that does not say which tasks it knows may know this one.
    if not serving or any(not w.tasks or message.task in w.tasks for w in serving):
        return None
    names = ", ".join(w.name for w in serving)
    sentence = f"no worker of queue {message.queue} knows the task {message.task!r} ({names}){more}"
    return _reason("unknown_task", one, sentence, queue=message.queue, task=message.task)


def _behind(one: Found) -> Reason:
    if one.ahead:
        count = f"{plural(one.ahead, 'message')} that {'is' if one.ahead == 1 else 'are'}"
        if one.ahead_capped:
            count = f"{one.ahead} or more messages that are"
        sentence = f"behind {count} more urgent or came earlier"
        return _reason("behind", one, sentence, ahead=one.ahead, capped=one.ahead_capped)
    return _reason("next", one, "nothing is before it: the next free slot takes it", ahead=0)


def _dead(letter: DeadLetter, now: float) -> Reason:
    error = f" ({letter.error})" if letter.error else ""
    return Reason(
        kind="dead",
        state=State.DEAD,
        sentence=f"dead letter {letter.number} since {moment(letter.died_at, now)}: {letter.reason}"
        f"{error}; `taskmq dlq replay {letter.number}` queues it again",
        facts={
            "number": letter.number,
            "reason": letter.reason,
            "error": letter.error,
            "died_at": letter.died_at,
        },
    )


def _ended(record: ResultRecord, now: float) -> Reason:
    sentence = str(record.state)
    if record.ended_at is not None and record.state.final:
        sentence += f" at {moment(record.ended_at, now)}"
    if because(record):
        sentence += f": {because(record)}"
    return Reason(
        kind=str(record.state),
        state=record.state,
        sentence=sentence,
        facts={"ended_at": record.ended_at, "error": failure_of(record) or None},
    )


def _reason(kind: str, one: Found, sentence: str, **facts: Any) -> Reason:
    return Reason(kind=kind, state=one.state, sentence=sentence, facts=facts)


def _when(at: float, now: float) -> str:
    return f"at {moment(at, now)}, in {duration(at - now)}"


def line(task_id: str, found: Sequence[Found], reason: Reason) -> str:
    """One line for people: the id, what it is, the reason."""
    what = ""
    if found:
        message = found[0].message
        what = f" {message.task} in {message.queue} at P{message.priority}"
    others = f" ({plural(len(found) - 1, 'more message')} of this id)" if len(found) > 1 else ""
    state = "" if reason.sentence.startswith(str(reason.state)) else f"{reason.state}, "
    return f"{task_id}{what}: {state}{reason.sentence}{others}"


def as_json(task_id: str, found: Sequence[Found], reason: Reason) -> dict[str, Any]:
    """The same for programs; `reason` is one word of a fixed set, `facts` belong to it."""
    answer: dict[str, Any] = {
        "task_id": task_id,
        "state": str(reason.state),
        "reason": reason.kind,
        "sentence": reason.sentence,
        "facts": reason.facts,
        "messages": len(found),
    }
    if found:
        message = found[0].message
        answer |= {"task": message.task, "queue": message.queue, "priority": message.priority}
    return answer
