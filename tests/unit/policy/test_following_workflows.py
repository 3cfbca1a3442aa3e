"""Whole workflows, run to their end: every node ends, in the right order, with the right arguments."""

from __future__ import annotations

import itertools
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskmq.errors import DecodeError
from taskmq.ids import GATHER
from taskmq.policy.composition import leaves, nodes
from taskmq.policy.following import ChordFailure, ChordPart
from taskmq.policy.signatures import follow_of_embed, kind_of
from tests.unit.policy.workflows import (
    Runner,
    Sig,
    after_failure,
    after_success,
    arguments,
    boom,
    chain,
    chord,
    group,
    message,
    place,
    sig,
)


def start(*steps: Sig, **fields: Any) -> Any:
    """A message with these steps behind it, in running order."""
    return message(follow={"chain": list(reversed(steps))}, **fields)


def test_chain_runs_in_order_and_hands_each_result_on() -> None:
    ran = Runner().run(start(sig("b"), sig("c", 1), sig("d", immutable=True))).ran

    assert ran == [
        ("first", [], 0),
        ("b", ["first[]"], 0),
        ("c", ["b['first[]']", 1], 0),
        ("d", [], 0),
    ]


def test_priority_of_the_workflow_holds_for_every_step() -> None:
    first = start(
        group(sig("g1"), sig("g2")),
        sig("body"),
        chord([sig("h1"), sig("h2", priority=-9)], sig("h3")),
        chain(sig("c1"), sig("c2")),
        priority=6,
    )

    ran = {task: priority for task, _, priority in Runner().run(first).ran}

    assert ran.pop("h2") == -9
    assert set(ran.values()) == {6}
    assert {"g1", "g2", "body", "h1", "h3", "c1", "c2"} < set(ran)


def test_priority_of_a_composition_holds_inside_it() -> None:
    first = start(group(sig("a"), sig("b", priority=1), priority=5), chain(sig("c"), priority=-2))

    ran = {task: priority for task, _, priority in Runner().run(first).ran}

    assert ran == {"first": 0, "a": 5, "b": 1, "c": -2}


def test_last_member_submits_the_body_with_all_results_in_header_order() -> None:
    body = sig("body", "extra", kwargs={"k": 1}, task_id="BODY")
    members = [
        message(f"m{i}", {"chord": place(i, 3, body)}, message_id=f"m{i}", task_id=f"t{i}")
        for i in (2, 0, 1)
    ]

    ran = Runner({"m0": lambda: "zero", "m1": lambda: 1, "m2": lambda: None}).run(*members).ran

    assert ran[-1] == ("body", [["zero", 1, None], "extra"], 0)


def test_every_member_names_the_same_body_message() -> None:
    body = sig("body")
    moves = [
        after_success(message(follow={"chord": place(i, 2, body)}, message_id=f"m{i}")).chords[0]
        for i in (0, 1)
    ]

    assert all(isinstance(move, ChordPart) for move in moves)
    assert moves[0].then.message_id == moves[1].then.message_id  # type: ignore[union-attr]


def test_immutable_body_keeps_its_own_arguments() -> None:
    body = sig("body", 1, kwargs={"k": 2}, immutable=True)
    first = message(follow={"chord": place(0, 1, body)})

    assert Runner().run(first).ran[-1] == ("body", [1], 0)


def test_chain_inside_a_member_counts_with_its_last_step() -> None:
    body = sig("body")
    first = message("a", {"chain": [sig("b")], "chord": place(0, 1, body)})

    then = after_success(first)
    assert not then.chords

    assert Runner().run(first).ran == [("a", [], 0), ("b", ["a[]"], 0), ("body", [["b['a[]']"]], 0)]


def test_group_followed_by_a_step_is_a_chord() -> None:
    ran = Runner().run(start(group(sig("a"), sig("b")), sig("c"), sig("d"))).ran

    assert [task for task, _, _ in ran] == ["first", "a", "b", "c", "d"]
    assert ran[3][1] == [["a['first[]']", "b['first[]']"]]


def test_chord_inside_a_chain_is_followed_by_what_comes_after_it() -> None:
    first = start(chord([sig("a"), sig("b")], sig("body")), sig("after"))

    assert Runner().run(first).names() == ["first", "a", "b", "body", "after"]


def test_chord_inside_a_chord_counts_with_its_body() -> None:
    inner = chord([sig("a"), sig("b")], sig("inner"))
    runner = Runner().run(start(chord([inner, sig("c")], sig("outer"))))

    assert runner.names() == ["first", "a", "b", "c", "inner", "outer"]
    assert runner.ran[-1][1][0][1] == "c['first[]']"


def test_group_at_the_end_of_a_member_counts_each_of_its_results() -> None:
    member = chain(sig("a"), group(sig("b"), sig("c")))
    runner = Runner({"b": lambda x: "B", "c": lambda x: "C", "d": lambda x: "D"})

    runner.run(start(chord([member, sig("d")], sig("body"))))

    assert runner.ran[-1][:2] == ("body", [["B", "C", "D"]])


