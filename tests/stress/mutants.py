"""Four faults a queue can have, as patches of the real engine: a checker that misses one proves nothing.

Applied by the project's module in every process of a run; nothing of them is in the product.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from taskmq.policy.reaping import LeaseWatch
from taskmq.transports.base import Outcome, ReserveRequest, Turn, Verb
from taskmq.transports.sqlite import SQLiteTransport, leases, reaping, settle, taking
from taskmq.transports.sqlite.claim import Claim
from taskmq.transports.sqlite.tx import Tx

# How long a claim without a lock may take between its look and its writing.
_WINDOW = 0.004


def apply(name: str) -> None:
    """Break the engine of this process in one way; an empty name leaves it whole."""
    if name:
        MUTANTS[name]()


def ack_before_run() -> None:
    """A message is finished when it starts: who dies then takes it along."""
    turn = SQLiteTransport.turn

    def broken(
        self: SQLiteTransport, outcomes: Sequence[Outcome], request: ReserveRequest | None
    ) -> Turn:
        done = turn(self, outcomes, request)
        started = [d for d in done.deliveries if d.started]
        if started:
            turn(self, [Outcome(delivery=d, verb=Verb.FINISH) for d in started], None)
        return done

    SQLiteTransport.turn = broken  # type: ignore[method-assign]


def ack_without_token() -> None:
    """Whoever says that a message is done is believed, also when its lease was lost."""
    broken = _any_token(leases.DELETE_HELD)
    for module in (leases, settle, reaping):
        module.DELETE_HELD = broken  # type: ignore[attr-defined]
    leases._HELD = _any_token(leases._HELD)
    checked = settle._settle

    def believing(tx: Tx, outcome: Outcome) -> bool:
        if checked(tx, outcome):
            return True
        if outcome.verb is Verb.FINISH:
            settle._write(tx, outcome)
        return outcome.verb is Verb.FINISH

    settle._settle = believing


def _any_token(sql: str) -> str:
    assert "token = ?" in sql
    return sql.replace("token = ?", "? IS NOT NULL")


def early_reaper() -> None:
    """Leases are taken away ten seconds before they end, at the first look."""
    expired = LeaseWatch.expired

    def early(
        self: LeaseWatch,
        held: Iterable[tuple[int, int, float, float]],
        *,
        now: float,
        monotonic: float,
    ) -> list[tuple[int, int]]:
        return expired(self, held, now=now + 10.0, monotonic=monotonic)

    def at_once(
        self: LeaseWatch, expired: Iterable[tuple[int, int]], *, now: float, monotonic: float
    ) -> list[tuple[int, int]]:
        return list(expired)

    LeaseWatch.expired = early  # type: ignore[method-assign]
    LeaseWatch.lost = at_once  # type: ignore[method-assign]


def select_then_update() -> None:
    """What is free is looked up in one transaction and written down in another, with no lock between them."""
    turn = SQLiteTransport.turn

    def broken(
        self: SQLiteTransport, outcomes: Sequence[Outcome], request: ReserveRequest | None
    ) -> Turn:
        lost = turn(self, outcomes, None).lost
        if request is None or self._idle(request):
            return Turn(lost=lost)
        seen = _look(self, request)
        if seen._taking.ended:
            # What expired at the heads has to be written at once, or it would be met for ever.
            return replace(turn(self, (), request), lost=lost)
        time.sleep(random.uniform(0, _WINDOW))
        self._engine.write(lambda tx: _take(tx, seen))
        return Turn(lost=lost, deliveries=tuple(seen.deliveries), refused=tuple(seen.refused))

    SQLiteTransport.turn = broken  # type: ignore[method-assign]


class _LookedOnly(Exception):
    """Takes a claim back whole, so that it was a look."""


def _look(transport: SQLiteTransport, request: ReserveRequest) -> Claim:
    seen: list[Claim] = []

    def work(tx: Tx) -> None:
        seen.append(Claim(tx, request))
        seen[0].run()
        raise _LookedOnly

    try:
        transport._engine.write(work)
    except _LookedOnly:
        pass
    return seen[0]


def _take(tx: Tx, seen: Claim) -> None:
    hold = taking._HOLD.replace("INSERT INTO", "INSERT OR REPLACE INTO")
    for row in seen._taking._rows:
        seq = row[0]
        for table in ("ready", "scheduled"):
            tx.execute(f"DELETE FROM {table} WHERE seq = ?", (seq,))
        if tx.row("SELECT 1 FROM message WHERE seq = ?", (seq,)):
            tx.execute(hold, row)
    for delivery in seen.deliveries:
        tx.execute(
            "UPDATE reserved SET started_at = ? WHERE seq = ? AND token = ? AND ?",
            (tx.now, delivery.seq, delivery.token, delivery.started),
        )


MUTANTS: dict[str, Callable[[], None]] = {
    "ack-before-run": ack_before_run,
    "ack-without-token": ack_without_token,
    "early-reaper": early_reaper,
    "select-then-update": select_then_update,
}
