"""Aging (P4): waiting raises the effective priority. Off by default, computed at reserve, never stored."""

from __future__ import annotations

from dataclasses import dataclass

from taskmq.priority import MAX_PRIORITY


@dataclass(frozen=True, slots=True)
class Aging:
    """One level per `interval` seconds of waiting, at most `cap` levels."""

    interval: float
    cap: int = 9

    def effective(self, priority: int, visible_at: float, now: float) -> int:
        """`priority + min(cap, wait / interval)`, whole levels, never above 9."""
        waited = now - visible_at
        if waited <= 0:
            return priority
        return min(MAX_PRIORITY, priority + min(self.cap, int(waited / self.interval)))
