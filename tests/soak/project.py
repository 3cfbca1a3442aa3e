"""The soak's application, for the producer and for `taskmq -A tests.soak.project worker`."""

from __future__ import annotations

import os

from taskmq import App

# Results are stored and swept all the time: kept for the usual day, a million of them would only say that
# stored results take room.
app = App(
    broker_url=os.environ.get("TASKMQ_SOAK_URL", "memory://"),
    result_expires=2.0,
)

_LEAK = int(os.environ.get("TASKMQ_SOAK_LEAK", "0"))
_kept: list[bytearray] = []


@app.task()
def noop() -> None:
    """Nothing; `TASKMQ_SOAK_LEAK` bytes are lost each time, to see that the soak notices."""
    if _LEAK:
        _kept.append(bytearray(_LEAK))
