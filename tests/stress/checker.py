"""Reconciles what was accepted with what became of it (reliability §5): one function per invariant.

All times are of one machine's wall clock. A checker that finds nothing proves nothing by itself:
`test_checker` shows that each of these faults is found.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

Event = Mapping[str, Any]

# The store keeps microseconds.
TICK = 1e-5


def read_logs(directory: Path) -> list[Event]:
    """Every whole line of every log; a torn last line of a killed writer is left out."""
    events = []
    for path in sorted(directory.glob("*.jsonl")):
        for line in path.read_bytes().split(b"\n"):
            if line.endswith(b"}"):
                events.append(json.loads(line))
    return sorted(events, key=lambda e: e["t"])


def of_kind(events: Iterable[Event], kind: str) -> list[Event]:
    return [e for e in events if e["ev"] == kind]


def lost(events: list[Event], ended: set[str]) -> list[str]:
    """I1: accepted, and neither finished nor dead."""
    return sorted({e["id"] for e in of_kind(events, "accepted")} - ended)


def unheard_of(events: list[Event]) -> list[str]:
    """Claimed, and never submitted."""
    submitted = {i for e in of_kind(events, "submit") for i in e["ids"]}
    return sorted({e["id"] for e in of_kind(events, "claimed")} - submitted)


def acked_twice(events: list[Event]) -> list[str]:
    """I3: finished with effect more than once."""
    acks: dict[str, int] = defaultdict(int)
    for e in of_kind(events, "acked"):
        acks[e["id"]] += 1
    return sorted(i for i, count in acks.items() if count > 1)


def claimed_after_ack(events: list[Event]) -> list[str]:
    """I8: delivered again after it was finished."""
    acked = {e["id"]: e["t"] for e in of_kind(events, "acked")}
    return sorted(
        {e["id"] for e in of_kind(events, "claimed") if e["at"] > acked.get(e["id"], e["at"])}
    )


def overlapping(events: list[Event]) -> list[tuple[str, float]]:
    """I2 and I4: claimed while an earlier claim's lease was live and nobody had given it back."""
    until: dict[tuple[str, int], float] = {}
    given: dict[tuple[str, int], float] = {}
    claims: dict[str, list[Event]] = defaultdict(list)
    for e in events:
        key = (e.get("id", ""), e.get("token", 0))
        if e["ev"] in ("claimed", "renewed"):
            until[key] = max(e["until"], until.get(key, 0.0))
        elif e["ev"] == "giving":
            given.setdefault(key, e["t"])
        if e["ev"] == "claimed":
            claims[e["id"]].append(e)
    found = []
    for task_id, mine in claims.items():
        mine.sort(key=lambda e: e["at"])
        for earlier, later in pairwise(mine):
            key = (task_id, earlier["token"])
            free_at = min(until[key], given.get(key, until[key]))
            if later["at"] < free_at - TICK:
                found.append((task_id, later["at"]))
    return found


def too_early(events: list[Event]) -> list[str]:
    """I7: claimed before its eta."""
    eta = {e["id"]: e["eta"] for e in of_kind(events, "accepted") if e["eta"] is not None}
    claims = of_kind(events, "claimed")
    return sorted({e["id"] for e in claims if e["at"] < eta.get(e["id"], 0.0) - TICK})


def delivered_too_often(events: list[Event], limit: int) -> list[str]:
    """I5: more deliveries than allowed."""
    return sorted({e["id"] for e in of_kind(events, "claimed") if e["deliveries"] > limit})


def torn_turns(events: list[Event]) -> list[float]:
    """When a process began a turn that it did not live to log: it may have claimed in silence."""
    last: dict[int, Event] = {}
    for e in events:
        if "pid" in e:
            last[e["pid"]] = e
    return [e["t"] for e in last.values() if e["ev"] != "turned" and e["ev"] != "accepted"]


def passed_over(events: list[Event], lease: float) -> list[tuple[str, int]]:
    """I6: claims made while a more urgent message, stored and due before, had never been claimed.

    Left out are messages that a torn turn may have held until its lease ended.
    """
    torn = torn_turns(events)
    first: dict[str, float] = {}
    claims = sorted(of_kind(events, "claimed"), key=lambda e: e["at"])
    for e in claims:
        first.setdefault(e["id"], e["at"])
    # (time, what happens first at one time, …): leaving before looking before arriving.
    timeline: list[tuple[float, int, int, str]] = []
    for e in of_kind(events, "accepted"):
        arrived = max(e["t"], e["eta"] or 0.0) + TICK
        left = first.get(e["id"], float("inf"))
        hidden = any(arrived < t + lease <= left + TICK for t in torn)
        if arrived < left and not hidden:
            timeline.append((arrived, 2, e["priority"], e["id"]))
            timeline.append((left, 0, e["priority"], e["id"]))
    timeline += [(e["at"], 1, e["priority"], e["id"]) for e in claims]
    waiting: dict[int, int] = defaultdict(int)
    found = []
    for _, what, priority, task_id in sorted(timeline):
        if what == 2:
            waiting[priority] += 1
        elif what == 0:
            waiting[priority] -= 1
        elif any(count for level, count in waiting.items() if level > priority):
            found.append((task_id, priority))
    return found
