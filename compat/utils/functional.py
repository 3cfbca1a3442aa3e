"""Helpers over values and sequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

__all__ = ("maybe_list", "chunks", "noop", "first", "is_list")


def is_list(value: Any) -> bool:
    """Whether a value is iterable and not text, bytes or a mapping."""
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, dict))


def maybe_list(value: Any) -> list[Any] | None:
    """A list of one for a single value, a list of the members of a sequence, None for None."""
    if value is None:
        return None
    return list(value) if is_list(value) else [value]


def chunks(values: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """The values in lists of `size`, the last one possibly shorter."""
    rest = iter(values)
    while part := list(islice(rest, size)):
        yield part


def first(predicate: Any, values: Iterable[Any]) -> Any:
    """The first value for which `predicate` holds (that is not None, without one), else None."""
    return next((v for v in values if (predicate(v) if predicate else v is not None)), None)


def noop(*args: Any, **kwargs: Any) -> None:
    """Takes anything and does nothing."""
