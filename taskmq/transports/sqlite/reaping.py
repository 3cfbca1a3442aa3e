"""Taking back deliveries whose lease is lost (DESIGN §7's table, reliability facts 11-12)."""

from __future__ import annotations

from taskmq.coordination.base import Maintained
from taskmq.failpoints import Failpoint, failpoint
from taskmq.policy import endings
from taskmq.policy.endings import Lost, after_lost_lease, said_of_lost
from taskmq.policy.reaping import LeaseWatch
from taskmq.transports.sqlite.consequences import apply_followers
from taskmq.transports.sqlite.endings import end, ended_instead
from taskmq.transports.sqlite.leases import DELETE_HELD, home_lane
from taskmq.transports.sqlite.places import await_turn, free_key
from taskmq.transports.sqlite.rows import M_COLUMNS, PLACE_COLUMNS, Place
from taskmq.transports.sqlite.tx import Engine, Tx

_REAPED_AT_ONCE = 200

_HELD = (
    f"SELECT {PLACE_COLUMNS}, started_at, worker FROM reserved "  # noqa: S608
    "WHERE seq = ? AND token = ? AND lease_until = ?"
)


def reap(engine: Engine, watch: LeaseWatch) -> Maintained:
    """One look; what two looks found lost is taken back."""

    def look(tx: Tx) -> list[tuple[int, int, int]]:
        rows = tx.execute("SELECT seq, token, lease_until, lease FROM reserved").fetchall()
        monotonic = engine.clock.monotonic()
        held = [
            (seq, token, until / 1_000_000, lease / 1_000_000) for seq, token, until, lease in rows
        ]
        expired = watch.expired(held, now=tx.time, monotonic=monotonic)
        lost = set(watch.lost(expired, now=tx.time, monotonic=monotonic))
        return [row[:3] for row in rows if row[:2] in lost]

    lost = engine.glance(look)
    if not lost:
        return Maintained()

    def work(tx: Tx) -> list[str]:
        notes = [_take_back(tx, *lease) for lease in lost[:_REAPED_AT_ONCE]]
        apply_followers(tx)
        failpoint(Failpoint.IN_REAP)
        return [note for note in notes if note is not None]

    notes = engine.write(work)
    return Maintained(len(notes), len(lost) > _REAPED_AT_ONCE, tuple(notes))


def _take_back(tx: Tx, seq: int, token: int, until: int) -> str | None:
    """What was done with it; None when it was renewed between the look and the lock."""
    row = tx.row(_HELD, (seq, token, until))
    if row is None:
        return None
    place = Place._make(row[:-2])
    started = row[-2] is not None
    message = tx.message(
        tx.row(f"SELECT {M_COLUMNS} FROM message m WHERE m.seq = ?", (seq,))  # noqa: S608
    )
    tx.execute(DELETE_HELD, (seq, token))
    fate = after_lost_lease(
        started=started,
        ack=message.ack,
        deliveries=place.deliveries,
        max_deliveries=message.max_deliveries,
    )
    note = said_of_lost(message.task_id, row[-1], fate)
    counts = {"deliveries": place.deliveries, "yields": place.yields}
    if fate is Lost.FAILED:
        how = endings.lost_on_start(message, **tx.ending())
        end(tx, seq, message, how, reason=endings.WORKER_LOST, **counts)
        return note
    if fate is Lost.DEAD:
        how = endings.dead(message, place.deliveries, **tx.ending())
        end(tx, seq, message, how, reason=endings.CRASH_LOOP, **counts)
        return note
    instead = ended_instead(tx, message)
    if instead is not None:
        end(tx, seq, message, instead)
        return note
    if message.concurrency is not None:
        # It waits like anybody now: one it blocked that is more urgent goes first.
        free_key(tx, message.concurrency.key, seq)
    if fate is Lost.RETURNED:
        await_turn(tx, place._replace(deliveries=place.deliveries - 1), None)
    else:
        # At once: it has waited for its lease and two looks. A rate token was spent on the lost start.
        await_turn(tx, place._replace(lane=home_lane(tx, seq)), None)
    return note
