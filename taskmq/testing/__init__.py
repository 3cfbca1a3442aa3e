"""Testing projects that use TaskMQ: the real worker on a virtual clock, in the test's own process.

    app = taskmq.testing.app()

    with taskmq.testing.worker(app) as w:
        result = my_task.delay(1)
        w.run_until_idle()
        w.advance(60)

`isolated(app)` puts an application's own app on memory and a virtual clock for a test.
`taskmq.testing.conformance` is the suite for transports.
"""

from __future__ import annotations

from taskmq.testing.virtual import VirtualWorker, app, isolated, worker

__all__ = ["VirtualWorker", "app", "isolated", "worker"]
