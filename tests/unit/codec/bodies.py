"""What the codec's tests share."""

from __future__ import annotations

from typing import Any

EMPTY_EMBED = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}


def nested(levels: int) -> Any:
    """Lists in lists, that many deep."""
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value
