"""What a test and the processes it starts agree on; the projects themselves are only ever loaded in those."""

from __future__ import annotations

#: The file of the kill-and-reconcile run, in its directory.
DATABASE = "stress.db"
LEASE = 0.6
MAX_DELIVERIES = 5

# -- of the run that passes every failpoint

POINTS_LEASE = 0.5
SLOTS = 2
#: One for each slot, running until the urgent message is there; then more than a worker may hold.
LONG = ("long-0", "long-1")
NAPS = tuple(f"nap-{number}" for number in range(8))
#: The ids of what must have succeeded in the end, besides the chord.
NAMES = (*LONG, *NAPS, "urgent")
PARTS = 3
