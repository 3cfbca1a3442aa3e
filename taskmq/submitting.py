"""From a call to a message: options checked, priority resolved, arguments encoded.

What a task's declaration decides for every message alike is worked out once (`Plan`), so that a submit
costs one check of the arguments, one encoding and one `Message`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from taskmq.codec.bodies import encode_json
from taskmq.errors import ConfigError, EncodeError
from taskmq.message import ConcurrencyKey, Message, Rate
from taskmq.options import (
    SUBMIT_OPTIONS,
    TaskOptions,
    check_ack,
    check_concurrency_key,
    check_count,
    check_flag,
    check_seconds,
    check_serializer,
    check_text,
    unknown_options,
)
from taskmq.policy.limits import rate_interval
from taskmq.priority import check_priority, resolve_priority
from taskmq.times import due_at, expires_at

if TYPE_CHECKING:
    from taskmq.app import App
    from taskmq.codec import Codec
    from taskmq.task import Task

_NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
_NO_KWARGS: Mapping[str, Any] = MappingProxyType({})
_FOLLOWED = frozenset({"follow", "link", "link_error"})


class _Upstream:
    """Stands for the result of the step before, which is not known yet."""

    def __repr__(self) -> str:
        return "<result of the step before>"

    def __format__(self, spec: str) -> str:
        raise ValueError("the result of the step before is not known yet")

    __str__ = __repr__


UPSTREAM = _Upstream()


class Plan:
    """What every message of one task has in common. Built from the task's options and the `Config`."""

    __slots__ = (
        "ack",
        "codec",
        "max_deliveries",
        "options",
        "priority",
        "queue",
        "rate",
        "store_result",
    )

    def __init__(self, app: App, name: str, options: TaskOptions) -> None:
        config = app.config
        self.options = options
        self.queue = options.queue or config.default_queue
        self.priority = self.priority_in(app, self.queue)
        self.ack = options.ack or config.ack
        self.max_deliveries = options.max_deliveries or config.max_deliveries
        interval = rate_interval(options.rate_limit, f"task {name}: rate_limit")
        self.rate = Rate(name, interval) if interval is not None else None
        ignore = config.ignore_result if options.ignore_result is None else options.ignore_result
        self.store_result = not ignore and not app.results_disabled
        self.codec: Codec = app.codec_for(options.serializer)

    def priority_in(self, app: App, queue: str) -> int:
        """The priority of a call that names none, in this queue: task, else queue, else default."""
        return resolve_priority(
            task=self.options.priority,
            queue=app.config.queue(queue).priority,
            default=app.config.default_priority,
        )


_NO_TASK_OPTIONS = TaskOptions()