def test_body_of_several_messages_starts_once_all_members_ended() -> None:
    runner = Runner().run(start(chord([sig("a"), sig("b")], group(sig("x"), sig("y"))), sig("end")))

    assert runner.names() == ["first", "a", "b", "x", "y", "end"]
    assert [task for task, _, _ in runner.ran].count(GATHER) == 1
    x = next(args for task, args, _ in runner.ran if task == "x")
    assert x == [["a['first[]']", "b['first[]']"]]


def test_body_that_is_a_chain_starts_without_a_stand_in() -> None:
    runner = Runner().run(start(chord([sig("a")], chain(sig("x"), sig("y"))), sig("end")))

    assert [task for task, _, _ in runner.ran] == ["first", "a", "x", "y", "end"]


def test_chord_without_members_runs_its_body_with_an_empty_list() -> None:
    runner = Runner().run(start(chord([], sig("body")), sig("end")))

    assert runner.ran[1] == ("body", [[]], 0)
    assert runner.names() == ["first", "body", "end"]


def test_empty_chain_hands_on_what_it_got() -> None:
    assert Runner().run(start(chain(), sig("end"))).ran[-1] == ("end", ["first[]"], 0)


def test_links_of_compositions_reach_their_ends_and_members() -> None:
    first = start(chain(sig("a"), sig("b"), link=sig("cb"), link_error=sig("err")))

    assert Runner().run(first).names() == ["first", "a", "b", "cb"]
    assert Runner({"a": boom}).run(first).names() == ["first", "a", "err"]
    assert Runner({"b": boom}).run(first).names() == ["first", "a", "b", "err"]


@pytest.mark.parametrize("failing", ["a", "b"])
def test_failed_member_ends_the_body_and_calls_its_error_callback_once(failing: str) -> None:
    body = sig("body", task_id="BODY", link_error=sig("err"))
    after = sig("after", task_id="AFTER")

    runner = Runner({failing: boom}).run(start(chord([sig("a"), sig("b")], body), after))

    assert runner.names() == ["first", "a", "b", "err"]
    assert set(runner.lost) >= {"BODY", "AFTER"}
    assert f"it depended on {failing}[" in runner.lost["BODY"]
    assert runner.ran[-1][1] == ["BODY"]


def test_second_failed_member_changes_nothing() -> None:
    body = sig("body", task_id="BODY", link_error=sig("err"))

    runner = Runner({"a": boom, "b": boom}).run(start(chord([sig("a"), sig("b")], body)))

    assert runner.names() == ["first", "a", "b", "err"]


def test_callback_on_member_and_body_is_told_once_of_one_failure() -> None:
    err = sig("err")
    body = sig("body", task_id="BODY", link_error=err)

    then = after_failure(message(follow={"errbacks": [err], "chord": place(0, 2, body)}))

    assert [m.task for m in then.submits] == ["err"]
    (move,) = then.chords
    assert isinstance(move, ChordFailure)
    assert not move.submits
    assert [r.task_id for r in move.results] == ["BODY"]


def test_failure_in_the_middle_of_a_members_chain_ends_the_chord() -> None:
    body = sig("body", task_id="BODY")
    member = chain(sig("a"), sig("b"), sig("c", task_id="C"))

    runner = Runner({"b": boom}).run(start(chord([member, sig("d")], body)))

    assert runner.names() == ["first", "a", "d", "b"]
    assert set(runner.lost) >= {"C", "BODY"}


def test_failure_inside_an_inner_chord_ends_the_outer_one() -> None:
    inner = chord([sig("a"), sig("b")], sig("inner", task_id="INNER"))
    outer = sig("outer", task_id="OUTER", link_error=sig("err"))

    runner = Runner({"a": boom}).run(
        start(chord([inner, sig("c")], outer), sig("end", task_id="END"))
    )

    assert runner.names() == ["first", "a", "b", "c", "err"]
    assert set(runner.lost) >= {"INNER", "OUTER", "END"}


def test_failure_before_a_chord_ends_all_of_it() -> None:
    step = chord(
        [sig("a", task_id="A"), group(sig("b", task_id="B"))],
        sig("body", task_id="BODY", link=sig("cb", task_id="CB")),
    )

    runner = Runner({"first": boom}).run(start(step, sig("end", task_id="END")))

    assert runner.names() == ["first"]
    assert set(runner.lost) == {"t-1", "A", "B", "BODY", "CB", "END"}


def test_failed_stand_in_ends_the_body_behind_it() -> None:
    body = group(sig("x", task_id="X"), sig("y", task_id="Y"))
    runner = Runner({GATHER: boom}).run(start(chord([sig("a")], body)))

    assert set(runner.lost) >= {"X", "Y"}


