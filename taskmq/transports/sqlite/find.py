"""Where the messages of one task are, and everything `taskmq why` needs for the one reason they wait."""

from __future__ import annotations

from taskmq.message import Message
from taskmq.transports.operators import Found
from taskmq.transports.sqlite.dead import letters_of
from taskmq.transports.sqlite.places import Waiting, locate
from taskmq.transports.sqlite.rates import Rates
from taskmq.transports.sqlite.results import LIVE_MESSAGES, message_state
from taskmq.transports.sqlite.rows import M_COLUMNS, PLACE_COLUMNS, Place
from taskmq.transports.sqlite.times import seconds
from taskmq.transports.sqlite.tx import Tx

# "How many are ahead" is told exactly up to here.
AHEAD_COUNTED = 10_000

_AHEAD = (
    "SELECT count(*) FROM (SELECT 1 FROM ready WHERE lane = ? AND (npri, visible_at, seq) < (?, ?, ?) "
    "LIMIT ?)"
)
_ABOVE = "SELECT count(*) FROM (SELECT 1 FROM ready WHERE lane = ? AND npri < ? LIMIT ?)"


def find(tx: Tx, task_id: str) -> list[Found]:
    """Every live message and dead letter of the task, newest first."""
    tx.refresh()
    live = [_live(tx, row[0]) for row in tx.execute(LIVE_MESSAGES, (task_id, task_id)).fetchall()]
    return live + [Found.buried(letter) for letter in letters_of(tx, task_id)]


def _live(tx: Tx, seq: int) -> Found:
    row = tx.row(f"SELECT {M_COLUMNS} FROM message m WHERE m.seq = ?", (seq,))  # noqa: S608
    message = tx.message(row)
    paused = tx.catalog.paused(message.queue)
    held = tx.row(
        f"SELECT {PLACE_COLUMNS}, worker, lease_until FROM reserved WHERE seq = ?",  # noqa: S608
        (seq,),
    )
    if held is not None:
        place = Place._make(held[:-2])
        return Found(
            message=message,
            state=message_state(tx, seq),
            seq=seq,
            visible_at=place.visible_at / 1_000_000,
            deliveries=place.deliveries,
            yields=place.yields,
            worker=held[-2],
            lease_until=seconds(held[-1]),
            paused=paused,
        )
    waiting = locate(tx, seq)
    assert waiting is not None
    place = waiting.place
    ahead = _count_ahead(tx, place)
    visible_at = place.visible_at / 1_000_000
    due_at = _due_at(tx, waiting)
    return Found(
        message=message,
        state=message_state(tx, seq),
        seq=seq,
        visible_at=visible_at,
        due_at=due_at,
        # What waits for its own schedule (an eta, a retry) does not wait because it was yielded once.
        yielded=place.yields > 0 and due_at is not None and due_at != visible_at,
        deliveries=place.deliveries,
        yields=place.yields,
        paused=paused,
        ahead=min(ahead, AHEAD_COUNTED),
        ahead_capped=ahead > AHEAD_COUNTED,
        blocked_by=_blocked_by(tx, message) if waiting.blocked else (),
        rate_until=_rate_until(tx, waiting, message),
    )


def _due_at(tx: Tx, waiting: Waiting) -> float | None:
    if waiting.due_at is None or waiting.due_at <= tx.now:
        return None
    return seconds(waiting.due_at)


def _count_ahead(tx: Tx, place: Place) -> int:
    """Claimable ones before it in its queue, and above its band in the others."""
    queue = tx.names_of(place.lane)[0]
    counted = 0
    for name in tx.catalog.names():
        if tx.catalog.paused(name) and name != queue:
            continue
        for lane in tx.catalog.lanes(name):
            left = AHEAD_COUNTED + 1 - counted
            if left <= 0:
                return counted
            if name == queue:
                key = (lane.id, place.npri, place.visible_at, place.seq, left)
                counted += tx.row(_AHEAD, key)[0]
            else:
                counted += tx.row(_ABOVE, (lane.id, place.npri, left))[0]
    return counted


def _blocked_by(tx: Tx, message: Message) -> tuple[str, ...]:
    key = message.concurrency
    assert key is not None
    rows = tx.execute(
        "SELECT coalesce(m.task_id, m.message_id) FROM holder h CROSS JOIN message m ON m.seq = h.seq "
        "WHERE h.key = ? ORDER BY h.npri, h.visible_at, h.seq",
        (key.key,),
    ).fetchall()
    return tuple(row[0] for row in rows)


def _rate_until(tx: Tx, waiting: Waiting, message: Message) -> float | None:
    """The token time it has booked, or the earliest its lane could give it one."""
    if message.rate is None:
        return None
    lane = tx.lane(waiting.place.lane)
    if lane.rate_key is None:
        return None
    state = Rates(tx).state(lane.rate_key)
    if lane.booked:
        until = max(state.gate, waiting.due_at or 0)
    else:
        until = max(state.next_at, state.closed_until, state.gate)
    return until / 1_000_000 if until > tx.now else None
