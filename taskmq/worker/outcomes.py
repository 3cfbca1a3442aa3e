"""From how a run ended to what becomes of its message. Pure: values in, an `Outcome` out.

DESIGN §7's table, columns "child dies" and "drain deadline passes":

                 child dies                              drain deadline
    on_finish    run again at once, counted              handed back
    on_start     FAILED (WorkerLost) and a dead letter   the same
    late         FAILED (WorkerLost) and a dead letter   handed back

A failure of any kind is a result and a dead letter, so that it can be found and replayed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from taskmq.codec import encode_failure
from taskmq.errors import TaskMQError, TaskRevoked, TimeLimitExceeded, WorkerLost
from taskmq.message import Delivery, Message, ResultRecord
from taskmq.policy import following
from taskmq.policy.endings import CRASH_LOOP, UNREADABLE, WORKER_LOST, kept_until
from taskmq.policy.following import NOTHING, Consequence
from taskmq.pools.base import Completion, Ending
from taskmq.retry import RetryPolicy, retry_priority
from taskmq.states import AckMode, State
from taskmq.transports.base import Outcome, Verb

# Reasons of dead letters; `endings` has those that need no worker.
FAILED = "failed"
TIME_LIMIT = "time-limit"
UNKNOWN_TASK = "unknown-task"
REJECTED = "rejected"

# A message whose child died runs again at once; from the second time on it waits, so that one that kills
# every child leaves room for the others (I5).
_CRASH_DELAY = 0.2
# An unknown name may be known to a worker that is being deployed.
_UNKNOWN_DELAY = 1.0
_LONGEST_DELAY = 60.0
# A task that puts its message back would otherwise be run again without a pause.
_REQUEUE_DELAY = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settling:
    """What every outcome of one worker has in common.

    `retry_of` gives a task's retry policy and priority rule by name, for endings that its own process
    did not live to see.
    """

    worker: str
    result_expires: float | None
    keep_results: bool
    random: Random
    retry_of: Callable[[str], tuple[RetryPolicy | None, str]]

    def outcome(self, completion: Completion, delivery: Delivery, now: float) -> Outcome:
        """What becomes of this delivery."""
        message = delivery.message
        if completion.follow is not None and message.follow is None:
            message = replace(message, follow=completion.follow)
        ending = completion.ending
        if ending is Ending.SUCCEEDED:
            return self._succeeded(completion, delivery, message, now)
        if ending is Ending.PROGRESS:
            record = self._record(State.RUNNING, completion, message, now)
            return Outcome(delivery=delivery, verb=Verb.REPORT, result=record)
        if ending is Ending.RETRY:
            return self._retry(completion, delivery, message, now)
        if ending is Ending.IGNORED:
            # Its result and its workflow are left as they are: the task said so, and may have handed
            # both to a replacement.
            return Outcome(delivery=delivery, verb=Verb.FINISH)
        if ending is Ending.REQUEUE:
            return Outcome(delivery=delivery, verb=Verb.RELEASE, delay=self._spread(_REQUEUE_DELAY))
        if ending is Ending.NOT_STARTED:
            return Outcome(delivery=delivery, verb=Verb.RELEASE)
        if ending is Ending.CANCELLED:
            return self._revoked(completion, delivery, message, now)
        if ending is Ending.UNREGISTERED:
            return self._unregistered(completion, delivery, message, now)
        if ending is Ending.HANDED_BACK:
            return self._handed_back(completion, delivery, message, now)
        if ending is Ending.LOST:
            return self._lost(completion, delivery, message, now)
        if ending is Ending.TIMED_OUT:
            return self._timed_out(completion, delivery, message, now)
        if ending is Ending.BURY:
            error = completion.reason or completion.error
            return self._bury(State.DEAD, REJECTED, completion, delivery, message, now, error=error)
        if ending is Ending.UNREADABLE:
            return self._bury(State.DEAD, UNREADABLE, completion, delivery, message, now)
        reason = completion.reason or FAILED
        return self._bury(State.FAILED, reason, completion, delivery, message, now)

    # -- endings the task brought about -----------------------------------------------------------

    def _succeeded(
        self, completion: Completion, delivery: Delivery, message: Message, now: float
    ) -> Outcome:
        then = NOTHING
        if message.follow is not None:
            then = following.succeeded(
                message, completion.body or b"null", completion.content_type, now=now
            )
        return Outcome(
            delivery=delivery,
            verb=Verb.FINISH,
            result=self._record(State.SUCCEEDED, completion, message, now),
            then=then,
        )

    def _retry(
        self, completion: Completion, delivery: Delivery, message: Message, now: float
    ) -> Outcome:
        return Outcome(
            delivery=delivery,
            verb=Verb.RETRY,
            result=self._record(State.RETRYING, completion, message, now),
            delay=completion.delay,
            priority=completion.priority,
            body=completion.new_body,
            error=completion.error,
        )

    def _revoked(
        self, completion: Completion, delivery: Delivery, message: Message, now: float
    ) -> Outcome:
        # Whether it stopped itself or was terminated: whoever asks for the result gets the same error.
        itself = completion.body is not None
        why = "it was revoked and stopped itself" if itself else completion.error or "revoked"
        why = completion.reason or why
        completion = _because(completion, TaskRevoked(why))
        return Outcome(
            delivery=delivery,
            verb=Verb.FINISH,
            result=self._record(State.REVOKED, completion, message, now),
            then=self._ended(State.REVOKED, completion, message, now),
            error=completion.error,
        )

    # -- endings the task did not see -------------------------------------------------------------

    def _lost(
        self, completion: Completion, delivery: Delivery, message: Message, now: float
    ) -> Outcome:
        completion = _because(completion, WorkerLost(completion.error or "its process was lost"))
        if message.ack is AckMode.ON_FINISH:
            if delivery.deliveries >= message.max_deliveries:
                return self._bury(State.DEAD, CRASH_LOOP, completion, delivery, message, now)
            return self._again(completion, delivery, _CRASH_DELAY, 2.0, skip=1)
        return self._bury(State.FAILED, WORKER_LOST, completion, delivery, message, now)

    def _handed_back(
        self, completion: Completion, delivery: Delivery, message: Message, now: float
    ) -> Outcome:
        if message.ack is AckMode.ON_START:
            completion = _because(completion, WorkerLost(completion.error or "its worker stopped"))
            return self._bury(State.FAILED, WORKER_LOST, completion, delivery, message, now)
        return Outcome(delivery=delivery, verb=Verb.RELEASE, error=completion.error)

    def _timed_out(
        self, completion: Completion, delivery: Delivery, message: Message, now: float
    ) -> Outcome:
        error = TimeLimitExceeded(completion.error or "the time limit has passed")
        completion = _because(completion, error)
        policy, rule = self.retry_of(message.task)
        if policy is not None and policy.wants(error) and not policy.exhausted(message.retries):
            completion = replace(
                completion,
                ending=Ending.RETRY,
                delay=policy.wait(message.retries, self.random),
                priority=retry_priority(message.priority, "lower" if rule == "lower" else "keep"),
            )
            return self._retry(completion, delivery, message, now)
        return self._bury(State.FAILED, TIME_LIMIT, completion, delivery, message, now)

    def _unregistered(
        self, completion: Completion, delivery: Delivery, message: Message, now: float
    ) -> Outcome:
        if delivery.deliveries >= message.max_deliveries:
            return self._bury(State.FAILED, UNKNOWN_TASK, completion, delivery, message, now)
        return self._again(completion, delivery, _UNKNOWN_DELAY, 3.0, skip=0)

    # -- pieces -----------------------------------------------------------------------------------

    def _again(
        self, completion: Completion, delivery: Delivery, first: float, factor: float, *, skip: int
    ) -> Outcome:
        """Released and counted, waiting longer each time; the first `skip` times not at all."""
        times = delivery.deliveries - 1 - skip
        delay = 0.0 if times < 0 else min(_LONGEST_DELAY, first * factor ** min(times, 32))
        return Outcome(
            delivery=delivery,
            verb=Verb.RELEASE,
            counted=True,
            delay=self._spread(delay),
            error=completion.error,
        )

    def _bury(
        self,
        state: State,
        reason: str,
        completion: Completion,
        delivery: Delivery,
        message: Message,
        now: float,
        *,
        error: str = "",
    ) -> Outcome:
        return Outcome(
            delivery=delivery,
            verb=Verb.BURY,
            result=self._record(state, completion, message, now),
            then=self._ended(state, completion, message, now),
            reason=reason,
            error=error or completion.error,
        )

    def _ended(
        self, state: State, completion: Completion, message: Message, now: float
    ) -> Consequence:
        if message.follow is None:
            return NOTHING
        return following.ended(
            message, state, completion.body or b"{}", now=now, result_expires=self.result_expires
        )

    def _record(
        self, state: State, completion: Completion, message: Message, now: float
    ) -> ResultRecord | None:
        if not message.store_result or not self.keep_results:
            return None
        return ResultRecord(
            task_id=message.task_id,
            state=state,
            body=completion.body,
            content_type=completion.content_type,
            traceback=completion.traceback,
            ended_at=now if state.final else None,
            expires_at=kept_until(message, now, self.result_expires),
            task=message.task,
            worker=self.worker,
            retries=message.retries,
            parent_id=message.parent_id,
            children=completion.children,
            label=completion.label,
        )

    def _spread(self, seconds: float) -> float:
        return seconds * (1 + self.random.uniform(-0.2, 0.2))


def _because(completion: Completion, error: TaskMQError) -> Completion:
    """The completion with one of our own errors as its failure."""
    return replace(
        completion,
        body=encode_failure(error),
        error=f"{type(error).__name__}: {error}",
    )
