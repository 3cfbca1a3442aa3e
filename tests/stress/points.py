"""A project whose messages pass every failpoint, and its producer, which may be killed and started again."""

from __future__ import annotations

import os
import time
from pathlib import Path

from taskmq import App, Context, Priority
from taskmq.workflow import chord
from tests.stress.log import Log, read_logs
from tests.stress.terms import LONG, NAPS, PARTS, POINTS_LEASE, SLOTS
from tests.support.waiting import wait_until

HERE = Path(os.environ["STRESS_DIR"])

app = App(
    broker_url=f"sqlite:///{HERE / 'points.db'}",
    lease=POINTS_LEASE,
    concurrency=SLOTS,
    prefetch=5,
    poll_interval=0.02,
    yield_delay=0.01,
    drain_timeout=5.0,
)
log = Log(HERE / "events.jsonl")
SENT = HERE / "sent"


@app.task(bind=True)
def nap(ctx: Context, seconds: float) -> None:
    log.write("start", id=ctx.task_id, deliveries=ctx.deliveries)
    if ctx.task_id in LONG:
        wait_until(SENT.exists, 15, what="the urgent message")
    time.sleep(seconds)


@app.task
def part(number: int) -> int:
    return number


@app.task(bind=True)
def total(ctx: Context, parts: list[int]) -> int:
    log.write("total", id=ctx.task_id, parts=parts)
    return sum(parts)


def produce() -> None:
    """All messages; what an earlier, killed producer stored is left as it is (`message_id` is known)."""
    for name in LONG:
        # Long enough for a renewal, and for a look at what waits.
        app.submit(nap, (0.3,), task_id=name, message_id=name)
    for name in NAPS:
        # The last ones come through `scheduled`.
        countdown = 0.1 if name >= "nap-6" else None
        app.submit(nap, (0.01,), task_id=name, message_id=name, countdown=countdown)
    chord([part.s(number) for number in range(PARTS)])(total.s())
    # All slots are taken, and all there is room for is held: somebody has to give way to it.
    wait_until(lambda: len({e["id"] for e in read_logs(HERE)}) >= SLOTS, 15, what="a busy worker")
    app.submit(nap, (0.0,), task_id="urgent", message_id="urgent", priority=Priority.CRITICAL)
    SENT.touch()


if __name__ == "__main__":
    produce()
