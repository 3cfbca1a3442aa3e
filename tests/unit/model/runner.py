"""Runs what an app's transport holds, one delivery after the other, with the policy's own consequences.

What a worker does in its essentials, so that the model's promises are tested without one.
"""

from __future__ import annotations

from typing import Any

from taskmq import App, Context, State
from taskmq.codec import encode_failure
from taskmq.context import running
from taskmq.errors import Retry
from taskmq.message import Delivery, ResultRecord
from taskmq.policy import following
from taskmq.transports.base import Outcome, QueueShare, ReserveRequest, Verb


class Control:
    """The pool's side of a run: remembers progress, and can say that the run should stop."""

    def __init__(self) -> None:
        self.reports: list[tuple[Any, str]] = []
        self.reason: str | None = None

    def report(self, value: Any, label: str) -> None:
        self.reports.append((value, label))

    def cancelled(self) -> str | None:
        return self.reason


class Runner:
    """`run()` goes on until nothing is due and returns the messages it ran, in order."""

    def __init__(self, app: App, *queues: str) -> None:
        self.app = app
        self.queues = tuple(QueueShare(name) for name in queues or ("default",))

    def take(self) -> Delivery | None:
        request = ReserveRequest(worker="w", queues=self.queues, slots=1)
        return next(iter(self.app.transport.reserve(request)), None)

    def run(self) -> list[Delivery]:
        ran = []
        while (delivery := self.take()) is not None:
            ran.append(delivery)
            lost = self.app.transport.settle([self.outcome(delivery)])
            assert not lost
        return ran

    def context(self, delivery: Delivery, control: Control | None = None) -> Context:
        return Context(
            app=self.app,
            task=self.app.registry[delivery.message.task],
            message=delivery.message,
            deliveries=delivery.deliveries,
            worker="w",
            control=control or Control(),
        )

    def outcome(self, delivery: Delivery) -> Outcome:
        message = delivery.message
        context = self.context(delivery)
        args, kwargs, _ = self.app.codec.decode_body(message.body, message.content_type)
        now = self.app.clock.now()
        kept = self.app.config.result_expires
        try:
            with running(context):
                value = context.task.invoke(context, args, kwargs)
        except Retry as exc:
            return Outcome(
                delivery=delivery, verb=Verb.RETRY, delay=exc.delay, priority=exc.priority
            )
        except Exception as exc:
            failure = encode_failure(exc)
            return Outcome(
                delivery=delivery,
                verb=Verb.FINISH,
                result=self.record(message, State.FAILED, failure),
                then=following.ended(message, State.FAILED, failure, now=now, result_expires=kept),
            )
        body, content_type = self.app.codec.encode_value(value)
        return Outcome(
            delivery=delivery,
            verb=Verb.FINISH,
            result=self.record(message, State.SUCCEEDED, body),
            then=following.succeeded(message, body, content_type, now=now),
        )

    def record(self, message: Any, state: State, body: bytes) -> ResultRecord | None:
        if not message.store_result:
            return None
        return ResultRecord(task_id=message.task_id, state=state, body=body, task=message.task)
