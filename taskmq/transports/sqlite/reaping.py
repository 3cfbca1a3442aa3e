"""Taking back deliveries whose lease is lost (DESIGN §7's table, reliability facts 11-12)."""

from __future__ import annotations

from taskmq.coordination.base import Maintained
from taskmq.policy import endings
from taskmq.policy.endings import Lost, after_lost_lease
from taskmq.policy.reaping import LeaseWatch
from taskmq.transports.sqlite.consequences import apply_followers
from taskmq.transports.sqlite.endings import end, ended_instead
from taskmq.transports.sqlite.leases import DELETE_HELD, home_lane
from taskmq.transports.sqlite.places import await_turn, free_key
from taskmq.transports.sqlite.rows import M_COLUMNS, PLACE_COLUMNS, Place
from taskmq.transports.sqlite.tx import Engine, Tx

_REAPED_AT_ONCE = 200

_HELD = f"SELECT {PLACE_COLUMNS}, started_at FROM reserved WHERE seq = ? AND token = ?"  # noqa: S608


def reap(engine: Engine, watch: LeaseWatch) -> Maintained:
    """One look; what two looks found lost is taken back."""

    def look(tx: Tx) -> list[tuple[int, int]]:
        rows = tx.execute(
            "SELECT seq, token FROM reserved WHERE lease_until <= ?", (tx.now,)
        ).fetchall()
        return watch.lost(rows, now=tx.time, monotonic=engine.clock.monotonic())

    lost = engine.glance(look)
    if not lost:
        return Maintained()

    def work(tx: Tx) -> int:
        done = sum(_take_back(tx, seq, token) for seq, token in lost[:_REAPED_AT_ONCE])
        apply_followers(tx)
        return done

    return Maintained(done=engine.write(work), more=len(lost) > _REAPED_AT_ONCE)


def _take_back(tx: Tx, seq: int, token: int) -> bool:
    row = tx.row(_HELD, (seq, token))
    # Renewed between the look and the lock: it is not lost.
    if row is None or tx.row("SELECT lease_until FROM reserved WHERE seq = ?", (seq,))[0] > tx.now:
        return False
    place = Place._make(row[:-1])
    started = row[-1] is not None
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
    counts = {"deliveries": place.deliveries, "yields": place.yields}
    if fate is Lost.FAILED:
        how = endings.lost_on_start(message, **tx.ending())
        end(tx, seq, message, how, reason=endings.WORKER_LOST, **counts)
        return True
    if fate is Lost.DEAD:
        how = endings.dead(message, place.deliveries, **tx.ending())
        end(tx, seq, message, how, reason=endings.CRASH_LOOP, **counts)
        return True
    instead = ended_instead(tx, message)
    if instead is not None:
        end(tx, seq, message, instead)
        return True
    if message.concurrency is not None:
        # It waits like anybody now: one it blocked that is more urgent goes first.
        free_key(tx, message.concurrency.key, seq)
    if fate is Lost.RETURNED:
        await_turn(tx, place._replace(deliveries=place.deliveries - 1), None)
    else:
        # At once: it has waited for its lease and two looks. A rate token was spent on the lost start.
        await_turn(tx, place._replace(lane=home_lane(tx, seq)), None)
    return True
