"""The only place a test may sleep: waiting for a condition with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(
    predicate: Callable[[], T], timeout: float = 10.0, *, every: float = 0.01, what: str = ""
) -> T:
    """Return the first truthy value of `predicate`; fail with the last value after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() >= deadline:
            name = what or getattr(predicate, "__name__", "condition")
            raise AssertionError(
                f"{name} did not come true within {timeout:g} s; last value: {value!r}"
            )
        time.sleep(every)
