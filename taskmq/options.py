"""The options of `@app.task` and of a call: one list each, checked where they are written.

`TaskKeywords` and `SubmitKeywords` are for type checkers and are also the lists that unknown names are
checked against, so the two cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from taskmq.config import CONTENT_TYPES
from taskmq.errors import ConfigError, nearest
from taskmq.message import LAST_MOMENT, MAX_COUNT
from taskmq.policy.limits import rate_interval
from taskmq.priority import declare_priority
from taskmq.retry import RetryPolicy, RetryPriority, check_retry_priority
from taskmq.states import AckMode

if TYPE_CHECKING:
    from typing import TypedDict

    from taskmq.signature import Call
else:

    class TypedDict:
        """At run time only the names count; typing's own compiles every annotation (2 ms of each import)."""

        def __init_subclass__(cls, *, total: bool) -> None:
            pass


#: A template over the task's parameters ("account:{account_id}") or a function of its arguments.
ConcurrencyKeyOf = str | Callable[..., str | None]


class TaskKeywords(TypedDict, total=False):
    """What `@app.task(...)` takes besides `bind`."""

    name: str
    queue: str | None
    priority: int | None
    ack: AckMode | str | None
    retry: RetryPolicy | None
    retry_priority: RetryPriority | None
    time_limit: float | timedelta | None
    soft_time_limit: float | timedelta | None
    rate_limit: str | float | None
    concurrency_key: ConcurrencyKeyOf | None
    concurrency_limit: int
    max_deliveries: int | None
    expires: float | timedelta | None
    ignore_result: bool | None
    result_expires: float | timedelta | None
    serializer: str | None


class SubmitKeywords(TypedDict, total=False):
    """What `apply_async`, `submit`, `ctx.publish` and `app.message` take besides the arguments.

    `priority` -9..9, `eta` a datetime (naive = local time) or epoch seconds, `countdown` seconds from
    now, `expires` seconds from now or a datetime; None is the same as leaving an option out. The last
    group is for code that builds messages on behalf of others (workflows, the Celery shim).
    """

    priority: int | None
    queue: str | None
    eta: datetime | float | None
    countdown: float | timedelta | None
    expires: datetime | float | timedelta | None
    task_id: str | None
    headers: Mapping[str, Any] | None
    max_deliveries: int | None
    concurrency_key: ConcurrencyKeyOf | None
    concurrency_limit: int | None
    link: Call | Sequence[Call] | None
    link_error: Call | Sequence[Call] | None
    time_limit: float | timedelta | None
    soft_time_limit: float | timedelta | None
    ack: AckMode | str | None
    ignore_result: bool | None
    result_expires: float | timedelta | None
    serializer: str | None

    message_id: str | None
    parent_id: str | None
    root_id: str | None
    parent_priority: int | None
    retries: int | None
    embed: Mapping[str, Any] | None
    follow: Mapping[str, Any] | None


TASK_OPTIONS = frozenset(TaskKeywords.__annotations__) | {"bind"}
SUBMIT_OPTIONS = frozenset(SubmitKeywords.__annotations__)


def unknown_options(names: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    """`ConfigError` for the first name that is not an option, with the likely one."""
    for name in names:
        if name not in known:
            raise ConfigError(f"{where}: unknown option {name!r}.{nearest(name, sorted(known))}")


def check_seconds(value: Any, where: str, *, above_zero: bool = False) -> float:
    """A duration as seconds: a number or a timedelta, from 0; `ConfigError` otherwise."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    # The bound also refuses NaN, infinity and ints no float can hold.
    if (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and 0 <= value <= LAST_MOMENT
        and (value > 0 or not above_zero)
    ):
        return float(value)
    bound = "above 0" if above_zero else "from 0"
    raise ConfigError(f"{where}: seconds {bound} or a timedelta, got {value!r}")


def check_count(value: Any, where: str, *, low: int = 1) -> int:
    """An int from `low` to `MAX_COUNT`; `ConfigError` otherwise."""
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= MAX_COUNT:
        return int(value)
    raise ConfigError(f"{where}: an int from {low} to {MAX_COUNT}, got {value!r:.100}")


def check_text(value: Any, where: str) -> str:
    """Text that is not empty; `ConfigError` otherwise."""
    if isinstance(value, str) and value:
        return value
    raise ConfigError(f"{where}: text that is not empty, got {value!r}")


def check_flag(value: Any, where: str) -> bool:
    """True or False; `ConfigError` otherwise."""
    if isinstance(value, bool):
        return value
    raise ConfigError(f"{where}: True or False, got {value!r}")


def check_ack(value: Any, where: str) -> AckMode:
    """An `AckMode` or its name; `ConfigError` otherwise."""
    try:
        return AckMode(value)
    except ValueError:
        modes = ", ".join(repr(mode.value) for mode in AckMode)
        raise ConfigError(f"{where}: one of {modes}, got {value!r}") from None


def check_serializer(value: Any, where: str) -> str:
    """The name of a serializer; `ConfigError` otherwise."""
    if value in CONTENT_TYPES:
        return str(value)
    likely = nearest(str(value), CONTENT_TYPES)
    raise ConfigError(f"{where}: one of {', '.join(CONTENT_TYPES)}, got {value!r}.{likely}")


def check_concurrency_key(value: Any, where: str) -> ConcurrencyKeyOf:
    """A template or a callable; `ConfigError` otherwise."""
    if callable(value) or (isinstance(value, str) and value):
        return value  # type: ignore[no-any-return]
    raise ConfigError(
        f"{where}: text like 'account:{{account_id}}' or a function of the task's arguments, got {value!r}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """What a task says about its messages. None leaves the value to the queue and the `Config`.

    `rate_limit` like "10/m" (P8), `concurrency_key` with `concurrency_limit` (P18), `expires` and
    `result_expires` in seconds (`result_expires=0` keeps results for ever), `bind` passes the context
    first. Raises `ConfigError` naming the option and the value.
    """

    queue: str | None = None
    priority: int | None = None
    bind: bool = False
    ack: AckMode | None = None
    retry: RetryPolicy | None = None
    retry_priority: RetryPriority | None = None
    time_limit: float | None = None
    soft_time_limit: float | None = None
    rate_limit: str | float | None = None
    concurrency_key: ConcurrencyKeyOf | None = None
    concurrency_limit: int = 1
    max_deliveries: int | None = None
    expires: float | None = None
    ignore_result: bool | None = None
    result_expires: float | None = None
    serializer: str | None = None

    def __post_init__(self) -> None:
        check_flag(self.bind, "@task(bind)")
        self._each("queue", check_text)
        self._each("priority", declare_priority)
        self._each("ack", check_ack)
        self._each("retry_priority", check_retry_priority)
        self._each("max_deliveries", check_count)
        self._each("concurrency_limit", check_count)
        self._each("concurrency_key", check_concurrency_key)
        self._each("ignore_result", check_flag)
        self._each("result_expires", check_seconds)
        self._each("serializer", check_serializer)
        for name in ("time_limit", "soft_time_limit", "expires"):
            self._each(name, _above_zero)
        rate_interval(self.rate_limit, "@task(rate_limit)")
        if self.retry is not None and not isinstance(self.retry, RetryPolicy):
            raise ConfigError(
                f"@task(retry): a RetryPolicy, like RetryPolicy(max_retries=3), got {self.retry!r}"
            )

    def _each(self, name: str, check: Callable[[Any, str], Any]) -> None:
        value = getattr(self, name)
        if value is not None:
            object.__setattr__(self, name, check(value, f"@task({name})"))


def _above_zero(value: Any, where: str) -> float:
    return check_seconds(value, where, above_zero=True)
