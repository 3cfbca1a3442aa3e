"""The checker finds what it is there to find; a green run of the stress test then means something."""

from __future__ import annotations

from pathlib import Path

from tests.stress import checker


def accepted(name: str, t: float, priority: int = 0, eta: float | None = None) -> checker.Event:
    return {"ev": "accepted", "t": t, "id": name, "priority": priority, "eta": eta}


def claimed(name: str, at: float, token: int = 1, priority: int = 0, n: int = 1) -> checker.Event:
    return {
        "ev": "claimed",
        "t": at + 0.01,
        "id": name,
        "token": token,
        "at": at,
        "until": at + 1,
        "priority": priority,
        "deliveries": n,
    }


def event(kind: str, name: str, t: float, token: int = 1, **fields: float) -> checker.Event:
    return {"ev": kind, "t": t, "id": name, "token": token, **fields}


CLEAN = [
    {"ev": "submit", "t": 0.0, "ids": ["a", "b"]},
    accepted("a", 1.0, priority=5),
    accepted("b", 1.1, eta=3.0),
    claimed("a", 2.0, token=1, priority=5),
    event("giving", "a", 2.5),
    event("acked", "a", 2.6),
    claimed("b", 3.0, token=2),
    claimed("b", 4.5, token=3, n=2),
    event("renewed", "b", 5.4, token=3, until=6.4),
    event("giving", "b", 6.0, token=3),
    event("acked", "b", 6.1, token=3),
]


def test_a_clean_run_has_no_findings() -> None:
    assert checker.lost(CLEAN, {"a", "b"}) == []
    assert checker.unheard_of(CLEAN) == []
    assert checker.acked_twice(CLEAN) == []
    assert checker.claimed_after_ack(CLEAN) == []
    assert checker.overlapping(CLEAN) == []
    assert checker.too_early(CLEAN) == []
    assert checker.delivered_too_often(CLEAN, 2) == []
    assert checker.passed_over(CLEAN, 1.0) == []


def test_an_accepted_message_without_an_end_is_lost() -> None:
    assert checker.lost(CLEAN, {"a"}) == ["b"]


def test_a_message_that_nobody_submitted_is_found() -> None:
    assert checker.unheard_of([*CLEAN, claimed("ghost", 5.0)]) == ["ghost"]


def test_a_double_ack_is_found() -> None:
    assert checker.acked_twice([*CLEAN, event("acked", "a", 9.0)]) == ["a"]


def test_a_claim_after_the_ack_is_found() -> None:
    assert checker.claimed_after_ack([*CLEAN, claimed("a", 9.0, token=9)]) == ["a"]


def test_a_claim_under_a_live_lease_is_found() -> None:
    stolen = claimed("b", 3.5, token=8)

    assert checker.overlapping([*CLEAN, stolen]) == [("b", 3.5)]


def test_a_claim_under_a_renewed_lease_is_found() -> None:
    # Renewed at 5.4 until 6.4, given back at 6.0.
    assert checker.overlapping([*CLEAN, claimed("b", 5.9, token=8)]) == [("b", 5.9)]
    assert checker.overlapping([*CLEAN, claimed("b", 6.05, token=8)]) == []


def test_a_claim_before_its_eta_is_found() -> None:
    assert checker.too_early([*CLEAN, claimed("b", 2.9, token=8)]) == ["b"]


def test_a_delivery_too_many_is_found() -> None:
    assert checker.delivered_too_often(CLEAN, 1) == ["b"]


def test_a_claim_that_passed_over_a_more_urgent_one_is_found() -> None:
    urgent = accepted("urgent", 1.0, priority=9)

    found = checker.passed_over([*CLEAN, urgent, claimed("urgent", 2.5, token=7, priority=9)], 1.0)

    assert found == [("a", 5)]


def test_a_more_urgent_one_that_was_not_due_was_not_passed_over() -> None:
    later = accepted("later", 1.0, priority=9, eta=2.2)

    found = checker.passed_over([*CLEAN, later, claimed("later", 2.5, token=7, priority=9)], 1.0)

    assert found == []


def test_what_a_killed_process_may_have_held_was_not_passed_over() -> None:
    urgent = accepted("urgent", 1.0, priority=9)
    torn = {"ev": "turning", "t": 1.4, "pid": 7}
    events = [*CLEAN, urgent, torn, claimed("urgent", 2.5, token=7, priority=9)]

    assert checker.passed_over(events, 1.0) == []
    assert checker.passed_over(events, 1.2) == [("a", 5)]


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b'{"t": 1, "ev": "a"}\n{"t": 2, "ev')

    assert [e["ev"] for e in checker.read_logs(tmp_path)] == ["a"]
