"""Loggers under Celery's names: `get_task_logger(__name__)` is a child of `celery.task`.

Under `taskmq worker` what is logged through them inside a task begins with the task's `name[id]`.
"""

from __future__ import annotations

import logging

from taskmq.logformat import IN_TASK

__all__ = (
    "get_logger",
    "get_task_logger",
    "base_logger",
    "task_logger",
    "worker_logger",
    "LOG_LEVELS",
    "mlevel",
    "name_tasks",
)

base_logger = logging.getLogger("celery")
task_logger = logging.getLogger("celery.task")
worker_logger = logging.getLogger("celery.worker")

#: Level numbers by name and names by number.
LOG_LEVELS: dict[str | int, int | str] = {}
for _level in ("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"):
    LOG_LEVELS[_level] = getattr(logging, _level)
    LOG_LEVELS[getattr(logging, _level)] = _level
LOG_LEVELS["WARN"] = logging.WARNING
LOG_LEVELS["FATAL"] = logging.CRITICAL


def _within(parent: logging.Logger, logger: logging.Logger) -> bool:
    above: logging.Logger | None = logger
    while above is not None:
        if above is parent:
            return True
        above = above.parent
    return False


def get_logger(name: str) -> logging.Logger:
    """The logger of that name; one directly under the root is moved under `celery`."""
    logger = logging.getLogger(name)
    if logger.parent is logging.root and logger is not base_logger:
        logger.parent = base_logger
    return logger


def get_task_logger(name: str) -> logging.Logger:
    """The logger of that name as a child of `celery.task`, so that the task log settings reach it.

    Raises RuntimeError for the names `celery` and `celery.task` themselves.
    """
    if name in ("celery", "celery.task"):
        raise RuntimeError(f"Logger name {name!r} is reserved!")
    logger = get_logger(name)
    if not _within(task_logger, logger):
        logger.parent = task_logger
    return logger


def mlevel(level: int | str | None) -> int:
    """A level as a number, given as a number or a name in either case."""
    if isinstance(level, str):
        found = LOG_LEVELS.get(level.upper())
        if not isinstance(found, int):
            raise ValueError(
                f"unknown log level {level!r}; one of DEBUG, INFO, WARNING, ERROR, CRITICAL"
            )
        return found
    return level or 0


class _NamesTasks(logging.Handler):
    """Writes nothing: tells the handlers above in which run a record was logged.

    A handler, because a filter of a logger does not see what its children log.
    """

    def handle(self, record: logging.LogRecord) -> bool:
        from taskmq.compat._state import get_current_worker_task

        task = get_current_worker_task()
        if task is not None:
            # Celery's names for the two, which a project's own format may use.
            vars(record).update(task_name=task.name, task_id=task.request.id)
            setattr(record, IN_TASK, f"{task.name}[{task.request.id}]")
        return True


def name_tasks() -> None:
    """Have records of task loggers say in which run they were logged. Once per process."""
    if not any(isinstance(handler, _NamesTasks) for handler in task_logger.handlers):
        task_logger.addHandler(_NamesTasks())
