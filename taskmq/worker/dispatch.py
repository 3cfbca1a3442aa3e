"""From a started delivery to a job in the pool, and from a run's end to the outcome of its message."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from taskmq.hooks import CutOffEvent
from taskmq.message import Delivery
from taskmq.pools.base import Completion, Ending, Job, Pool
from taskmq.states import State
from taskmq.transports.base import Outcome, Verb
from taskmq.worker.holding import Holding
from taskmq.worker.outbound import Outbound
from taskmq.worker.outcomes import Settling
from taskmq.worker.reporting import Reporter, label
from taskmq.worker.rules import Rules

if TYPE_CHECKING:
    from taskmq.app import App
    from taskmq.retry import RetryPolicy


log = logging.getLogger("taskmq.worker")

# Endings that the pool sees instead of the process that ran the task, and what they end the task as.
_CUT_OFF = {
    Ending.LOST: State.FAILED,
    Ending.TIMED_OUT: State.FAILED,
    Ending.CANCELLED: State.REVOKED,
}


class Dispatcher:
    """Knows the tasks' limits and retry policies; runs none of their code."""

    def __init__(
        self,
        app: App,
        pool: Pool,
        rules: Rules,
        held: Holding,
        outbound: Outbound,
        reporter: Reporter,
    ) -> None:
        self._app = app
        self._pool = pool
        self._rules = rules
        self._held = held
        self._outbound = outbound
        self._reporter = reporter
        # Outcomes of runs that cannot be stopped: handed back when they are over, or with the process.
        self.left: list[Outcome] = []
        self._settling = Settling(
            worker=rules.name,
            result_expires=rules.result_expires,
            keep_results=rules.keep_results,
            random=app.random,
            retry_of=self._retry_of,
        )

    def begin(self, delivery: Delivery) -> None:
        """Give a started delivery to the pool, which has a free slot for it."""
        message = delivery.message
        running = self._held.begin(delivery, started_at=self._app.clock.now())
        hard, soft = message.time_limit, message.soft_time_limit
        if hard is None or soft is None:
            hard, soft = self._limits(message.task, hard, soft)
        self._reporter.started(delivery)
        self._pool.dispatch(
            Job(
                number=running.number,
                message=message,
                deliveries=delivery.deliveries,
                worker=self._rules.name,
                soft_time_limit=soft,
                time_limit=hard,
            )
        )

    def poll(self) -> bool:
        """Turn what the pool has to say into outcomes; whether there was anything."""
        completions = self._pool.poll()
        if not completions:
            return False
        now = self._app.clock.now()
        for completion in completions:
            self._completed(completion, now)
        return True

    def _completed(self, completion: Completion, now: float) -> None:
        running = self._held.running.get(completion.number)
        if running is None:
            return
        progress = completion.ending is Ending.PROGRESS
        if not progress:
            del self._held.running[completion.number]
        if running.lost:
            return  # it was said when the lease was lost
        if completion.ending is Ending.CANCELLED and running.revoked_for:
            completion = replace(completion, reason=running.revoked_for)
        outcome = self._outcome(completion, running.delivery, now)
        self._reporter.ended(completion, outcome)
        if completion.body is None and completion.ending in _CUT_OFF:
            ended = outcome.verb in (Verb.FINISH, Verb.BURY)
            self._app.hooks.run_cut_off.send(
                CutOffEvent(
                    delivery=running.delivery,
                    state=_CUT_OFF[completion.ending] if ended else None,
                    error=outcome.error or completion.error,
                )
            )
        if progress:
            self._outbound.progress(outcome)
        elif completion.ending is Ending.HANDED_BACK and self._pool.unstopped():
            self.left.append(outcome)
        else:
            self._outbound.add(outcome)

    def _outcome(self, completion: Completion, delivery: Delivery, now: float) -> Outcome:
        try:
            return self._settling.outcome(completion, delivery, now)
        except Exception:
            # What follows a message may come from anybody. Nothing in it ends the worker (I10), and the
            # task's own ending stands.
            log.exception("what follows task %s cannot be worked out", label(delivery.message))
            plain = replace(delivery, message=replace(delivery.message, follow=None))
            return self._settling.outcome(replace(completion, follow=None), plain, now)

    def _limits(
        self, task_name: str, hard: float | None, soft: float | None
    ) -> tuple[float | None, float | None]:
        """A message's limits, else its task's (a producer elsewhere may not know them), else ours."""
        task = self._app.registry.get(task_name)
        if task is not None:
            hard = hard or task.options.time_limit
            soft = soft or task.options.soft_time_limit
        return hard or self._rules.time_limit, soft or self._rules.soft_time_limit

    def _retry_of(self, task_name: str) -> tuple[RetryPolicy | None, str]:
        task = self._app.registry.get(task_name)
        rule = self._app.config.retry_priority
        if task is None:
            return None, rule
        return task.options.retry, task.options.retry_priority or rule
