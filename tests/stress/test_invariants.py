"""Each invariant finds the fault it names in a history made by hand, and nothing in a sound one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.stress import invariants
from tests.stress.invariants import History, Violation, check
from tests.stress.log import Log, read_logs

Made = dict[str, Any]
LEASE = 1.0


def event(t: float, ev: str, pid: int = 1, **fields: Any) -> Made:
    return {"t": t, "pid": pid, "ev": ev, **fields}


def submitted(task_id: str, t: float, priority: int = 0, **fields: Any) -> list[Made]:
    about = {"task": "work", "priority": priority, "eta": None, "expires": None, **fields}
    return [event(t, "submit", id=task_id, **about), event(t + 0.01, "accepted", id=task_id)]


def claimed(task_id: str, at: float, *, token: int, pid: int = 10, **fields: Any) -> Made:
    about = {"at": at, "until": at + LEASE, "priority": 0, "deliveries": 1, **fields}
    return event(at + 0.001, "claimed", pid, id=task_id, token=token, **about)


def ran(task_id: str, t: float, pid: int = 20, *, of: int = 10, until: float) -> list[Made]:
    return [
        event(t, "start", pid, id=task_id, supervisor=of, deliveries=1),
        event(until, "end", pid, id=task_id, how="finish"),
    ]


def settled(
    task_id: str, t: float, *, token: int, pid: int = 10, verb: str = "finish"
) -> list[Made]:
    return [
        event(t, "settling", pid, id=task_id, token=token, verb=verb),
        event(t + 0.01, "settled", pid, id=task_id, token=token, verb=verb, since=t),
    ]


def life(task_id: str = "a", t: float = 1.0, *, token: int = 1, **fields: Any) -> list[Made]:
    """A message that goes the usual way."""
    return [
        *submitted(task_id, t, **fields),
        claimed(task_id, t + 0.1, token=token, priority=fields.get("priority", 0)),
        *ran(task_id, t + 0.2, until=t + 0.3),
        *settled(task_id, t + 0.4, token=token),
    ]


def history(events: Sequence[Made], **store: Any) -> History:
    final = {e["id"]: "succeeded" for e in events if "id" in e} | store.get("final", {})
    dead = store.get("dead", {})
    ordered = sorted(events, key=lambda e: e["t"])
    return History(ordered, final, dead, lease=LEASE, max_deliveries=3)


def found(
    invariant: Callable[[History], Any], events: Sequence[Made], **store: Any
) -> list[Violation]:
    return list(invariant(history(events, **store)))


def without(events: Sequence[Made], *kinds: str) -> list[Made]:
    return [e for e in events if e["ev"] not in kinds]


# A holder that dies with its message: its lease ends, another one takes it.
TAKEN_OVER = [
    *submitted("a", 1.0),
    claimed("a", 1.1, token=1),
    event(1.2, "start", 20, id="a", supervisor=10, deliveries=1),
    event(1.3, "killed", victim=10, role="supervisor"),
    claimed("a", 2.5, token=2, pid=11, deliveries=2),
    *ran("a", 2.6, 21, of=11, until=2.7),
    *settled("a", 2.8, token=2, pid=11),
]


@pytest.mark.parametrize("events", [life(), TAKEN_OVER, [*life(), *life("b", 1.1, token=2)]])
def test_nothing_is_found_in_a_sound_history(events: list[Made]) -> None:
    assert check(history(events)) == []


def test_an_accepted_message_that_did_not_finish_is_lost() -> None:
    (violation,) = found(invariants.no_loss, without(life(), "end"))

    assert (violation.invariant, violation.id) == ("I1", "a")


def test_a_message_that_ran_and_of_which_the_store_knows_nothing_is_lost() -> None:
    assert found(invariants.no_loss, life(), final={"a": "unknown"})


@pytest.mark.parametrize(
    ("extra", "store"),
    [
        ([], {"dead": {"a": "rejected"}}),
        ([event(1.02, "revoking", id="a")], {"final": {"a": "revoked"}}),
    ],
)
def test_a_message_whose_end_is_explained_is_not_lost(
    extra: list[Made], store: dict[str, Any]
) -> None:
    assert found(invariants.no_loss, [*without(life(), "end"), *extra], **store) == []


def test_a_message_revoked_or_expired_without_a_cause_is_lost() -> None:
    for state in ("revoked", "expired"):
        assert found(invariants.no_loss, submitted("a", 1.0), final={"a": state})
    expiring = submitted("a", 1.0, expires=1.5)
    assert found(invariants.no_loss, expiring, final={"a": "expired"}) == []


def test_what_was_not_accepted_may_be_lost_but_not_made_up() -> None:
    assert found(invariants.no_loss, submitted("a", 1.0)[:1]) == []
    assert found(invariants.no_loss, [claimed("a", 1.0, token=1)])


def test_runs_that_overlap_under_a_live_lease_are_found() -> None:
    events = [*life(), claimed("a", 1.22, token=2, pid=11), *ran("a", 1.25, 21, of=11, until=1.5)]

    (violation,) = found(invariants.lease_exclusion, events)

    assert (violation.invariant, violation.t) == ("I2", 1.25)


def test_runs_may_overlap_once_the_lease_has_ended_or_the_first_process_has() -> None:
    stopped = [
        *submitted("a", 1.0),
        claimed("a", 1.1, token=1),
        *ran("a", 1.2, until=9.0),
        claimed("a", 2.2, token=2, pid=11),
        *ran("a", 2.3, 21, of=11, until=2.4),
    ]
    assert found(invariants.lease_exclusion, stopped) == []
    renewed = event(1.9, "renewed", 10, id="a", token=1, until=2.9, since=1.9)
    assert found(invariants.lease_exclusion, [*stopped, renewed])
    child_killed = event(2.0, "killed", victim=20, role="child")
    assert found(invariants.lease_exclusion, [*stopped, renewed, child_killed]) == []


def test_a_run_under_a_token_replaced_before_it_began_is_no_fault_of_the_lease() -> None:
    stopped = [
        *submitted("a", 1.0),
        claimed("a", 1.1, token=1),
        claimed("a", 2.5, token=2, pid=11),
        *ran("a", 2.6, 21, of=11, until=2.9),
        *ran("a", 2.7, 20, of=10, until=2.8),
    ]

    assert found(invariants.lease_exclusion, stopped) == []
    in_time = event(2.0, "renewed", 10, id="a", token=1, until=3.0, since=2.0)
    assert found(invariants.lease_exclusion, [*stopped, in_time])


def test_two_endings_are_found() -> None:
    (violation,) = found(invariants.fenced_effects, [*life(), *settled("a", 1.6, token=1)])

    assert violation.invariant == "I3"


@pytest.mark.parametrize("verb", ["finish", "retry", "release"])
def test_an_effect_of_a_token_that_was_replaced_is_found(verb: str) -> None:
    late = settled("a", 2.6, token=1, verb=verb)
    replaced = [*submitted("a", 1.0), claimed("a", 1.1, token=1), claimed("a", 2.5, token=2)]

    assert found(invariants.fenced_effects, [*replaced, *late])
    # One that began before it was replaced had its effect in time.
    assert found(invariants.fenced_effects, [*replaced, *settled("a", 2.4, token=1)]) == []


def test_a_renewal_by_a_token_that_was_replaced_is_found() -> None:
    renewed = event(2.7, "renewed", 10, id="a", token=1, until=3.6, since=2.6)
    replaced = [*submitted("a", 1.0), claimed("a", 1.1, token=1), claimed("a", 2.5, token=2)]

    assert found(invariants.fenced_effects, [*replaced, renewed])


def test_a_claim_of_what_is_held_is_found() -> None:
    (violation,) = found(
        invariants.justified_redelivery, [*life(), claimed("a", 1.35, token=2, pid=11)]
    )

    assert violation.invariant == "I4"


@pytest.mark.parametrize("verb", ["retry", "release", "yield"])
def test_a_claim_of_what_was_given_back_is_justified(verb: str) -> None:
    back = event(1.3, "settling", 10, id="a", token=1, verb=verb)
    events = [*submitted("a", 1.0), claimed("a", 1.1, token=1), claimed("a", 1.35, token=2)]

    assert found(invariants.justified_redelivery, [*events, back]) == []


def test_a_run_without_a_claim_of_its_own_is_found() -> None:
    assert found(invariants.justified_redelivery, without(life(), "claimed"))
    assert found(invariants.justified_redelivery, [*life(), *ran("a", 1.5, 21, until=1.6)])
    of_another = [*submitted("a", 1.0), claimed("a", 1.1, token=1), *ran("a", 1.2, of=9, until=1.3)]
    assert found(invariants.justified_redelivery, of_another)
    too_late = [*submitted("a", 1.0), *ran("a", 1.2, until=1.3), claimed("a", 1.25, token=1)]
    assert found(invariants.justified_redelivery, too_late)


def test_a_delivery_beyond_the_limit_is_found() -> None:
    assert found(invariants.bounded_poison, [claimed("a", 1.0, token=1, deliveries=4)])
    assert found(invariants.bounded_poison, [claimed("a", 1.0, token=1, deliveries=3)]) == []


def test_poison_that_is_not_buried_is_found() -> None:
    events = submitted("a", 1.0, task="poison")

    assert found(invariants.bounded_poison, events, dead={"a": "rejected"})
    assert found(invariants.bounded_poison, events, dead={"a": "crash-loop"}) == []


def test_an_urgent_message_that_was_passed_over_is_found() -> None:
    urgent = life("urgent", 1.05, token=2, priority=9)
    passed = [*submitted("a", 1.0), claimed("a", 1.1, token=1)]

    (violation,) = found(invariants.order, [*urgent, *passed])

    assert (violation.invariant, violation.id) == ("I6", "a")


@pytest.mark.parametrize(
    "urgent",
    [
        submitted("urgent", 1.105, priority=9),
        submitted("urgent", 1.05, priority=9, eta=1.2),
        submitted("urgent", 1.05, priority=9, expires=1.08),
        [*submitted("urgent", 1.05, priority=9), event(1.07, "revoking", id="urgent")],
        submitted("urgent", 1.05, priority=0),
        [*submitted("urgent", 1.05, priority=9), claimed("urgent", 1.1, token=2, priority=9)],
    ],
    ids=["later", "not due", "expired", "revoked", "as urgent", "taken with it"],
)
def test_an_urgent_message_that_could_not_be_taken_was_not_passed_over(urgent: list[Made]) -> None:
    passed = [*submitted("a", 1.0), claimed("a", 1.1, token=1)]

    assert found(invariants.order, [*urgent, *passed]) == []


def test_an_urgent_message_that_a_killed_worker_may_have_held_is_left_out() -> None:
    urgent = submitted("urgent", 1.0, priority=9)
    torn = [event(1.05, "turning", 12), event(1.08, "killed", victim=12, role="supervisor")]
    passed = [*submitted("a", 1.0), claimed("a", 1.5, token=1)]
    late = claimed("urgent", 2.2, token=2, priority=9)

    assert found(invariants.order, [*urgent, *passed, late])
    assert found(invariants.order, [*urgent, *passed, late, *torn]) == []
    ended = event(1.07, "turned", 12)
    assert found(invariants.order, [*urgent, *passed, late, *torn, ended])
    # It cannot have held what came after its death, nor what another one took before its lease ended.
    after = submitted("urgent", 1.1, priority=9)
    assert found(invariants.order, [*after, *passed, late, *torn])
    soon = claimed("urgent", 1.9, token=2, priority=9)
    assert found(invariants.order, [*urgent, *passed, soon, *torn])


def test_a_claim_before_the_eta_or_after_the_expiry_is_found() -> None:
    assert found(invariants.in_time, life(eta=1.2))
    assert found(invariants.in_time, life(eta=1.05)) == []
    assert found(invariants.in_time, life(expires=1.05))
    held = event(1.3, "started", 10, id="a", token=1, since=1.25)
    assert found(invariants.in_time, [*life(expires=1.2), held])
    assert found(invariants.in_time, [*life(expires=1.28), held]) == []


def test_a_claim_after_the_end_or_the_revocation_is_found() -> None:
    again = claimed("a", 2.5, token=2)

    assert found(invariants.no_resurrection, [*life(), again])
    revoked = event(1.2, "revoked", id="a", was="queued", ended=True)
    assert found(invariants.no_resurrection, [*without(life(), "settled"), again, revoked])
    assert found(invariants.no_resurrection, without([*life(), again], "settled")) == []


def test_a_run_after_its_own_end_is_found() -> None:
    acked_first = [
        *submitted("a", 1.0),
        claimed("a", 1.1, token=1),
        *settled("a", 1.15, token=1),
        *ran("a", 1.2, until=1.3),
    ]

    (violation,) = found(invariants.no_resurrection, acked_first)

    assert (violation.invariant, violation.t) == ("I8", 1.2)


def test_logs_are_read_in_order_and_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    for name in ("x", "y", "x"):
        log = Log(tmp_path / f"{name}.jsonl")
        log.write(name)
        log.close()
    with (tmp_path / "x.jsonl").open("ab") as torn:
        torn.write(b'{"t": 2, "ev": "to')

    assert [e["ev"] for e in read_logs(tmp_path)] == ["x", "y", "x"]
