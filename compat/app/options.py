"""The options of a Celery call: which there are, what each becomes, and what is said to any other."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from taskmq.compat._state import get_current_worker_task
from taskmq.compat.app.engine import serializer_name
from taskmq.compat.exceptions import ImproperlyConfigured
from taskmq.compat.utils.functional import maybe_list
from taskmq.compat.utils.time import maybe_iso8601, maybe_make_aware
from taskmq.errors import nearest

if TYPE_CHECKING:
    from taskmq.compat.app.base import Celery
    from taskmq.compat.app.task import Task

__all__ = ("checked", "engine_options", "routed", "ancestors", "follow_of", "expiry", "moment")

#: Options that a message carries.
CARRIED = frozenset(
    {
        "countdown",
        "eta",
        "expires",
        "headers",
        "ignore_result",
        "link",
        "link_error",
        "parent_id",
        "priority",
        "queue",
        "retries",
        "root_id",
        "serializer",
        "shadow",
        "soft_time_limit",
        "task_id",
        "time_limit",
        # TaskMQ's own, for Celery code that wants them
        "concurrency_key",
        "concurrency_limit",
        "max_deliveries",
    }
)
#: Resolved to a queue by the router before a message is made.
ROUTING = frozenset({"exchange", "exchange_type", "routing_key"})
#: How Celery talks to its broker. When a call returns the message is stored, so there is nothing to say.
CONNECTION = frozenset(
    {
        "add_to_parent",
        "connection",
        "producer",
        "publisher",
        "result_cls",
        "retry",
        "retry_policy",
        "route_name",
        "router",
        "task_type",
    }
)
#: Properties of an AMQP message that have no meaning here: said once, then left out.
MEANINGLESS = frozenset(
    {
        "compression",
        "declare",
        "delivery_mode",
        "immediate",
        "mandatory",
        "reply_to",
        "replaced_task_nesting",
    }
)


def checked(app: Celery, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are set and mean something; `ImproperlyConfigured` for an unknown one."""
    given = {}
    for option, value in options.items():
        if value is None or option in CONNECTION:
            continue
        if option in MEANINGLESS:
            app.say_once(
                f"option {option!r} has no effect here: there is no broker connection (task {name})"
            )
        elif option in CARRIED or option in ROUTING:
            given[option] = value
        else:
            known = sorted(CARRIED | ROUTING)
            raise ImproperlyConfigured(
                f"task {name}: a call takes no option {option!r}.{nearest(option, known)}"
            )
    return given


#: Options the engine takes as they are.
_AS_THEY_ARE = (
    "queue",
    "parent_id",
    "root_id",
    "retries",
    "max_deliveries",
    "concurrency_key",
    "concurrency_limit",
    "task_id",
)


def engine_options(app: Celery, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Checked and routed options as the engine takes them; what follows the call is not among them.

    Only what is set: a call that says nothing costs the engine nothing. Raises `PriorityError` for a
    priority out of range, `ImproperlyConfigured` for a time or a serializer that is none, ValueError for
    a soft time limit above the hard one.
    """
    made: dict[str, Any] = {key: options[key] for key in _AS_THEY_ARE if key in options}
    if options.get("priority") is not None:
        made["priority"] = app.scale.given(options["priority"], f"task {name}: priority")
    else:
        made["parent_priority"] = _inherited(app)
    countdown = _countdown(options.get("countdown"), name)
    if countdown is not None:
        made["countdown"] = countdown
    elif options.get("eta") is not None:
        made["eta"] = moment(app, options["eta"], f"task {name}: eta")
    if options.get("expires") is not None:
        made["expires"] = _expires(app, options["expires"], name)
    if options.get("serializer") is not None:
        made["serializer"] = serializer_name(options["serializer"], f"task {name}: serializer")
    if "ignore_result" in options:
        made["ignore_result"] = bool(options["ignore_result"])
    hard, soft = options.get("time_limit") or None, options.get("soft_time_limit") or None
    if hard and soft and soft > hard:
        raise ValueError("soft_time_limit must be less than or equal to time_limit")
    made["time_limit"], made["soft_time_limit"] = hard, soft
    headers = options.get("headers")
    if options.get("shadow"):
        headers = {**(headers or {}), "shadow": options["shadow"]}
    made["headers"] = dict(headers) if headers else None
    return {key: value for key, value in made.items() if value is not None}


def ancestors(options: dict[str, Any]) -> None:
    """Fill in the parent and the root of a call made inside a task that a worker runs."""
    task = get_current_worker_task()
    if task is not None:
        options.setdefault("parent_id", task.request.id)
        options.setdefault("root_id", task.request.root_id or task.request.id)


def routed(
    app: Celery, name: str, options: Mapping[str, Any], args: Any, kwargs: Any, task: Task | None
) -> dict[str, Any]:
    """The options with `queue` filled in by `task_routes`.

    A priority that only the route names is a declaration: the task's own, and an inherited one, win.
    """
    found = app.amqp.router.route(options, name, args, kwargs, task)
    if (
        "priority" in found
        and "priority" not in options
        and ((task is not None and task.priority is not None) or _inherited(app) is not None)
    ):
        del found["priority"]
    return found


def follow_of(app: Celery, options: Mapping[str, Any]) -> dict[str, Any] | None:
    """What follows a message: its callbacks and error callbacks, as the engine stores them."""
    from taskmq.compat.canvas.native import wire

    follow = {
        part: [
            wire(app, sig, errback=option == "link_error")
            for sig in maybe_list(options[option]) or ()
        ]
        for option, part in (("link", "callbacks"), ("link_error", "errbacks"))
        if options.get(option)
    }
    return follow or None


def _inherited(app: Celery) -> int | None:
    """The priority a call takes from the task it is made in, under `task_inherit_parent_priority`."""
    parent = get_current_worker_task()
    context = parent.request._engine if parent is not None else None
    if context is None or not app.conf.task_inherit_parent_priority:
        return None
    return context.priority


def _countdown(value: Any, name: str) -> float | None:
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ImproperlyConfigured(f"task {name}: countdown is a number of seconds, got {value!r}")
    # Celery takes a countdown below 0 as one that is over.
    return float(value) if value > 0 else None


def moment(app: Celery, value: Any, where: str) -> float:
    """Epoch seconds of a datetime or ISO 8601 text; a naive one is in the app's time zone."""
    try:
        found = maybe_iso8601(value) if isinstance(value, (str, datetime)) else None
    except ValueError as exc:
        raise ImproperlyConfigured(f"{where}: {exc}") from None
    if found is None:
        raise ImproperlyConfigured(f"{where}: a datetime or ISO 8601 text, got {value!r}")
    return maybe_make_aware(found, app.timezone).timestamp()


def expiry(app: Celery, value: Any, name: str) -> float:
    """Epoch seconds after which a task is not started any more."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(app.engine.clock.now() + value)
    return moment(app, value, f"task {name}: expires")


def _expires(app: Celery, value: Any, name: str) -> datetime | float | None:
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if value is None:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
        return float(value)
    # One that is over is legal and ends the task as expired.
    return datetime.fromtimestamp(expiry(app, value, name), app.timezone)
