"""What task loggers write under a worker."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from taskmq.compat import Celery
from taskmq.compat.utils.log import get_task_logger, name_tasks, task_logger
from taskmq.hooks import WorkerEvent
from taskmq.logformat import SafeFormatter
from tests.compat.conftest import MakeWorker


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What the log of a worker process holds, and none of it left behind."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(SafeFormatter("%(name)s: %(message)s"))
    # What the worker itself says depends on the level another test may have set.
    handler.addFilter(lambda record: not record.name.startswith("taskmq"))
    root = logging.getLogger()
    root.addHandler(handler)
    kept = task_logger.handlers[:]
    level = task_logger.level
    task_logger.setLevel(logging.INFO)
    yield text
    root.removeHandler(handler)
    task_logger.handlers[:] = kept
    task_logger.setLevel(level)


@pytest.mark.parametrize("hook", ["worker_init", "child_init"])
def test_task_logs_begin_with_name_and_id_of_the_run(
    app: Celery, make_worker: MakeWorker, written: io.StringIO, hook: str
) -> None:
    # A logger that is made later above another one becomes its parent, so it comes first.
    above = logging.getLogger("shop")
    log = get_task_logger("shop.tasks")
    inner = app.task(name="inner")(lambda: log.info("inside"))

    @app.task(name="shop.pay")
    def pay(x: int) -> None:
        log.info("paid %d", x)
        task_logger.getChild("deeper").info("deep")
        above.warning("not a task logger")
        inner()

    worker = make_worker(app)
    event: Any = WorkerEvent(worker=worker)
    getattr(app.engine.hooks, hook).send(event)
    name_tasks()
    result = pay.delay(4)
    worker.run_until_idle()
    log.info("outside")

    assert written.getvalue().splitlines() == [
        f"shop.tasks: shop.pay[{result.id}]: paid 4",
        f"celery.task.deeper: shop.pay[{result.id}]: deep",
        "shop: not a task logger",
        f"shop.tasks: shop.pay[{result.id}]: inside",
        "shop.tasks: outside",
    ]


def test_format_of_ones_own_may_use_celerys_names(
    app: Celery, make_worker: MakeWorker, written: io.StringIO
) -> None:
    log = get_task_logger("shop.tasks")
    (ours,) = [
        handler
        for handler in logging.getLogger().handlers
        if isinstance(handler, logging.StreamHandler) and handler.stream is written
    ]
    ours.setFormatter(logging.Formatter("%(task_name)s|%(task_id)s|%(message)s"))
    name_tasks()

    result = app.task(name="job")(lambda: log.info("done")).delay()
    make_worker(app).run_until_idle()

    assert written.getvalue() == f"job|{result.id}|done\n"
