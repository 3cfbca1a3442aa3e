"""The five fields of a cron line as sets of numbers.

    *      every value                    2,5      these
    */15   every 15th from the first      7-9      from one to the other
    9      this one                       55-5     over the end: 55 to 59 and 0 to 5
                                          1-30/10  every 10th of these

Weekdays count from Sunday, 0, to Saturday, 6; weekdays and months have names, of three letters or whole.
Source: Celery's `crontab` reference.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from taskmq.errors import ConfigError, nearest

__all__ = ["Field", "MINUTE", "HOUR", "DAY_OF_WEEK", "DAY_OF_MONTH", "MONTH_OF_YEAR", "parse"]

_WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)


class Field(NamedTuple):
    """One field: its name, its bounds, and the names of its values from `low` on."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    def value(self, text: str) -> int:
        """The number of a single value; `ConfigError` out of bounds or for a name there is not."""
        text = text.strip()
        if text.isascii() and text.isdigit():
            return self.checked(int(text))
        if len(text) >= 3:
            for number, name in enumerate(self.names, self.low):
                if name.startswith(text.lower()):
                    return number
        raise ConfigError(f"{self.fault(text)}{nearest(text.lower(), self.names)}")

    def checked(self, number: int) -> int:
        """The number; `ConfigError` out of bounds."""
        if self.low <= number <= self.high:
            return number
        raise ConfigError(self.fault(number))

    def fault(self, value: object) -> str:
        """What is said of a value that is not accepted."""
        names = f" or {self.names[0][:3]} to {self.names[-1][:3]}" if self.names else ""
        return f"cron {self.name}: {self.low} to {self.high}{names}, got {value!r}"


MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY_OF_WEEK = Field("day_of_week", 0, 6, _WEEKDAYS)
DAY_OF_MONTH = Field("day_of_month", 1, 31)
MONTH_OF_YEAR = Field("month_of_year", 1, 12, _MONTHS)


def parse(spec: Any, field: Field) -> frozenset[int]:
    """The values of a number, a text, or an iterable of numbers.

    Raises `ConfigError` naming the field, the value and what is accepted; `TypeError` for another kind.
    """
    if isinstance(spec, str):
        return frozenset(number for part in spec.split(",") for number in _part(part, field))
    if _is_number(spec):
        return frozenset({field.checked(spec)})
    if isinstance(spec, Iterable) and not isinstance(spec, (bytes, dict)):
        members = list(spec)
        if members and all(_is_number(member) for member in members):
            return frozenset(field.checked(member) for member in members)
    raise TypeError(
        f"cron {field.name}: an int, a text such as '*/5' or an iterable of ints, got {spec!r}"
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _part(text: str, field: Field) -> list[int]:
    """The values between two commas, in their order from the first one on."""
    span, slash, step = text.strip().partition("/")
    if span == "*":
        numbers = list(range(field.low, field.high + 1))
    else:
        first, dash, last = span.partition("-")
        if not dash and slash:
            raise ConfigError(f"cron {field.name}: '/' follows '*' or a range, got {text!r}")
        numbers = _span(field.value(first), field.value(last) if dash else None, field)
    return numbers[:: _step(step, text, field)] if slash else numbers


def _span(first: int, last: int | None, field: Field) -> list[int]:
    if last is None:
        return [first]
    if last < first:
        return [*range(first, field.high + 1), *range(field.low, last + 1)]
    return list(range(first, last + 1))


def _step(text: str, whole: str, field: Field) -> int:
    if text.isascii() and text.isdigit() and int(text):
        return int(text)
    raise ConfigError(f"cron {field.name}: a step is an int from 1, got {whole!r}")
