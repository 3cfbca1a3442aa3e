"""Calls of every kind the tutorial has; prints what it sees as JSON."""

import json
from datetime import datetime, timedelta, timezone

from celery import chain, chord, group
from celery.result import AsyncResult
from proj.celery import app
from proj.more import endless, gives_up, progress, unsteady, who
from proj.tasks import add, div, mul, xsum

seen = {}

result = add.delay(2, 2)
seen["delay"] = result.get(timeout=20)
seen["by id"] = [
    AsyncResult(result.id, app=app).get(timeout=20),
    AsyncResult(result.id, app=app).state,
]

result = add.apply_async((2, 2), countdown=0.2)
seen["countdown"] = result.get(timeout=20)

later = datetime.now(timezone.utc) + timedelta(seconds=0.2)
seen["eta"] = mul.apply_async((3, 3), eta=later).get(timeout=20)

failed = div.delay(1, 0)
seen["error"] = type(failed.get(timeout=20, propagate=False)).__name__
seen["failed"] = [
    failed.state,
    failed.failed(),
    failed.successful(),
    "ZeroDivisionError" in failed.traceback,
]
try:
    failed.get()
except ZeroDivisionError as exc:
    seen["raised"] = str(exc)

expired = add.apply_async((1, 1), expires=datetime.now(timezone.utc) - timedelta(seconds=5))
seen["expired"] = [type(expired.get(timeout=20, propagate=False)).__name__, expired.state]

seen["retried"] = unsteady.delay(2).get(timeout=30)
worn_out = unsteady.delay(3)
seen["worn out"] = type(worn_out.get(timeout=30, propagate=False)).__name__
seen["gave up"] = type(gives_up.delay().get(timeout=30, propagate=False)).__name__
seen["ids"] = {"worn out": worn_out.id}

mine = who.delay()
told = mine.get(timeout=20)
seen["request"] = {key: told[key] for key in told if key != "id"}
seen["same id"] = told["id"] == mine.id

seen["send_task"] = app.send_task("proj.tasks.add", args=[5, 6]).get(timeout=20)
seen["chain"] = chain(add.s(4, 4), mul.s(8))().get(timeout=20)
seen["pipe"] = (add.s(1, 1) | mul.s(10) | add.s(1)).delay().get(timeout=20)
seen["group"] = group(add.s(i, i) for i in range(5))().get(timeout=20)
seen["chord"] = chord((add.s(i, i) for i in range(5)), xsum.s())().get(timeout=20)
seen["link"] = add.apply_async((2, 2), link=add.s(8)).get(timeout=20)
seen["soft limit"] = endless.delay().get(timeout=30)

halted = progress.delay(3)
deadline = datetime.now() + timedelta(seconds=20)
while halted.state != "HALTED" and datetime.now() < deadline:
    pass
seen["own state"] = [halted.state, halted.info]

print(json.dumps(seen, sort_keys=True))
