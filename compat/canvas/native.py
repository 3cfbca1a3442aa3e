"""From Celery's signatures to the engine's calls, and from the engine's results to Celery's.

The engine stores what follows a step beside its message and submits it in the transaction that settles
the step, so no worker publishes a chain's next step and no chord is polled for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from taskmq import errors, workflow
from taskmq.compat._state import get_current_worker_task
from taskmq.compat.app.adapter import AdapterTask
from taskmq.compat.app.options import ancestors, checked
from taskmq.compat.app.options import engine_options as options_of_call
from taskmq.compat.app.options import routed as routed_options
from taskmq.compat.utils.functional import maybe_list
from taskmq.ids import uuid
from taskmq.result import GroupResult as EngineGroupResult

if TYPE_CHECKING:
    from taskmq.compat.app.base import Celery
    from taskmq.compat.canvas.signature import Signature
    from taskmq.signature import Call

__all__ = ("call_of", "send", "wire")


def send(sig: Signature) -> Any:
    """Submit a chain, a group or a chord, all of it or nothing; its result. Raises as `publish` does."""
    app = sig.app
    call = call_of(app, sig)
    try:
        result = call.apply_async()
    except errors.TransportError as exc:
        from kombu.exceptions import OperationalError

        raise OperationalError(str(exc)) from exc
    made = _result_of(app, result)
    parent = get_current_worker_task()
    return parent.add_trail(made) if parent is not None else made


def wire(app: Celery, sig: Any, *, errback: bool = False) -> dict[str, Any]:
    """A signature as it is stored beside the message it follows."""
    return call_of(app, _sig(app, sig), errback=errback).wire()


def call_of(
    app: Celery, sig: Signature, outer: Mapping[str, Any] | None = None, *, errback: bool = False
) -> Call:
    """The engine's call of a signature. `outer` are the options of the workflows around it.

    What it begins with is checked as an error callback when it is one.
    """
    outer = outer or {}
    options = dict(sig.options)
    kind = sig.subtask_type
    if kind not in ("chain", "group", "chord"):
        return _single(app, sig, options, outer, errback)
    given = checked(app, sig["task"], options)
    if "queue" in given or "routing_key" in given or "exchange" in given:
        given = app.amqp.router.route(given, sig["task"])
    around = {**outer, **given}
    made: Call
    if kind == "chain":
        steps = enumerate(sig["kwargs"]["tasks"])
        made = workflow.chain(
            *(call_of(app, step, around, errback=errback and not n) for n, step in steps)
        )
    elif kind == "group":
        members = sig["kwargs"]["tasks"]
        made = workflow.group([call_of(app, task, around, errback=errback) for task in members])
    else:
        header = call_of(app, sig["kwargs"]["header"], around, errback=errback)
        made = workflow.chord(header, call_of(app, sig["kwargs"]["body"], around))  # type: ignore[call-overload]
    return made.set(**_workflow_options(app, sig["task"], given))


def _single(
    app: Celery, sig: Signature, options: dict[str, Any], outer: Mapping[str, Any], errback: bool
) -> workflow.Signature[Any]:
    name = sig["task"]
    task = app.tasks.get(name)
    own = task._get_exec_options() if task is not None else {}
    # What a workflow says beats the task's own declaration, and a signature's own option beats both.
    defaults = {key: value for key, value in own.items() if key not in outer}
    given = checked(app, name, {**defaults, **options})
    links = _links(app, given)
    if "queue" in outer and not {"queue", "routing_key", "exchange"} & options.keys():
        routed = dict(given)
    else:
        routed = routed_options(app, name, given, sig.args, sig.kwargs, task)
        if "priority" in outer and "priority" not in options:
            routed.pop("priority", None)
    ancestors(routed)
    engine_options = {**options_of_call(app, name, routed), **links}
    target: Any = app.engine.registry.get(name) or name
    if errback and isinstance(target, AdapterTask):
        target = target.as_errback()
    call: workflow.Signature[Any] = workflow.signature(
        target,
        tuple(sig.args),
        dict(sig.kwargs),
        immutable=bool(sig.immutable),
        app=app.engine,
        **{key: value for key, value in engine_options.items() if value is not None},
    )
    return call


def _workflow_options(app: Celery, name: str, given: dict[str, Any]) -> dict[str, Any]:
    links = _links(app, given)
    options = {
        key: value
        for key, value in options_of_call(app, name, given).items()
        if value is not None and key not in ("parent_id", "root_id", "parent_priority")
    }
    return {**options, **links}


def _links(app: Celery, given: dict[str, Any]) -> dict[str, Any]:
    """Callbacks and error callbacks, taken out of the options they were given in, as calls."""
    links: dict[str, Any] = {}
    for key in ("link", "link_error"):
        for one in maybe_list(given.pop(key, None)) or ():
            call = call_of(app, _sig(app, one), errback=key == "link_error")
            links.setdefault(key, []).append(call)
    return links


def _sig(app: Celery, value: Any) -> Signature:
    from taskmq.compat.canvas.signature import maybe_signature

    found: Signature = maybe_signature(value, app=app)
    return found


def _result_of(app: Celery, result: Any) -> Any:
    """Celery's result for one of the engine's, with what it follows."""
    from taskmq.compat.result import GroupResult

    parent = getattr(result, "parent", None)
    above = _result_of(app, parent) if parent is not None else None
    if isinstance(result, EngineGroupResult):
        members = [_result_of(app, member) for member in result]
        made: Any = GroupResult(uuid(), members, app=app, parent=above)
        return made
    made = app.AsyncResult(result.id, task_name=result.task or None, parent=above)
    task = app.tasks.get(result.task)
    made.ignored = task is not None and bool(task.ignore_result)
    return made
