"""A Celery project under the virtual worker, as docs/testing.md tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import taskmq.testing
from taskmq.compat import Celery


def test_projects_own_app_is_isolated_for_a_test(tmp_path: Path) -> None:
    database = tmp_path / "real.db"
    app = Celery("proj", broker=f"sqlite:///{database}", set_as_current=False)

    @app.task(bind=True, default_retry_delay=60)
    def job(self: Any) -> int:
        if not self.request.retries:
            raise self.retry()
        return int(self.request.retries)

    native = app.__taskmq_app__()
    with taskmq.testing.isolated(native), taskmq.testing.worker(native) as worker:
        result = job.apply_async(countdown=3600)
        worker.run_until_idle()
        early = result.state
        worker.advance(3661)

        assert (early, result.get(timeout=0)) == ("PENDING", 1)
    assert not database.exists()
