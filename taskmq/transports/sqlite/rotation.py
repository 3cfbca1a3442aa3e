"""The counters of the rotation inside a band, shared by all workers (P3; policy.rotation decides)."""

from __future__ import annotations

import json
from collections.abc import Container, Sequence

from taskmq.policy.rotation import Share, rotate
from taskmq.transports.base import QueueShare
from taskmq.transports.sqlite.tx import Tx


class Rotation:
    """Reads the counters, picks, and writes them back once."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._counters: dict[str, int] = json.loads(tx.row("SELECT counters FROM rotation")[0])

    def pick(self, queues: Sequence[QueueShare], present: Container[str], count: int) -> list[str]:
        """The queues to take `count` messages from, in order, of those `present` in the band."""
        # In the request's order: rotation needs a fixed one.
        shares = [
            Share(share.name, share.weight, self._counters.get(share.name, 0))
            for share in queues
            if share.name in present
        ]
        picks, counters = rotate(shares, count)
        if len(shares) > 1:
            self._counters.update(counters)
        return picks

    def save(self) -> None:
        """Store the counters; only for a band of more than one queue, so that others write nothing."""
        self._tx.execute("UPDATE rotation SET counters = ?", (json.dumps(self._counters),))
