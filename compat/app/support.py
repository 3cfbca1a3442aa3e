"""What becomes of each of Celery's settings: used, not needed here, or not there yet.

Every setting is in exactly one of `USED`, `NOT_NEEDED` and `NOT_YET` (a test holds the tables against
`defaults`). A worker's start says which of those a project sets have no effect, and points out names that
look misspelt; nothing is dropped in silence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskmq.compat.app import periodic
from taskmq.compat.app.defaults import OPTIONS, likely_meant
from taskmq.compat.app.pools import pool_settings
from taskmq.errors import nearest

if TYPE_CHECKING:
    from taskmq.compat.app.base import Celery

__all__ = ("USED", "NOT_NEEDED", "NOT_YET", "findings")

USED = frozenset(
    {
        "accept_content",
        "beat_schedule",
        "broker_host",
        "broker_read_url",
        "broker_transport",
        "broker_url",
        "broker_write_url",
        "enable_utc",
        "imports",
        "include",
        "result_backend",
        "result_expires",
        "task_acks_late",
        "task_always_eager",
        "task_annotations",
        "task_create_missing_queues",
        "task_default_priority",
        "task_default_queue",
        "task_default_rate_limit",
        "task_eager_propagates",
        "task_ignore_result",
        "task_inherit_parent_priority",
        "task_priority_scale",
        "task_queues",
        "task_reject_on_worker_lost",
        "task_routes",
        "task_serializer",
        "task_soft_time_limit",
        "task_store_eager_result",
        "task_time_limit",
        "task_track_started",
        "timezone",
        "worker_concurrency",
        "worker_disable_prefetch",
        "worker_disable_rate_limits",
        "worker_enable_remote_control",
        "worker_max_memory_per_child",
        "worker_max_tasks_per_child",
        "worker_pool",
        "worker_pool_start_method",
        "worker_prefetch_multiplier",
        "worker_send_task_events",
    }
)

_CONNECTION = "there is no broker connection to look after"
_RABBIT = "queues are TaskMQ's own, not RabbitMQ's"
_RESULTS = "results are written in the transaction that ends the task"
_BUS = "commands and events go through the store"
_CHORDS = "a chord is counted in the transaction that ends its members"
_LOOP = "the worker has one loop of its own"
_LOGS = "`taskmq worker` leaves the project's handlers alone and writes its own lines otherwise"
_KEPT = "the store has its own settings; it is read back as written"

NOT_NEEDED = {
    "broker_channel_error_retry": _CONNECTION,
    "broker_connection_max_retries": _CONNECTION,
    "broker_connection_retry": _CONNECTION,
    "broker_connection_retry_on_startup": _CONNECTION,
    "broker_connection_timeout": _CONNECTION,
    "broker_failover_strategy": _CONNECTION,
    "broker_heartbeat": _CONNECTION,
    "broker_heartbeat_checkrate": _CONNECTION,
    "broker_login_method": _CONNECTION,
    "broker_native_delayed_delivery_queue_type": _RABBIT,
    "broker_password": _CONNECTION,
    "broker_pool_acquire_timeout": _CONNECTION,
    "broker_pool_limit": _CONNECTION,
    "broker_port": _CONNECTION,
    "broker_transport_options": _CONNECTION,
    "broker_use_ssl": _CONNECTION,
    "broker_user": _CONNECTION,
    "broker_vhost": _CONNECTION,
    "control_exchange": _BUS,
    "control_queue_durable": _BUS,
    "control_queue_exclusive": _BUS,
    "control_queue_expires": _BUS,
    "control_queue_ttl": _BUS,
    "event_exchange": _BUS,
    "event_queue_durable": _BUS,
    "event_queue_exclusive": _BUS,
    "event_queue_expires": _BUS,
    "event_queue_prefix": _BUS,
    "event_queue_ttl": _BUS,
    "event_serializer": _BUS,
    "result_accept_content": "results are read with accept_content",
    "result_backend_always_retry": _RESULTS,
    "result_backend_base_sleep_between_retries_ms": _RESULTS,
    "result_backend_max_retries": _RESULTS,
    "result_backend_max_sleep_between_retries_ms": _RESULTS,
    "result_backend_transport_options": _RESULTS,
    "result_cache_max": "a result that was read is kept by its AsyncResult",
    "result_chord_expires": _CHORDS,
    "result_chord_join_timeout": _CHORDS,
    "result_chord_retry_interval": _CHORDS,
    "result_exchange": _RESULTS,
    "result_exchange_type": _RESULTS,
    "result_extended": "name, worker and retries are always stored, arguments never",
    "result_persistent": "results survive a restart",
    "task_allow_error_cb_on_chord_header": "a failing member always reaches the body's error callback",
    "task_create_missing_queue_exchange_type": _RABBIT,
    "task_create_missing_queue_type": _RABBIT,
    "task_default_delivery_mode": "messages are always kept on disk",
    "task_default_exchange": _RABBIT,
    "task_default_exchange_type": _RABBIT,
    "task_default_queue_type": _RABBIT,
    "task_default_routing_key": _RABBIT,
    "task_publish_retry": "a call that returned is stored; one that was not raises",
    "task_publish_retry_policy": "a call that returned is stored; one that was not raises",
    "task_queue_max_priority": "every queue has all priorities, -9..9",
    "task_repr_maxlevels": "arguments are never written to logs",
    "worker_cancel_long_running_tasks_on_connection_loss": "a worker that lost its lease can change nothing",
    "worker_detect_quorum_queues": _RABBIT,
    "worker_direct": "every worker takes from the queues it names",
    "worker_enable_prefetch_count_reduction": _CONNECTION,
    "worker_eta_task_limit": "delayed tasks wait in the store, no worker holds them",
    "worker_lost_wait": "a lost child is noticed at once",
    "worker_pool_putlocks": "a pool takes no more than it can run",
    "worker_state_db": "revocations are stored with the messages",
    "worker_timer": _LOOP,
    "worker_timer_precision": _LOOP,
    "worker_hijack_root_logger": _LOGS,
    "worker_redirect_stdouts": "what tasks print goes where the worker's output goes",
    "worker_redirect_stdouts_level": "what tasks print goes where the worker's output goes",
    "worker_deduplicate_successful_tasks": "a task that ended is never delivered again",
    **{name: _KEPT for name in OPTIONS if name.startswith(("cache_", "database_", "redis_"))},
}

_BEAT = "the periodic process (beat) is not there yet"
_FLAG = "give the worker's flag instead: "
NOT_YET = {
    "beat_cron_starting_deadline": _BEAT,
    "beat_enable_remote_control": _BEAT,
    "beat_max_loop_interval": _BEAT,
    "beat_remote_control_max_tick_age": _BEAT,
    "beat_schedule_filename": _BEAT,
    "beat_scheduler": _BEAT,
    "beat_sync_every": _BEAT,
    "result_compression": "results are not compressed",
    "result_failure_expires": "result_expires holds for failures too",
    "result_serializer": "results are written with task_serializer",
    "security_cert_store": "messages are not signed",
    "security_certificate": "messages are not signed",
    "security_digest": "messages are not signed",
    "security_key": "messages are not signed",
    "security_key_password": "messages are not signed",
    "task_acks_on_failure": "a failed task is always done with; Reject(requeue=True) puts it back",
    "task_acks_on_failure_or_timeout": "a failed task is always done with; Reject(requeue=True) puts it back",
    "task_acks_on_timeout": "a task that timed out is always done with",
    "task_compression": "messages are not compressed",
    "task_protocol": "messages are protocol 2",
    "task_remote_tracebacks": "the traceback is result.traceback, as text",
    "task_retry_on_worker_lost": "task_reject_on_worker_lost with task_acks_late delivers it again",
    "task_send_sent_event": "events tell of tasks from their start on",
    "task_store_errors_even_if_ignored": "a call that ignores its result stores no failure; `taskmq events` "
    "tells of it",
    "worker_agent": _LOOP,
    "worker_autoscaler": "the number of slots is fixed",
    "worker_consumer": _LOOP,
    "worker_enable_soft_shutdown_on_idle": _FLAG + "--drain-timeout",
    "worker_log_color": _LOGS,
    "worker_log_datefmt": _LOGS,
    "worker_log_format": _LOGS,
    "worker_pool_restarts": "restart the worker; TERM waits for its running tasks",
    "worker_proc_alive_timeout": "a child has as long as it needs to start",
    "worker_soft_shutdown_timeout": _FLAG + "--drain-timeout",
    "worker_task_log_datefmt": _LOGS,
    "worker_task_log_format": _LOGS,
}

#: Attributes a task may have without being asked whether they are misspelt.
_TASK_OPTIONS = (
    "acks_late",
    "autoretry_for",
    "bind",
    "concurrency_key",
    "concurrency_limit",
    "default_retry_delay",
    "dont_autoretry_for",
    "expires",
    "ignore_result",
    "max_deliveries",
    "max_retries",
    "name",
    "priority",
    "queue",
    "rate_limit",
    "reject_on_worker_lost",
    "retry_backoff",
    "retry_backoff_max",
    "retry_jitter",
    "retry_kwargs",
    "routing_key",
    "serializer",
    "soft_time_limit",
    "store_errors_even_if_ignored",
    "throws",
    "time_limit",
    "track_started",
    "trail",
    "typing",
)


def findings(app: Celery) -> list[str]:
    """What a project sets and does not get, and what looks misspelt: one line each, for people.

    A setting that has its default value is not mentioned.
    """
    conf = app.conf
    lines = [*periodic.findings(app), *pool_settings(conf).notes]
    for name in sorted(conf.written()):
        if name in NOT_YET and conf[name] != OPTIONS[name].default:
            lines.append(f"setting {name} has no effect: {NOT_YET[name]}")
        elif name not in OPTIONS and not name.startswith("taskmq_"):
            meant = likely_meant(name)
            if meant:
                lines.append(f"setting {name!r} is not one of Celery's; is {meant!r} meant?")
    for task in app.tasks.values():
        for attribute in getattr(task, "_given_options", ()):
            if not hasattr(_task_base(), attribute) and attribute not in _TASK_OPTIONS:
                meant = nearest(attribute, _TASK_OPTIONS)
                if meant:
                    lines.append(f"task {task.name}: unknown option {attribute!r}.{meant}")
    return lines


def _task_base() -> type:
    from taskmq.compat.app.task import Task

    return Task
