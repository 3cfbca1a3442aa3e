"""From a Celery configuration to the native `App` that does the work."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from taskmq.compat.app.pools import pool_settings
from taskmq.compat.app.queues import Queues
from taskmq.compat.app.scale import Scale
from taskmq.compat.app.settings import Settings
from taskmq.compat.exceptions import ImproperlyConfigured, QueueNotFound
from taskmq.config import BROKER_VARIABLE, CONTENT_TYPES, MIB, Config, QueueConfig, unknown_settings
from taskmq.errors import ConfigError
from taskmq.states import AckMode
from taskmq.stores import DISABLED
from taskmq.transports.urls import IN_PLACE_OF_A_BROKER

if TYPE_CHECKING:
    from taskmq.compat.app.task import Task

__all__ = ("engine_config", "task_options", "ack_mode", "seconds", "serializer_name")

log = logging.getLogger("taskmq.compat")

#: Where messages and results are when a project names no broker. Celery's default is a RabbitMQ on this
#: machine; TaskMQ's is a file beside the project.
DEFAULT_URL = "sqlite:///taskmq.db"
_NATIVE = ("sqlite", "memory")
_LATER = f"a Redis or RabbitMQ broker arrives with the kombu adapter; {IN_PLACE_OF_A_BROKER}"
# A result backend that hands results back to whoever asked is what the embedded store does anyway.
_BESIDE = ("rpc", "cache+memory", "memory", "cache")
_MAX_BODY = 64 * MIB


def engine_config(conf: Settings, queues: Queues) -> Config:
    """The native configuration of these settings. Raises `ConfigError` naming the setting and the value.

    A `taskmq_<name>` setting is passed on as it is and wins over what Celery's settings say.
    """
    scale = Scale(conf.task_priority_scale)
    url = _broker_url(conf)
    settings: dict[str, Any] = {
        "broker_url": url,
        "result_url": _result_url(conf, url),
        "default_queue": queues.default,
        "queues": {name: QueueConfig() for name in queues},
        "concurrency": conf.worker_concurrency,
        "ack": ack_mode(conf.task_acks_late, conf.task_reject_on_worker_lost),
        "time_limit": conf.task_time_limit,
        "soft_time_limit": conf.task_soft_time_limit,
        "max_tasks_per_child": conf.worker_max_tasks_per_child,
        "max_memory_per_child": conf.worker_max_memory_per_child,
        "ignore_result": bool(conf.task_ignore_result),
        "result_expires": seconds(conf.result_expires, "result_expires"),
        "serializer": serializer_name(conf.task_serializer, "task_serializer"),
        "accept_content": _accepted(conf),
        "events": bool(conf.worker_send_task_events),
        "remote_control": bool(conf.worker_enable_remote_control),
        "max_body": _MAX_BODY,
        # Celery's warm shutdown waits for the running tasks without a deadline.
        "drain_timeout": None,
    }
    priority = scale.declared(conf.task_default_priority, "task_default_priority")
    if priority is not None:
        settings["default_priority"] = priority
    settings["prefetch_multiplier"] = _prefetch_multiplier(conf)
    chosen = pool_settings(conf)
    if chosen.pool is not None:
        settings["pool"] = chosen.pool
    settings["start_method"] = chosen.start_method
    settings.update(_own(conf, settings))
    return Config(**settings)


def ack_mode(acks_late: Any, reject_on_worker_lost: Any) -> AckMode:
    """When a message counts as handled, from Celery's two options (DESIGN §7)."""
    if not acks_late:
        return AckMode.ON_START
    return AckMode.ON_FINISH if reject_on_worker_lost else AckMode.LATE


def seconds(value: Any, name: str) -> float | None:
    """A number of seconds or a timedelta as seconds; None and 0 mean without end."""
    if value is None:
        return None
    if isinstance(value, timedelta):
        return value.total_seconds() or None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0:
        return float(value) or None
    raise ImproperlyConfigured(f"{name}: seconds, a timedelta or None, got {value!r}")


def task_options(task: Task, conf: Settings) -> dict[str, Any]:
    """What a Celery task says about its messages, as options of the native task.

    The queue is the one `task_routes` gives it without arguments, for commands that submit it natively
    (`taskmq call`); a Celery call is routed anew each time.
    """
    scale = Scale(conf.task_priority_scale)
    rate = None if conf.worker_disable_rate_limits else task.rate_limit
    return {
        "queue": _queue_of(task),
        "priority": scale.declared(task.priority, f"task {task.name}: priority"),
        "ack": ack_mode(task.acks_late, task.reject_on_worker_lost),
        "rate_limit": rate or None,
        "time_limit": task.time_limit or None,
        "soft_time_limit": task.soft_time_limit or None,
        "ignore_result": None if task.ignore_result is None else bool(task.ignore_result),
        "serializer": (
            serializer_name(task.serializer, f"task {task.name}: serializer")
            if task.serializer
            else None
        ),
    }


def _queue_of(task: Task) -> str:
    queues, options = task.app.amqp.queues, task._get_exec_options()
    try:
        queue: str = task.app.amqp.router.route(options, task.name, task=task)["queue"]
    except (ImproperlyConfigured, QueueNotFound):
        raise
    except Exception:
        # A router of the project's own that looks at the arguments; it is asked again at each call.
        log.debug("task %s cannot be routed without arguments", task.name, exc_info=True)
        return queues.named(options["queue"]) if "queue" in options else queues.default
    return queue


