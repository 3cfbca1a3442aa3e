"""Celery's signals. Those that TaskMQ never sends say so when somebody connects to them.

Source: Celery's "Signals" guide. Where each is sent:

    producer      before_task_publish · after_task_publish
    pool child    task_prerun · task_postrun · task_success · task_failure · task_retry · task_revoked
                  worker_process_init · worker_process_shutdown
    worker        setup_logging · after_setup_logger · after_setup_task_logger · celeryd_init
                  worker_init · celeryd_after_setup · worker_ready · worker_shutting_down · worker_shutdown
                  · task_received · task_failure (of a lost child) · import_modules
"""

from __future__ import annotations

from taskmq.compat.utils.dispatch import Signal

__all__ = (
    "before_task_publish",
    "after_task_publish",
    "task_received",
    "task_prerun",
    "task_postrun",
    "task_success",
    "task_failure",
    "task_retry",
    "task_revoked",
    "task_rejected",
    "task_unknown",
    "task_internal_error",
    "task_sent",
    "celeryd_init",
    "celeryd_after_setup",
    "import_modules",
    "worker_init",
    "worker_ready",
    "worker_shutting_down",
    "worker_shutdown",
    "worker_process_init",
    "worker_process_shutdown",
    "worker_before_create_process",
    "heartbeat_sent",
    "setup_logging",
    "after_setup_logger",
    "after_setup_task_logger",
    "beat_init",
    "beat_embedded_init",
    "eventlet_pool_started",
    "eventlet_pool_preshutdown",
    "eventlet_pool_postshutdown",
    "eventlet_pool_apply",
    "user_preload_options",
)

_RUN = {"task_id", "task", "args", "kwargs"}
_LOGGING = {"loglevel", "logfile", "format", "colorize"}
_NO_BEAT = "the periodic process is not there yet"
_NO_EVENTLET = "there is no eventlet or gevent pool yet"

before_task_publish = Signal(
    name="before_task_publish",
    providing_args={
        "body",
        "exchange",
        "routing_key",
        "headers",
        "properties",
        "declare",
        "retry_policy",
    },
)
after_task_publish = Signal(
    name="after_task_publish", providing_args={"body", "exchange", "routing_key"}
)
task_received = Signal(name="task_received", providing_args={"request"})
task_prerun = Signal(name="task_prerun", providing_args=_RUN)
task_postrun = Signal(name="task_postrun", providing_args=_RUN | {"retval"})
task_success = Signal(name="task_success", providing_args={"result", "runtime"})
task_failure = Signal(
    name="task_failure",
    providing_args={"task_id", "exception", "args", "kwargs", "traceback", "einfo"},
)
task_retry = Signal(name="task_retry", providing_args={"request", "reason", "einfo"})
task_revoked = Signal(
    name="task_revoked", providing_args={"request", "terminated", "signum", "expired"}
)
task_rejected = Signal(
    name="task_rejected",
    providing_args={"message", "exc"},
    never_sent="a message that cannot be read becomes a dead letter (`taskmq dlq list`)",
)
task_unknown = Signal(
    name="task_unknown",
    providing_args={"message", "exc", "name", "id"},
    never_sent="an unknown task is tried again and then becomes a dead letter (`taskmq dlq list`)",
)
task_internal_error = Signal(
    name="task_internal_error",
    providing_args={"task_id", "args", "kwargs", "request", "exception", "traceback", "einfo"},
    never_sent="an error of the worker itself is logged under taskmq.run",
)
task_sent = Signal(
    name="task_sent",
    providing_args={"task_id", "task", "args", "kwargs", "eta", "taskset"},
    never_sent="it was replaced by after_task_publish",
)

celeryd_init = Signal(name="celeryd_init", providing_args={"instance", "conf", "options"})
celeryd_after_setup = Signal(name="celeryd_after_setup", providing_args={"instance", "conf"})
import_modules = Signal(name="import_modules")
worker_init = Signal(name="worker_init")
worker_ready = Signal(name="worker_ready")
worker_shutting_down = Signal(
    name="worker_shutting_down", providing_args={"sig", "how", "exitcode"}
)
worker_shutdown = Signal(name="worker_shutdown")
worker_process_init = Signal(name="worker_process_init")
worker_process_shutdown = Signal(name="worker_process_shutdown", providing_args={"pid", "exitcode"})
worker_before_create_process = Signal(
    name="worker_before_create_process",
    never_sent="use worker_process_init, which runs in the new process",
)
heartbeat_sent = Signal(
    name="heartbeat_sent",
    never_sent="ask `taskmq status`, which shows when each worker was last seen",
)

setup_logging = Signal(name="setup_logging", providing_args=_LOGGING)
after_setup_logger = Signal(name="after_setup_logger", providing_args=_LOGGING | {"logger"})
after_setup_task_logger = Signal(
    name="after_setup_task_logger", providing_args=_LOGGING | {"logger"}
)

beat_init = Signal(name="beat_init", never_sent=_NO_BEAT)
beat_embedded_init = Signal(name="beat_embedded_init", never_sent=_NO_BEAT)
eventlet_pool_started = Signal(name="eventlet_pool_started", never_sent=_NO_EVENTLET)
eventlet_pool_preshutdown = Signal(name="eventlet_pool_preshutdown", never_sent=_NO_EVENTLET)
eventlet_pool_postshutdown = Signal(name="eventlet_pool_postshutdown", never_sent=_NO_EVENTLET)
eventlet_pool_apply = Signal(
    name="eventlet_pool_apply",
    providing_args={"target", "args", "kwargs"},
    never_sent=_NO_EVENTLET,
)
user_preload_options = Signal(
    name="user_preload_options",
    providing_args={"app", "options"},
    never_sent="options of one's own on the command line are not there yet",
)
