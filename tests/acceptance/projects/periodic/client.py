"""Calls the tasks, and says when the periodic ones are due; prints it as JSON."""

import json
import os
import time
from datetime import datetime, timezone
from pathlib import Path

from news.celery import app
from news.tasks import explain, explain_to, refuse, send, tell

told = {"sent": send.delay("now").get(timeout=30)}

failed = refuse.apply_async(
    ("this",),
    {"code": 4},
    link_error=[explain.s(), explain_to.s("ann", urgent=True), tell.s()],
)
told["error"] = repr(failed.get(timeout=30, propagate=False))
notes = Path(os.environ["NOTES_DIR"], "notes.txt")
deadline = time.monotonic() + 30
while time.monotonic() < deadline:
    lines = notes.read_text().splitlines() if notes.exists() else []
    if len(lines) == 3:
        break
    time.sleep(0.05)
told["notes"] = sorted(line.replace(failed.id, "ID") for line in lines)

told["entries"] = sorted(app.conf.beat_schedule)
digest = app.conf.beat_schedule["digest"]["schedule"]
told["digest"] = repr(digest)
# A Friday evening in Paris; the next digest is on Monday morning.
friday = datetime(2026, 3, 6, 18, 0, tzinfo=timezone.utc)
digest.nowfun = lambda: friday
told["due"] = list(digest.is_due(friday))

print(json.dumps(told))
