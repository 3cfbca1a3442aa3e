"""What a worker says about its tasks: log records, events and counts, each in one place.

Arguments and results never appear above DEBUG; names and ids are escaped, they come from outside.
"""

from __future__ import annotations

import logging
from collections import Counter

from taskmq import events as kinds
from taskmq.events import EventLog
from taskmq.message import Delivery, Message
from taskmq.pools.base import Completion, Ending
from taskmq.printable import printable
from taskmq.transports.base import Outcome, Verb
from taskmq.worker.outcomes import FAILED

log = logging.getLogger("taskmq.worker")
# Of single tasks that went well: off by default, on with `--loglevel INFO`.
task_log = logging.getLogger("taskmq.task")
# What is told at the end, in this order. A yield is no ending: the task comes again by itself.
_TOLD = ("succeeded", "failed", "retried", "released", "revoked", "ignored", "lost")


class Reporter:
    """Costs a dictionary update per task when nobody listens."""

    def __init__(self, events: EventLog) -> None:
        self._events = events
        self.counts: Counter[str] = Counter()

    def summary(self) -> str:
        """How runs ended since the start, as `12 succeeded, 1 failed`; `nothing was run` where none did."""
        said = [f"{self.counts[name]:,} {name}" for name in _TOLD if self.counts[name]]
        return ", ".join(said) or "nothing was run"

    def received(self, delivery: Delivery) -> None:
        """A delivery was reserved."""
        self._events.task(kinds.TASK_RECEIVED, delivery.message, deliveries=delivery.deliveries)

    def started(self, delivery: Delivery) -> None:
        """A delivery went to the pool."""
        message = delivery.message
        if task_log.isEnabledFor(logging.DEBUG):
            task_log.debug(
                "task %s started (delivery %d, retry %d)",
                label(message),
                delivery.deliveries,
                message.retries,
                extra=_extra("task.started", message),
            )
        self._events.task(
            kinds.TASK_STARTED,
            message,
            deliveries=delivery.deliveries,
            retries=message.retries,
        )

    def yielded(self, delivery: Delivery, urgent: int) -> None:
        """An unstarted delivery made room for something more urgent."""
        self.counts["yielded"] += 1
        log.debug(
            "task %s was handed back: priority %d waits",
            label(delivery.message),
            urgent,
            extra=_extra("task.yielded", delivery.message),
        )
        self._events.task(kinds.TASK_YIELDED, delivery.message, for_priority=urgent)

    def lease_lost(self, delivery: Delivery, when: str) -> None:
        """Somebody else may have the message now; nothing this worker says of it counts any more."""
        self.counts["lost"] += 1
        log.warning(
            "the lease of task %s was lost %s; what comes of this run is dropped",
            label(delivery.message),
            when,
            extra=_extra("lease_lost", delivery.message),
        )
        self._events.task(kinds.TASK_LOST, delivery.message)

    def ended(self, completion: Completion, outcome: Outcome) -> None:
        """A run ended, and this is what becomes of its message."""
        ending = completion.ending
        message = outcome.delivery.message
        if ending is Ending.SUCCEEDED:
            self.counts["succeeded"] += 1
            if task_log.isEnabledFor(logging.INFO):
                task_log.info(
                    "task %s succeeded in %.3f s",
                    label(message),
                    completion.runtime,
                    extra=_extra("task.succeeded", message),
                )
            self._events.task(kinds.TASK_SUCCEEDED, message, runtime=completion.runtime)
        elif ending is Ending.PROGRESS:
            self._events.task(kinds.TASK_PROGRESS, message, label=completion.label)
        else:
            self._otherwise(completion, outcome, message)

    def _otherwise(self, completion: Completion, outcome: Outcome, message: Message) -> None:
        error = printable(outcome.error or completion.error)
        fields = {"runtime": completion.runtime, "error": error}
        verb = outcome.verb
        if verb is Verb.RETRY:
            self.counts["retried"] += 1
            log.warning(
                "task %s is tried again in %.1f s: %s",
                label(message),
                outcome.delay,
                error,
                extra=_extra("task.retried", message),
            )
            self._events.task(kinds.TASK_RETRIED, message, delay=outcome.delay, **fields)
        elif verb is Verb.BURY:
            self.counts["failed"] += 1
            trace = (
                f"\n{printable(completion.traceback, multiline=True)}"
                if completion.traceback
                else ""
            )
            log.error(
                "task %s failed%s: %s%s",
                label(message),
                # The plain case needs no reason: what it raised follows.
                "" if outcome.reason == FAILED else f" ({outcome.reason})",
                error,
                trace,
                extra=_extra("task.failed", message, reason=outcome.reason),
            )
            self._events.task(kinds.TASK_FAILED, message, reason=outcome.reason, **fields)
            self._events.task(kinds.TASK_DEAD, message, reason=outcome.reason)
        elif verb is Verb.RELEASE:
            self.counts["released"] += 1
            log.warning(
                "task %s goes back to its queue (%s): %s",
                label(message),
                completion.ending.value.replace("_", " "),
                error or "it was not started",
                extra=_extra("task.released", message),
            )
            self._events.task(kinds.TASK_RELEASED, message, delay=outcome.delay, **fields)
        elif completion.ending is Ending.CANCELLED:
            self.counts["revoked"] += 1
            log.info(
                "task %s was stopped: %s",
                label(message),
                error,
                extra=_extra("task.revoked", message),
            )
            self._events.task(kinds.TASK_REVOKED, message, **fields)
        else:
            self.counts["ignored"] += 1
            task_log.info(
                "task %s ended without a result",
                label(message),
                extra=_extra("task.ignored", message),
            )
            self._events.task(kinds.TASK_IGNORED, message, **fields)


def label(message: Message) -> str:
    """`name[id]`, safe to print."""
    return printable(f"{message.task}[{message.task_id}]")


def _extra(event: str, message: Message, **more: object) -> dict[str, object]:
    return {
        "event": event,
        "task_id": message.task_id,
        "task_name": message.task,
        "queue": message.queue,
        "priority": message.priority,
        **more,
    }