def test_error_callback_of_a_body_of_several_messages_is_told_once() -> None:
    err = sig("err")
    body = group(sig("x", link_error=err), sig("y", link_error=err))

    runner = Runner({"a": boom}).run(start(chord([sig("a")], body)))

    assert runner.names() == ["first", "a", "err"]


# -- every node of any workflow ends ---------------------------------------------------------------

Shape = tuple[str, Any]


def _shapes() -> st.SearchStrategy[Shape]:
    """Any composition, its tasks not yet named: equal names would be found by chance."""
    return st.recursive(
        st.just(("task", None)),
        lambda inner: (
            st.tuples(st.just("chain"), st.lists(inner, min_size=1, max_size=3))
            | st.tuples(st.just("group"), st.lists(inner, min_size=1, max_size=3))
            | st.tuples(st.just("chord"), st.tuples(st.lists(inner, max_size=3), inner))
        ),
        max_leaves=8,
    )


def _named(shapes: list[Shape]) -> list[Sig]:
    numbers = itertools.count()

    def build(shape: Shape) -> Sig:
        kind, parts = shape
        if kind == "task":
            number = next(numbers)
            return sig(f"n{number}", task_id=f"id{number}")
        if kind == "chord":
            header, body = parts
            return chord([build(part) for part in header], build(body))
        return (chain if kind == "chain" else group)(*[build(part) for part in parts])

    return [build(shape) for shape in shapes]


@given(st.lists(_shapes(), min_size=1, max_size=3).map(_named), st.data())
@settings(max_examples=100, deadline=None)
def test_every_node_of_any_workflow_ends_once(steps: list[Sig], data: st.DataObject) -> None:
    known = [node["task"] for node in nodes(chain(*steps))]
    failing = data.draw(st.sampled_from(["", "first", *known]))

    runner = Runner({failing: boom}).run(start(*steps))

    for name in known:
        task_id = name.replace("n", "id")
        ended = (task_id in runner.results) + (task_id in runner.lost)
        assert ended == 1, f"{name} ended {ended} times"
    if not failing:
        assert sorted(runner.names()) == sorted(["first", *known])


@given(_shapes())
@settings(max_examples=100, deadline=None)
def test_a_members_results_are_as_many_as_its_leaves(shape: Shape) -> None:
    (workflow,) = _named([shape])

    runner = Runner().run(start(chord([workflow, sig("last")], sig("body"))))

    results = next(args[0] for task, args, _ in runner.ran if task == "body")
    assert len(results) == leaves(workflow) + 1
    assert results[-1].startswith("last")


# -- foreign messages, which carry what follows in their body ---------------------------------------


@pytest.mark.parametrize(
    ("embed", "fault"),
    [
        ({"chain": {"a": 1}}, r"the body's chain: a list of signatures, got \{'a': 1\}"),
        ({"callbacks": [sig("a"), {}]}, r"the body's callbacks\[1\]: a signature"),
        ({"errbacks": ["a"]}, r"the body's errbacks\[0\]: a signature"),
    ],
)
def test_embed_that_holds_no_signatures_names_what_is_wrong(
    embed: dict[str, Any], fault: str
) -> None:
    with pytest.raises(DecodeError, match=f"^{fault}"):
        follow_of_embed(embed, {})


def test_embed_becomes_what_follows() -> None:
    when = datetime(2026, 1, 2, tzinfo=timezone.utc)
    embed = {"chain": [sig("b", when)], "callbacks": None, "errbacks": [], "chord": None}

    follow = follow_of_embed(embed, {})

    assert arguments(after_success(message(follow=follow), 1).submits[0])[0] == [1, when]


def test_embed_without_anything_is_nothing() -> None:
    assert (
        follow_of_embed({"chain": None, "callbacks": [], "errbacks": None, "chord": None}, {})
        is None
    )
    assert follow_of_embed({}, {}) is None


def test_celerys_chord_counts_here_only_with_its_size() -> None:
    body = sig("total", task_id="T")
    headers = {"group": "g", "group_index": 1}

    assert follow_of_embed({"chord": body}, headers) is None
    follow = follow_of_embed({"chord": {**body, "chord_size": 2}}, headers)

    (move,) = after_success(message(follow=follow)).chords
    assert (move.key, move.size) == ("g", 2)
    assert isinstance(move, ChordPart)
    assert (move.index, move.then.task_id) == (1, "T")


def test_kinds_are_known_by_type_and_by_celerys_names() -> None:
    assert [kind_of({"task": f"celery.{k}"}) for k in ("chain", "group", "chord", "map")] == [
        "chain",
        "group",
        "chord",
        "task",
    ]
    assert kind_of({"task": "x", "subtask_type": "group"}) == "group"
    assert arguments(after_success(start(sig("celery.map", 1)), 2).submits[0])[0] == [2, 1]
