"""The project of the stress test: tasks that say when they start and end, and producers of random calls.

python -m tests.stress.project NUMBER SEED      a producer, until a file `enough` appears
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from random import Random

from taskmq import App, Context, QueueConfig
from taskmq.errors import Reject, SubmitUnknown, TransportError
from taskmq.message import Message
from tests.stress import instrument, mutants
from tests.stress.log import Log, to_monotonic
from tests.stress.terms import DATABASE, LEASE, MAX_DELIVERIES

HERE = Path(os.environ["STRESS_DIR"])
QUEUES = {"a": QueueConfig(), "b": QueueConfig(weight=2), "c": QueueConfig(weight=3)}

app = App(
    broker_url=f"sqlite:///{HERE / DATABASE}",
    default_queue="a",
    queues=QUEUES,
    lease=LEASE,
    concurrency=2,
    prefetch=4,
    max_deliveries=MAX_DELIVERIES,
    poll_interval=0.02,
    yield_delay=0.02,
    drain_timeout=0.5,
)
# The process that loads this module; its pool children are forked and keep what it says.
SUPERVISOR = os.getpid()
log = Log(HERE / f"{SUPERVISOR}.jsonl")


@app.hooks.before_submit.connect
def submitting(message: Message) -> None:
    def monotonic(at: float | None) -> float | None:
        return None if at is None else to_monotonic(at)

    log.write(
        "submit",
        id=message.task_id,
        task=message.task.rpartition(".")[2],
        priority=message.priority,
        eta=monotonic(message.eta),
        expires=monotonic(message.expires_at),
    )


@app.hooks.after_submit.connect
def accepted(message: Message) -> None:
    log.write("accepted", id=message.task_id)


def begin(ctx: Context) -> None:
    log.write("start", id=ctx.task_id, supervisor=SUPERVISOR, deliveries=ctx.deliveries)


def end(ctx: Context, how: str = "finish") -> None:
    log.write("end", id=ctx.task_id, how=how)


@app.task(bind=True)
def work(ctx: Context, seconds: float) -> None:
    begin(ctx)
    time.sleep(seconds)
    end(ctx)


@app.task(bind=True)
def again(ctx: Context, seconds: float) -> None:
    """Succeeds at its second try."""
    begin(ctx)
    time.sleep(seconds)
    if ctx.retries == 0:
        end(ctx, "retry")
        ctx.retry(delay=seconds)
    end(ctx)


@app.task(bind=True)
def refuse(ctx: Context, seconds: float) -> None:
    begin(ctx)
    time.sleep(seconds)
    end(ctx, "refuse")
    raise Reject("it is not wanted", requeue=False)


@app.task(bind=True)
def poison(ctx: Context, seconds: float) -> None:
    """Kills whoever runs it."""
    begin(ctx)
    end(ctx, "die")
    os._exit(9)


def produce(number: str, seed: str) -> None:
    """Batches of calls at random, some of them revoked again."""
    random = Random(f"{seed}-{number}")
    pause = threading.Event()
    made = 0
    app.submit(poison, (0.0,), priority=random.randint(-2, 9))
    while not (HERE / "enough").exists():
        for _ in range(random.randint(1, 4)):
            made += 1
            call(random, f"p{number}-{made}")
        pause.wait(random.uniform(0.01, 0.06))


def call(random: Random, name: str) -> None:
    """One call; its id is the producer's, or the app's where `delay` is used."""
    task = random.choices([work, again, refuse], [90, 6, 4])[0]
    seconds = random.choices([0.0, 0.01, 0.04, 0.4], [20, 40, 36, 4])[0]
    try:
        if random.random() < 0.2:
            task.delay(seconds)
            return
        app.submit(
            task,
            (seconds,),
            task_id=name,
            message_id=name,
            queue=random.choice(list(QUEUES)),
            priority=random.randint(-9, 9),
            countdown=random.uniform(0, 0.4) if random.random() < 0.15 else None,
            expires=random.uniform(0.02, 0.5) if random.random() < 0.06 else None,
        )
        if random.random() < 0.04:
            log.write("revoking", id=name)
            (revoked,) = app.revoke([name])
            log.write("revoked", id=name, was=revoked.was.value, ended=revoked.ended)
    except SubmitUnknown:
        log.write("unknown", id=name)
    except TransportError as exc:
        log.write("refused", id=name, error=str(exc))


# What is said is what the engine does, broken or not.
mutants.apply(os.environ.get("STRESS_MUTANT", ""))
instrument.install(log)

if __name__ == "__main__":
    produce(*sys.argv[1:])