def _broker_url(conf: Settings) -> str:
    elsewhere = os.environ.get(BROKER_VARIABLE)
    if elsewhere:
        # `taskmq -b URL`: the person who starts it says where, whatever the project names.
        return elsewhere
    url = conf.broker_url
    for other in ("broker_write_url", "broker_read_url"):
        value = conf[other]
        if value and url and value != url:
            raise ImproperlyConfigured(
                f"{other} differs from broker_url: workers and producers meet in one place here"
            )
        url = url or value
    if not url:
        if conf.broker_host or conf.broker_transport:
            raise ImproperlyConfigured(f"broker_host, broker_transport: {_LATER}")
        return DEFAULT_URL
    if isinstance(url, (list, tuple)):
        if len(url) != 1:
            raise ImproperlyConfigured(f"broker_url: one URL, several were given; {_LATER}")
        url = url[0]
    if not isinstance(url, str):
        raise ImproperlyConfigured(f"broker_url: text like 'sqlite:///taskmq.db', got {url!r}")
    if ";" in url:
        raise ImproperlyConfigured(f"broker_url: one URL, several were given; {_LATER}")
    scheme = url.partition("://")[0].lower() if "://" in url else url.rstrip(":/").lower()
    if scheme in _NATIVE:
        return url if "://" in url else f"{scheme}://"
    if scheme in ("sqla+sqlite", "sqlalchemy+sqlite"):
        raise ImproperlyConfigured(
            f"broker_url: {scheme}:// is SQLAlchemy's; TaskMQ's own SQLite file is 'sqlite:///<path>'"
        )
    raise ImproperlyConfigured(f"broker_url: scheme {scheme!r} is not there yet; {_LATER}")


def _result_url(conf: Settings, broker_url: str) -> str | None:
    backend = conf.result_backend
    if not backend:
        return None
    if not isinstance(backend, str):
        raise ImproperlyConfigured(
            f"result_backend: a URL; result backend classes are not there yet, got {backend!r}"
        )
    scheme = backend.partition("://")[0].rstrip(":/").lower()
    if scheme in (DISABLED, "disabled"):
        return DISABLED
    if scheme == "sqlite":
        return None if backend == broker_url else backend
    if scheme in _BESIDE or os.environ.get(BROKER_VARIABLE):
        return None
    raise ImproperlyConfigured(
        f"result_backend: {scheme!r} is not there yet; leave it unset (results are kept beside the messages, "
        "in the same file) or name a file with 'sqlite:///<path>'"
    )


def _accepted(conf: Settings) -> tuple[str, ...]:
    names = conf.accept_content
    if isinstance(names, str) or names is None:
        names = [names] if names else ["json"]
    found = tuple(dict.fromkeys(serializer_name(name, "accept_content") for name in names))
    own = serializer_name(conf.task_serializer, "task_serializer")
    if own not in found:
        raise ImproperlyConfigured(
            f"task_serializer {own!r} is not in accept_content ({', '.join(found)}): workers would refuse "
            "what it writes"
        )
    return found


def serializer_name(name: Any, where: str) -> str:
    """The engine's name of a serializer or content type; `ImproperlyConfigured` for any other."""
    short = str(name).removeprefix("application/").removeprefix("x-")
    short = {"python-serialize": "pickle"}.get(short, short)
    if short not in CONTENT_TYPES:
        raise ImproperlyConfigured(f"{where}: one of {', '.join(CONTENT_TYPES)}, got {name!r}")
    return short


def _prefetch_multiplier(conf: Settings) -> int | None:
    """How many messages a worker holds for each it runs: only where the project asks for it, else one."""
    if not conf.value_set_for("worker_prefetch_multiplier"):
        return None
    multiplier = conf.worker_prefetch_multiplier
    if isinstance(multiplier, bool) or not isinstance(multiplier, int) or multiplier < 0:
        raise ImproperlyConfigured(f"worker_prefetch_multiplier: an int from 0, got {multiplier!r}")
    if multiplier == 0 or conf.worker_disable_prefetch:
        # Celery's 0 takes messages without end; nothing here holds what it could not run soon (P16).
        return None
    return int(multiplier)


def _own(conf: Settings, settings: Mapping[str, Any]) -> dict[str, Any]:
    prefix = "taskmq_"
    own = {name[len(prefix) :]: conf[name] for name in conf.written() if name.startswith(prefix)}
    try:
        unknown_settings(own)
    except ConfigError as exc:
        raise ImproperlyConfigured(f"taskmq_ settings: {exc}") from None
    queues = own.get("queues")
    if isinstance(queues, Mapping):
        named = {name: _queue_config(name, value) for name, value in queues.items()}
        own["queues"] = {**settings["queues"], **named}
    return own


def _queue_config(name: str, value: Any) -> QueueConfig:
    if isinstance(value, Mapping):
        try:
            return QueueConfig(**value)
        except ConfigError as exc:
            raise ImproperlyConfigured(f"taskmq_queues[{name!r}]: {exc}") from None
    if isinstance(value, QueueConfig):
        return value
    raise ImproperlyConfigured(
        f"taskmq_queues[{name!r}]: a QueueConfig or its options, got {value!r}"
    )
