"""Sharing one band between queues: smooth weighted round robin, at least one each (P3, P10). Pure.

Every pick adds each queue's weight to its counter and takes the sum of weights from the queue
picked, so that over time queues are served in proportion to their weights and evenly spread. The
counters are stored with the queues: fair over all workers, and recomputable.
"""

from __future__ import annotations

from typing import NamedTuple


class Share(NamedTuple):
    """One queue that has messages in the band: its weight and its stored counter."""

    queue: str
    weight: int
    counter: int = 0


def rotate(shares: list[Share], count: int) -> tuple[list[str], dict[str, int]]:
    """The queues to take from, in order, for `count` messages; and every queue's new counter.

    When `count` reaches the number of queues each gets at least one (P3); what that gives out of
    turn is charged to the counters, so later picks make up for it.
    """
    if len(shares) == 1:
        # The counter of a queue alone in its band does not move: nothing to write for the store.
        only = shares[0]
        return [only.queue] * count, {only.queue: only.counter}
    weights = {s.queue: s.weight for s in shares}
    order = list(weights)
    total = sum(weights.values())
    # What was stored may belong to other weights and other queues: a debt stays within one round of
    # these, or a queue would be repaid by shutting the others out.
    counters = {s.queue: _within(total, s.counter) for s in shares}
    picks: list[str] = []
    owed = set(order) if count >= len(order) else set()
    for _ in range(count):
        for queue in order:
            counters[queue] += weights[queue]
        open_to = [q for q in order if q in owed] if len(owed) >= count - len(picks) else order
        # max() keeps the first of equals, and `shares` comes in the caller's fixed queue order.
        chosen = max(open_to, key=counters.__getitem__)
        counters[chosen] -= total
        owed.discard(chosen)
        picks.append(chosen)
    return picks, {queue: _within(total, counter) for queue, counter in counters.items()}


def _within(total: int, counter: int) -> int:
    return max(-total, min(total, counter))
