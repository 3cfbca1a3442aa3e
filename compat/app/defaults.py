"""Celery's settings: name, default and the names they had before version 4.

Source: Celery's "Configuration and defaults" page. The second column of a row is the default, the others
are older spellings. Whether a setting has an effect here is said in `support`, how one is looked
up in `settings`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

from taskmq.errors import nearest


class Option(NamedTuple):
    """One setting."""

    name: str
    default: Any
    old: tuple[str, ...]


def _rows(*rows: tuple[Any, ...]) -> list[Option]:
    return [Option(row[0], row[1], tuple(row[2:])) for row in rows]


_PROCESS_LOG = "[%(asctime)s: %(levelname)s/%(processName)s] "

GENERAL = _rows(
    ("accept_content", ["json"], "CELERY_ACCEPT_CONTENT"),
    ("enable_utc", True, "CELERY_ENABLE_UTC", "ENABLE_UTC"),
    ("timezone", None, "CELERY_TIMEZONE"),
    ("imports", (), "CELERY_IMPORTS"),
    ("include", (), "CELERY_INCLUDE"),
)

TASK = _rows(
    ("task_acks_late", False, "CELERY_ACKS_LATE"),
    ("task_acks_on_failure", None, "CELERY_ACKS_ON_FAILURE"),
    ("task_acks_on_failure_or_timeout", True, "CELERY_ACKS_ON_FAILURE_OR_TIMEOUT"),
    ("task_acks_on_timeout", None, "CELERY_ACKS_ON_TIMEOUT"),
    ("task_allow_error_cb_on_chord_header", False, "CELERY_ALLOW_ERROR_CB_ON_CHORD_HEADER"),
    ("task_always_eager", False, "CELERY_ALWAYS_EAGER"),
    ("task_annotations", None, "CELERY_ANNOTATIONS"),
    ("task_compression", None, "CELERY_MESSAGE_COMPRESSION"),
    ("task_create_missing_queue_exchange_type", None, "CELERY_CREATE_MISSING_QUEUE_EXCHANGE_TYPE"),
    ("task_create_missing_queue_type", "classic", "CELERY_CREATE_MISSING_QUEUE_TYPE"),
    ("task_create_missing_queues", True, "CELERY_CREATE_MISSING_QUEUES"),
    ("task_default_delivery_mode", 2, "CELERY_DEFAULT_DELIVERY_MODE"),
    ("task_default_exchange", None, "CELERY_DEFAULT_EXCHANGE"),
    ("task_default_exchange_type", "direct", "CELERY_DEFAULT_EXCHANGE_TYPE"),
    ("task_default_priority", None, "CELERY_DEFAULT_PRIORITY"),
    ("task_default_queue", "celery", "CELERY_DEFAULT_QUEUE"),
    ("task_default_queue_type", "classic", "CELERY_DEFAULT_QUEUE_TYPE"),
    ("task_default_rate_limit", None, "CELERY_DEFAULT_RATE_LIMIT"),
    ("task_default_routing_key", None, "CELERY_DEFAULT_ROUTING_KEY"),
    ("task_eager_propagates", False, "CELERY_EAGER_PROPAGATES_EXCEPTIONS"),
    ("task_ignore_result", False, "CELERY_IGNORE_RESULT"),
    ("task_inherit_parent_priority", False, "CELERY_INHERIT_PARENT_PRIORITY"),
    ("task_protocol", 2, "CELERY_TASK_PROTOCOL"),
    ("task_publish_retry", True, "CELERY_TASK_PUBLISH_RETRY"),
    ("task_publish_retry_policy", {}, "CELERY_TASK_PUBLISH_RETRY_POLICY"),
    ("task_queue_max_priority", None, "CELERY_QUEUE_MAX_PRIORITY"),
    ("task_queues", None, "CELERY_QUEUES"),
    ("task_reject_on_worker_lost", None, "CELERY_REJECT_ON_WORKER_LOST"),
    ("task_remote_tracebacks", False, "CELERY_REMOTE_TRACEBACKS"),
    ("task_repr_maxlevels", 3, "CELERY_REPR_MAXLEVELS"),
    ("task_retry_on_worker_lost", False, "CELERY_RETRY_ON_WORKER_LOST"),
    ("task_routes", None, "CELERY_ROUTES"),
    ("task_send_sent_event", False, "CELERY_SEND_TASK_SENT_EVENT"),
    ("task_serializer", "json", "CELERY_TASK_SERIALIZER"),
    ("task_soft_time_limit", None, "CELERYD_TASK_SOFT_TIME_LIMIT"),
    ("task_store_eager_result", False, "CELERY_STORE_EAGER_RESULT"),
    ("task_store_errors_even_if_ignored", False, "CELERY_STORE_ERRORS_EVEN_IF_IGNORED"),
    ("task_time_limit", None, "CELERYD_TASK_TIME_LIMIT"),
    ("task_track_started", False, "CELERY_TRACK_STARTED"),
)

WORKER = _rows(
    ("worker_agent", None, "CELERYD_AGENT"),
    ("worker_autoscaler", "celery.worker.autoscale:Autoscaler", "CELERYD_AUTOSCALER"),
    (
        "worker_cancel_long_running_tasks_on_connection_loss",
        False,
        "CELERYD_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS",
    ),
    ("worker_concurrency", None, "CELERYD_CONCURRENCY"),
    ("worker_consumer", "celery.worker.consumer:Consumer", "CELERYD_CONSUMER"),
    ("worker_deduplicate_successful_tasks", False, "CELERYD_DEDUPLICATE_SUCCESSFUL_TASKS"),
    ("worker_detect_quorum_queues", True, "CELERYD_DETECT_QUORUM_QUEUES"),
    ("worker_direct", False, "CELERY_WORKER_DIRECT"),
    ("worker_disable_prefetch", False, "CELERYD_DISABLE_PREFETCH"),
    ("worker_disable_rate_limits", False, "CELERY_DISABLE_RATE_LIMITS"),
    ("worker_enable_prefetch_count_reduction", True, "CELERYD_ENABLE_PREFETCH_COUNT_REDUCTION"),
    ("worker_enable_remote_control", True, "CELERY_ENABLE_REMOTE_CONTROL"),
    ("worker_enable_soft_shutdown_on_idle", False, "CELERYD_ENABLE_SOFT_SHUTDOWN_ON_IDLE"),
    ("worker_eta_task_limit", None, "CELERYD_ETA_TASK_LIMIT"),
    ("worker_hijack_root_logger", True, "CELERYD_HIJACK_ROOT_LOGGER"),
    ("worker_log_color", None, "CELERYD_LOG_COLOR"),
    ("worker_log_datefmt", None, "CELERYD_LOG_DATEFMT"),
    ("worker_log_format", _PROCESS_LOG + "%(message)s", "CELERYD_LOG_FORMAT"),
    ("worker_lost_wait", 10.0, "CELERYD_WORKER_LOST_WAIT"),
    ("worker_max_memory_per_child", None, "CELERYD_MAX_MEMORY_PER_CHILD"),
    ("worker_max_tasks_per_child", None, "CELERYD_MAX_TASKS_PER_CHILD"),
    ("worker_pool", "prefork", "CELERYD_POOL"),
    ("worker_pool_putlocks", True, "CELERYD_POOL_PUTLOCKS"),
    ("worker_pool_restarts", False, "CELERYD_POOL_RESTARTS"),
    ("worker_pool_start_method", "fork", "CELERYD_POOL_START_METHOD"),
    ("worker_prefetch_multiplier", 4, "CELERYD_PREFETCH_MULTIPLIER"),
    ("worker_proc_alive_timeout", 4.0, "CELERYD_PROC_ALIVE_TIMEOUT"),
    ("worker_redirect_stdouts", True, "CELERY_REDIRECT_STDOUTS"),
    ("worker_redirect_stdouts_level", "WARNING", "CELERY_REDIRECT_STDOUTS_LEVEL"),
    ("worker_send_task_events", False, "CELERY_SEND_EVENTS", "CELERYD_SEND_EVENTS"),
    ("worker_soft_shutdown_timeout", 0.0, "CELERYD_SOFT_SHUTDOWN_TIMEOUT"),
    ("worker_state_db", None, "CELERYD_STATE_DB"),
    ("worker_task_log_datefmt", None, "CELERYD_TASK_LOG_DATEFMT"),
    (
        "worker_task_log_format",
        _PROCESS_LOG + "%(task_name)s[%(task_id)s]: %(message)s",
        "CELERYD_TASK_LOG_FORMAT",
    ),
    ("worker_timer", None, "CELERYD_TIMER"),
    ("worker_timer_precision", 1.0, "CELERYD_TIMER_PRECISION"),
)

BEAT = _rows(
    ("beat_cron_starting_deadline", None, "CELERYBEAT_CRON_STARTING_DEADLINE"),
    ("beat_enable_remote_control", False, "CELERYBEAT_ENABLE_REMOTE_CONTROL"),
    ("beat_max_loop_interval", 0, "CELERYBEAT_MAX_LOOP_INTERVAL"),
    ("beat_remote_control_max_tick_age", None, "CELERYBEAT_REMOTE_CONTROL_MAX_TICK_AGE"),
    ("beat_schedule", {}, "CELERYBEAT_SCHEDULE"),
    ("beat_schedule_filename", "celerybeat-schedule", "CELERYBEAT_SCHEDULE_FILENAME"),
    ("beat_scheduler", "celery.beat:PersistentScheduler", "CELERYBEAT_SCHEDULER"),
    ("beat_sync_every", 0, "CELERYBEAT_SYNC_EVERY"),
)

BROKER = _rows(
    ("broker_url", None, "BROKER_URL"),
    ("broker_read_url", None, "BROKER_READ_URL"),
    ("broker_write_url", None, "BROKER_WRITE_URL"),
    ("broker_channel_error_retry", False, "BROKER_CHANNEL_ERROR_RETRY"),
    ("broker_connection_max_retries", 100, "BROKER_CONNECTION_MAX_RETRIES"),
    ("broker_connection_retry", True, "BROKER_CONNECTION_RETRY"),
    ("broker_connection_retry_on_startup", None, "BROKER_CONNECTION_RETRY_ON_STARTUP"),
    ("broker_connection_timeout", 4, "BROKER_CONNECTION_TIMEOUT"),
    ("broker_failover_strategy", None, "BROKER_FAILOVER_STRATEGY"),
    ("broker_heartbeat", 120, "BROKER_HEARTBEAT"),
    ("broker_heartbeat_checkrate", 3.0, "BROKER_HEARTBEAT_CHECKRATE"),
    ("broker_host", None, "BROKER_HOST"),
    ("broker_login_method", None, "BROKER_LOGIN_METHOD"),
    (
        "broker_native_delayed_delivery_queue_type",
        "quorum",
        "BROKER_NATIVE_DELAYED_DELIVERY_QUEUE_TYPE",
    ),
    ("broker_password", None, "BROKER_PASSWORD"),
    ("broker_pool_acquire_timeout", None, "BROKER_POOL_ACQUIRE_TIMEOUT"),
    ("broker_pool_limit", 10, "BROKER_POOL_LIMIT"),
    ("broker_port", None, "BROKER_PORT"),
    ("broker_transport", None, "BROKER_TRANSPORT", "BROKER_BACKEND"),
    ("broker_transport_options", {}, "BROKER_TRANSPORT_OPTIONS"),
    ("broker_use_ssl", False, "BROKER_USE_SSL"),
    ("broker_user", None, "BROKER_USER"),
    ("broker_vhost", None, "BROKER_VHOST"),
)

RESULT = _rows(
    ("result_backend", None, "CELERY_RESULT_BACKEND"),
    ("result_accept_content", None, "RESULT_ACCEPT_CONTENT"),
    ("result_backend_always_retry", False, "CELERY_RESULT_BACKEND_ALWAYS_RETRY"),
    (
        "result_backend_base_sleep_between_retries_ms",
        10,
        "CELERY_RESULT_BACKEND_BASE_SLEEP_BETWEEN_RETRIES_MS",
    ),
    ("result_backend_max_retries", float("inf"), "CELERY_RESULT_BACKEND_MAX_RETRIES"),
    (
        "result_backend_max_sleep_between_retries_ms",
        10000,
        "CELERY_RESULT_BACKEND_MAX_SLEEP_BETWEEN_RETRIES_MS",
    ),
    ("result_backend_transport_options", {}, "CELERY_RESULT_BACKEND_TRANSPORT_OPTIONS"),
    ("result_cache_max", -1, "CELERY_MAX_CACHED_RESULTS"),
    ("result_chord_expires", None, "CELERY_RESULT_CHORD_EXPIRES"),
    ("result_chord_join_timeout", 3.0, "CELERY_RESULT_CHORD_JOIN_TIMEOUT"),
    ("result_chord_retry_interval", 1.0, "CELERY_RESULT_CHORD_RETRY_INTERVAL"),
    ("result_compression", None, "CELERY_RESULT_COMPRESSION"),
    ("result_exchange", "celeryresults", "CELERY_RESULT_EXCHANGE"),
    ("result_exchange_type", "direct", "CELERY_RESULT_EXCHANGE_TYPE"),
    ("result_expires", timedelta(days=1), "CELERY_TASK_RESULT_EXPIRES"),
    ("result_extended", False, "CELERY_RESULT_EXTENDED"),
    ("result_failure_expires", None, "CELERY_RESULT_FAILURE_EXPIRES"),
    ("result_persistent", None, "CELERY_RESULT_PERSISTENT"),
    ("result_serializer", "json", "CELERY_RESULT_SERIALIZER"),
)

BUS = _rows(
    ("control_exchange", "celery", "CONTROL_EXCHANGE"),
    ("control_queue_durable", False, "CONTROL_QUEUE_DURABLE"),
    ("control_queue_exclusive", True, "CONTROL_QUEUE_EXCLUSIVE"),
    ("control_queue_expires", 10.0, "CONTROL_QUEUE_EXPIRES"),
    ("control_queue_ttl", 300.0, "CONTROL_QUEUE_TTL"),
    ("event_exchange", "celeryev", "CELERY_EVENT_EXCHANGE"),
    ("event_queue_durable", False, "CELERY_EVENT_QUEUE_DURABLE"),
    ("event_queue_exclusive", True, "CELERY_EVENT_QUEUE_EXCLUSIVE"),
    ("event_queue_expires", 60.0, "CELERY_EVENT_QUEUE_EXPIRES"),
    ("event_queue_prefix", "celeryev", "CELERY_EVENT_QUEUE_PREFIX"),
    ("event_queue_ttl", 5.0, "CELERY_EVENT_QUEUE_TTL"),
    ("event_serializer", "json", "CELERY_EVENT_SERIALIZER"),
)

SECURITY = _rows(
    ("security_cert_store", None, "CELERY_SECURITY_CERT_STORE"),
    ("security_certificate", None, "CELERY_SECURITY_CERTIFICATE"),
    ("security_digest", "sha256", "CELERY_SECURITY_DIGEST"),
    ("security_key", None, "CELERY_SECURITY_KEY"),
    ("security_key_password", None, "CELERY_SECURITY_KEY_PASSWORD"),
)

#: Those of result backends that TaskMQ does not bring: read back as the project wrote them.
STORES = _rows(
    ("cache_backend", None, "CELERY_CACHE_BACKEND"),
    ("cache_backend_options", {}, "CELERY_CACHE_BACKEND_OPTIONS"),
    ("database_engine_callback", None, "DATABASE_ENGINE_CALLBACK"),
    ("database_create_tables_at_setup", True, "DATABASE_CREATE_TABLES_AT_SETUP"),
    ("database_engine_options", {}, "CELERY_RESULT_ENGINE_OPTIONS"),
    ("database_short_lived_sessions", False, "CELERY_RESULT_DB_SHORT_LIVED_SESSIONS"),
    ("database_table_names", None, "CELERY_RESULT_DB_TABLENAMES"),
    ("database_table_schemas", None, "DATABASE_TABLE_SCHEMAS"),
    ("database_url", None, "CELERY_RESULT_DBURI"),
    ("redis_backend_use_ssl", None, "CELERY_REDIS_BACKEND_USE_SSL"),
    ("redis_db", None, "CELERY_REDIS_DB"),
    ("redis_host", None, "CELERY_REDIS_HOST"),
    ("redis_max_connections", None, "CELERY_REDIS_MAX_CONNECTIONS"),
    ("redis_password", None, "CELERY_REDIS_PASSWORD"),
    ("redis_port", None, "CELERY_REDIS_PORT"),
    ("redis_retry_on_timeout", False, "CELERY_REDIS_RETRY_ON_TIMEOUT"),
    ("redis_socket_connect_timeout", None, "CELERY_REDIS_SOCKET_CONNECT_TIMEOUT"),
    ("redis_socket_keepalive", False, "CELERY_REDIS_SOCKET_KEEPALIVE"),
    ("redis_socket_timeout", 120.0, "CELERY_REDIS_SOCKET_TIMEOUT"),
    ("redis_username", None, "CELERY_REDIS_USERNAME"),
)

#: Ours, in Celery's style. `taskmq_<name>` besides sets any setting of `taskmq.Config`.
OWN = _rows(
    ("task_priority_scale", "taskmq"),
)

OPTIONS: dict[str, Option] = {
    option.name: option
    for group in (GENERAL, TASK, WORKER, BEAT, BROKER, RESULT, BUS, SECURITY, STORES, OWN)
    for option in group
}
#: Old spelling to name.
NEW_NAMES: dict[str, str] = {old: o.name for o in OPTIONS.values() for old in o.old}
#: Whole families of one result backend each: known, so that no typo is suspected in them.
STORE_PREFIXES = (
    "arangodb_",
    "azureblockblob_",
    "cassandra_",
    "cosmosdbsql_",
    "couchbase_",
    "elasticsearch_",
    "gcs_",
    "mongodb_",
    "s3_",
    "redbeat_",
)


def canonical(key: str) -> str:
    """The name of a setting in any of its spellings; a name that is no setting is returned as it is."""
    if key in OPTIONS:
        return key
    if key in NEW_NAMES:
        return NEW_NAMES[key]
    lowered = key.lower()
    return lowered if lowered in OPTIONS else key


def likely_meant(key: str) -> str:
    """The setting that an unknown name is probably a misspelling of, or an empty string."""
    if key.lower().startswith(STORE_PREFIXES):
        return ""
    found = nearest(key.lower(), OPTIONS)
    return found.split("'")[1] if found else ""
