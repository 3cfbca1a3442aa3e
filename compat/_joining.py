"""Waiting for results: allowed anywhere but inside a task that a worker runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from taskmq.compat._state import _joins, task_join_will_block

__all__ = ("allow_join_result", "denied_join_result", "assert_will_not_block")

_WOULD_BLOCK = (
    "Never call result.get() within a task! It holds a slot while it waits, and once every slot does so "
    "none is left to run what they wait for. Link the tasks instead, or pass disable_sync_subtasks=False."
)


def assert_will_not_block() -> None:
    """RuntimeError when a task that a worker runs would wait here."""
    if task_join_will_block():
        raise RuntimeError(_WOULD_BLOCK)


@contextmanager
def allow_join_result() -> Iterator[None]:
    """Inside the block a task may wait for results."""
    _joins.push(False)
    try:
        yield
    finally:
        _joins.pop()


@contextmanager
def denied_join_result() -> Iterator[None]:
    """Inside the block waiting for results is refused."""
    _joins.push(True)
    try:
        yield
    finally:
        _joins.pop()
