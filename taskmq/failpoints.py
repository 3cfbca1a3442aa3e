"""Named places where a test may kill, stop, delay or fail this very process (reliability §4, "Failpoints").

They stand where a crash has a window of its own: between a commit and what follows it, or inside a
transaction.
Nothing happens at them unless the environment variable TASKMQ_FAILPOINTS is set when this module is imported:

    TASKMQ_FAILPOINTS="POINT=ACTION[:SECONDS][#N][@PATH]; …"

    after_claim=kill              SIGKILL at the first passage
    in_settle=sleep:0.5           at every passage half a second
    before_start=raise#3          only at the third passage in a process (a fork goes on counting)
    after_claim=kill@/tmp/x/once  only if this passage creates the file: once, over restarts and processes

`exit` ends the process without any clean-up (code 1), `stop` is SIGSTOP, `raise` raises `FailpointReached`.
A text that is none of this raises `ConfigError` at the import.
"""

from __future__ import annotations

import enum
import os
import re
import signal
import time
from collections.abc import Callable
from itertools import count

from taskmq.errors import ConfigError

VARIABLE = "TASKMQ_FAILPOINTS"


class Failpoint(enum.Enum):
    """Every place, in the order a message meets them."""

    #: Inside the submitting transaction, before its commit.
    IN_SUBMIT = "in_submit"
    #: The submit is committed; the producer does not know it yet.
    AFTER_SUBMIT = "after_submit"
    #: Due messages are moved, the transaction is open.
    IN_PROMOTE = "in_promote"
    #: Messages are taken, the transaction is open.
    IN_CLAIM = "in_claim"
    #: The reserve is committed, nothing of it is dispatched.
    AFTER_CLAIM = "after_claim"
    #: A more urgent message waits; the unstarted one is not yet handed back.
    BEFORE_YIELD = "before_yield"
    #: Leases are due for renewal.
    BEFORE_EXTEND = "before_extend"
    #: A pool child has come up and not said so.
    CHILD_BOOT = "child_boot"
    #: The process that runs tasks has the job; no user code has run.
    BEFORE_START = "before_start"
    #: User code has ended; nobody knows it yet.
    AFTER_RUN = "after_run"
    #: The coordinator has outcomes; their transaction has not begun.
    BEFORE_SETTLE = "before_settle"
    #: The last member of a chord is counted, its body not yet submitted; the transaction is open.
    IN_CHORD = "in_chord"
    #: Outcomes and what follows them are written, the transaction is open.
    IN_SETTLE = "in_settle"
    #: The outcomes are committed.
    AFTER_SETTLE = "after_settle"
    #: Draining: what has not started is not yet handed back.
    BEFORE_RELEASE = "before_release"
    #: Lost leases are taken back, the transaction is open.
    IN_REAP = "in_reap"
    #: The statements of a migration are done, its version is not written.
    IN_MIGRATION = "in_migration"


class FailpointReached(RuntimeError):
    """What the action `raise` raises: like a fault of our own, not one of the errors with a meaning."""


_SPEC = re.compile(
    r"(?P<point>\w+)=(?P<action>\w+)(:(?P<seconds>[\d.]+))?(#(?P<nth>\d+))?(@(?P<marker>.+))?"
)


class Armed:
    """One action at one point."""

    def __init__(self, action: Callable[[], None], *, nth: int | None, marker: str | None) -> None:
        self._action = action
        self._nth = nth
        self._marker = marker
        # `next` is atomic, also between threads.
        self._passages = count(1)

    def passed(self) -> None:
        """A thread passes the point."""
        passage = next(self._passages)
        if self._nth is not None and passage != self._nth:
            return
        if self._marker is None or _created(self._marker):
            self._action()


def parse(text: str) -> dict[Failpoint, Armed]:
    """What is armed by a text of the form above. Raises `ConfigError`."""
    armed: dict[Failpoint, Armed] = {}
    for spec in filter(None, (part.strip() for part in text.split(";"))):
        found = _SPEC.fullmatch(spec)
        if found is None:
            raise ConfigError(f"{VARIABLE}: POINT=ACTION[:SECONDS][#N][@PATH], got {spec!r}")
        try:
            point = Failpoint(found["point"])
        except ValueError:
            names = ", ".join(p.value for p in Failpoint)
            raise ConfigError(f"{VARIABLE}: no point {found['point']!r}; one of {names}") from None
        if point in armed:
            raise ConfigError(f"{VARIABLE}: {point.value} is given twice")
        nth = None if found["nth"] is None else int(found["nth"])
        if nth == 0:
            raise ConfigError(f"{VARIABLE}: passages count from 1, got {spec!r}")
        action = _action(point, found["action"], found["seconds"])
        armed[point] = Armed(action, nth=nth, marker=found["marker"])
    return armed


def _action(point: Failpoint, name: str, seconds: str | None) -> Callable[[], None]:
    if name == "sleep":
        try:
            length = float(seconds or "")
        except ValueError:
            raise ConfigError(f"{VARIABLE}: {point.value}=sleep:SECONDS, got {seconds!r}") from None
        return lambda: time.sleep(length)
    actions: dict[str, Callable[[], None]] = {
        "kill": lambda: _signal("SIGKILL"),
        "exit": lambda: os._exit(1),
        "raise": lambda: _reach(point),
        "stop": lambda: _signal("SIGSTOP"),
    }
    if name not in actions:
        known = ", ".join((*actions, "sleep:SECONDS"))
        raise ConfigError(f"{VARIABLE}: {point.value}: no action {name!r}; one of {known}")
    if seconds is not None:
        raise ConfigError(
            f"{VARIABLE}: {point.value}: only sleep takes seconds, got {name}:{seconds}"
        )
    return actions[name]


def _signal(name: str) -> None:
    # Looked up late: Windows has neither, and never comes here unarmed.
    os.kill(os.getpid(), getattr(signal, name))


def _reach(point: Failpoint) -> None:
    raise FailpointReached(f"failpoint {point.value}")


def _created(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    return True


def failpoint(point: Failpoint) -> None:
    """Nothing, unless this point is armed in this process."""


_armed = parse(os.environ.get(VARIABLE, ""))
if _armed:

    def failpoint(point: Failpoint) -> None:
        """Let the armed action of this point happen."""
        armed = _armed.get(point)
        if armed is not None:
            armed.passed()