class MessageBuilder:
    """Builds the messages of one app; submits nothing."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._plans: dict[str, Plan] = {}

    def forget(self, name: str) -> None:
        """Drop what was worked out for a task that is registered anew."""
        self._plans.pop(name, None)

    def plan(self, name: str, task: Task[..., Any] | None) -> Plan:
        """The plan of a task; of a name that is registered elsewhere, the `Config` alone decides."""
        plan = self._plans.get(name)
        if plan is None:
            plan = Plan(self._app, name, task.options if task else _NO_TASK_OPTIONS)
            if task is not None:
                self._plans[name] = plan
        return plan

    def build(
        self,
        name: str,
        task: Task[..., Any] | None,
        args: Sequence[Any],
        kwargs: Mapping[str, Any] | None,
        options: Mapping[str, Any],
        *,
        after_another: bool = False,
    ) -> Message:
        """One message. With `after_another` the result of a step before it will be put first.

        Raises `ConfigError`, `PriorityError`, `EncodeError`, `TooLarge`, or `TypeError`
        for arguments the function does not take.
        """
        if not isinstance(args, (list, tuple)):
            raise ConfigError(f"task {name}: args is a list or a tuple, got {args!r}")
        if kwargs is None:
            kwargs = _NO_KWARGS
        elif not isinstance(kwargs, Mapping):
            raise ConfigError(
                f"task {name}: kwargs is a mapping of names to values, got {kwargs!r}"
            )
        known = (UPSTREAM, *args) if after_another else args
        if task is not None:
            task.shape.check(known, kwargs)
        plan = self.plan(name, task)
        if not options and plan.options.concurrency_key is None and plan.options.expires is None:
            return self._plain(name, plan, args, kwargs)
        unknown_options(options, SUBMIT_OPTIONS, f"task {name}")
        given = {key: value for key, value in options.items() if value is not None}
        concurrency = _concurrency(f"task {name}", task, plan.options, known, kwargs, given)
        return self._with_options(name, plan, args, kwargs, given, concurrency)

    def _plain(
        self, name: str, plan: Plan, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Message:
        body, content_type, content_encoding = plan.codec.encode_body(args, kwargs)
        task_id = self._app.new_id()
        options = plan.options
        return Message(
            message_id=task_id,
            task_id=task_id,
            task=name,
            queue=plan.queue,
            body=body,
            priority=plan.priority,
            content_type=content_type,
            content_encoding=content_encoding,
            max_deliveries=plan.max_deliveries,
            ack=plan.ack,
            time_limit=options.time_limit,
            soft_time_limit=options.soft_time_limit,
            rate=plan.rate,
            root_id=task_id,
            store_result=plan.store_result,
            result_expires=options.result_expires,
        )

    def _with_options(
        self,
        name: str,
        plan: Plan,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        given: Mapping[str, Any],
        concurrency: ConcurrencyKey | None,
    ) -> Message:
        where = f"task {name}"
        app = self._app
        now = app.clock.now()
        declared = plan.options

        queue = plan.queue
        if "queue" in given:
            queue = check_text(given["queue"], f"{where}: queue")
        codec = plan.codec
        if "serializer" in given:
            codec = app.codec_for(check_serializer(given["serializer"], f"{where}: serializer"))
        body, content_type, content_encoding = codec.encode_body(args, kwargs, given.get("embed"))

        # An id made here is unique; one brought by the caller may be in use (Celery reuses them).
        fresh = app.new_id()
        task_id = check_text(given.get("task_id", fresh), f"{where}: task_id")
        store_result = plan.store_result
        if "ignore_result" in given:
            ignore = check_flag(given["ignore_result"], f"{where}: ignore_result")
            store_result = not ignore and not app.results_disabled
        return Message(
            message_id=check_text(given.get("message_id", fresh), f"{where}: message_id"),
            task_id=task_id,
            task=name,
            queue=queue,
            body=body,
            priority=self._priority(where, plan, queue, given),
            content_type=content_type,
            content_encoding=content_encoding,
            eta=due_at(given.get("eta"), given.get("countdown"), now, where),
            expires_at=expires_at(given.get("expires", declared.expires), now, where),
            max_deliveries=check_count(
                given.get("max_deliveries", plan.max_deliveries), f"{where}: max_deliveries"
            ),
            ack=check_ack(given.get("ack", plan.ack), f"{where}: ack"),
            retries=check_count(given.get("retries", 0), f"{where}: retries", low=0),
            time_limit=_limit(given, declared.time_limit, "time_limit", where),
            soft_time_limit=_limit(given, declared.soft_time_limit, "soft_time_limit", where),
            rate=plan.rate,
            concurrency=concurrency,
            follow=_follow(where, given),
            parent_id=_optional_text(given, "parent_id", where),
            root_id=_optional_text(given, "root_id", where) or task_id,
            store_result=store_result,
            result_expires=(
                check_seconds(given["result_expires"], f"{where}: result_expires")
                if "result_expires" in given
                else declared.result_expires
            ),
            headers=_headers(given.get("headers"), where),
        )

    def _priority(self, where: str, plan: Plan, queue: str, given: Mapping[str, Any]) -> int:
        """Call, else parent (only `ctx.publish` names one), else task, else queue, else default."""
        if "priority" in given:
            return check_priority(given["priority"], f"{where}: priority")
        if "parent_priority" in given:
            return check_priority(given["parent_priority"], f"{where}: parent_priority")
        if queue == plan.queue:
            return plan.priority
        return plan.priority_in(self._app, queue)


def _limit(
    given: Mapping[str, Any], declared: float | None, option: str, where: str
) -> float | None:
    if option not in given:
        return declared
    return check_seconds(given[option], f"{where}: {option}", above_zero=True)


def _optional_text(given: Mapping[str, Any], option: str, where: str) -> str | None:
    return check_text(given[option], f"{where}: {option}") if option in given else None


def _concurrency(
    where: str,
    task: Task[..., Any] | None,
    declared: TaskOptions,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    given: Mapping[str, Any],
) -> ConcurrencyKey | None:
    rule: Any = declared.concurrency_key
    if "concurrency_key" in given:
        rule = check_concurrency_key(given["concurrency_key"], f"{where}: concurrency_key")
    if rule is None:
        return None
    limit = check_count(
        given.get("concurrency_limit", declared.concurrency_limit), f"{where}: concurrency_limit"
    )
    if task is not None:
        key = task.shape.key(rule, args, kwargs)
    elif isinstance(rule, str):
        # The function is elsewhere: its parameters are not known, so a key is taken as it is written.
        key = rule
    else:
        raise ConfigError(
            f"{where}: concurrency_key as a function needs the task to be registered here"
        )
    return ConcurrencyKey(key, limit) if key is not None else None


def _headers(headers: Any, where: str) -> Mapping[str, Any]:
    if headers is None:
        return _NO_OPTIONS
    if not isinstance(headers, Mapping) or not all(isinstance(key, str) for key in headers):
        raise ConfigError(f"{where}: headers is a mapping with text keys, got {headers!r}")
    try:
        # Headers travel as JSON on every transport, whatever the serializer of the arguments.
        json.dumps(dict(headers), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as exc:
        raise EncodeError(f"{where}: headers must be JSON values: {exc}") from exc
    return MappingProxyType(dict(headers))


def _follow(where: str, given: Mapping[str, Any]) -> str | None:
    """What comes after this message as JSON text: the caller's `follow` plus `link` and `link_error`."""
    if not _FOLLOWED & given.keys():
        return None
    follow = dict(given.get("follow", _NO_OPTIONS))
    for option, field in (("link", "callbacks"), ("link_error", "errbacks")):
        if option in given:
            follow[field] = [*follow.get(field, ()), *_wires(given[option], f"{where}: {option}")]
    follow = {field: part for field, part in follow.items() if part}
    return encode_json(follow, f"{where}: follow") if follow else None


def _wires(value: Any, where: str) -> list[Mapping[str, Any]]:
    """Calls, or signatures as they are stored, in their stored form."""
    wires: list[Mapping[str, Any]] = []
    for item in value if isinstance(value, (list, tuple)) else (value,):
        wire = getattr(item, "wire", None)
        if callable(wire):
            wires.append(wire())
        elif isinstance(item, Mapping) and isinstance(item.get("task"), str):
            wires.append(item)
        else:
            raise ConfigError(f"{where}: calls like task.s(...), got {item!r}")
    return wires
