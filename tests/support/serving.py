"""Running a real worker in the test's process: on this thread, with the test's part on another."""

from __future__ import annotations

import threading
from collections.abc import Callable

from taskmq.worker.worker import Worker


def serve(worker: Worker, body: Callable[[], object]) -> int:
    """Run the worker here while `body` runs beside it; then stop it. The worker's exit code.

    What `body` raises is raised here, after the worker has stopped.
    """
    errors: list[BaseException] = []

    def beside() -> None:
        try:
            body()
        except BaseException as exc:
            errors.append(exc)
        finally:
            worker.stop("the test is over", at_once=bool(errors))

    thread = threading.Thread(target=beside, daemon=True)
    thread.start()
    code = worker.run()
    thread.join(10)
    if errors:
        raise errors[0]
    return code
