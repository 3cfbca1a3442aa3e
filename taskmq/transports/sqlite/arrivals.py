"""What moving the due messages to ready would do to their concurrency keys, without doing it.

A look (peek, preview) happens before the reserve that moves them. One that its key would block must not
be promised, or a worker yields for nothing.
"""

from __future__ import annotations

from taskmq.policy.limits import Holder, admit
from taskmq.transports.sqlite import keys
from taskmq.transports.sqlite.rows import Place
from taskmq.transports.sqlite.tx import Tx


class Arrivals:
    """Asked about every due message in the order of promotion: by band, then by due time."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self._holders: dict[str, list[Holder]] = {}
        #: The sequences of those that would lose their key to a more urgent one.
        self.displaced: set[int] = set()

    def admits(self, place: Place) -> bool:
        """Whether this one would become claimable."""
        if not place.keyed:
            return True
        key, limit = keys.key_of(self._tx, place.seq)
        holders = self._holders.get(key)
        if holders is None:
            holders = self._holders[key] = keys.holders(self._tx, key)
        if any(holder.seq == place.seq for holder in holders):
            return True
        sort_key = (place.npri, place.visible_at, place.seq)
        admitted, displaced = admit(sort_key, holders, limit)
        if displaced is not None:
            self.displaced.add(displaced)
            holders[:] = [holder for holder in holders if holder.seq != displaced]
        if admitted:
            holders.append(Holder(place.seq, sort_key, swappable=True))
        return admitted
