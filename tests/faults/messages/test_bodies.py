"""Bodies nobody can run end in the dead letters, and the worker goes on (reliability row 33, I1 I10)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import taskmq.testing
from taskmq import App, State
from taskmq.message import DeadLetter
from tests.faults.messages.bodies import BODIES, SAID, Hostile, hostile

NAMES = sorted(hostile("/nowhere"))


@pytest.fixture(scope="module")
def app() -> Iterator[App]:
    made = taskmq.testing.app(max_deliveries=2)
    made.task(name="jobs.echo")(lambda *args, **kwargs: None)
    yield made
    made.close()


def submit(app: App, said: Hostile) -> str:
    message = app.message("jobs.echo")
    app.publish([replace(message, **said._asdict())])
    return message.task_id


def run(app: App) -> list[DeadLetter]:
    """Everything that is due, and a good task behind it; the dead letters there are then."""
    good = app.submit("jobs.echo", ("good",))
    with taskmq.testing.worker(app) as w:
        w.run_until_idle()
    assert good.state is State.SUCCEEDED
    letters = app.transport.operators.dead_letters()
    app.transport.operators.drop([letter.number for letter in letters])
    return letters


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_body_is_buried_with_a_reason_and_its_bytes_and_the_next_task_runs(
    app: App, name: str, tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    said = hostile(str(canary))[name]
    modules = set(sys.modules)

    task_id = submit(app, said)
    (letter,) = run(app)

    assert (letter.reason, letter.message.task_id) == ("unreadable", task_id)
    assert letter.message.body == said.body
    assert letter.error.startswith(("DecodeError: ", "ContentRefused: ", "TooLarge: "))
    assert 20 < len(letter.error) < 600
    assert letter.error.isprintable()
    assert app.result(task_id).state is State.DEAD
    assert not canary.exists()
    # Not even what would have decoded it was looked up.
    assert not {"antigravity", "encodings.antigravity"} & (set(sys.modules) - modules)


def test_a_hostile_body_costs_no_memory(app: App, tmp_path: Path) -> None:
    every = hostile(str(tmp_path / "canary"))
    for said in every.values():
        submit(app, said)
    before = resident()

    letters = run(app)

    assert len(letters) == len(every)
    # Three bombs of 40 MB each are among them, stopped at max_body (1 MiB): unpacked they would take
    # 120 MB.
    assert resident() - before < 30


def resident() -> int:
    """Memory of this process in MiB."""
    from taskmq.pools.child_process import memory_kib

    return memory_kib() // 1024


@given(BODIES, SAID)
@settings(max_examples=300, deadline=None)
def test_any_body_at_all_runs_or_is_buried(app: App, body: bytes, said: dict[str, Any]) -> None:
    task_id = submit(app, Hostile(**{"body": body, **said}))

    letters = run(app)

    state = app.result(task_id).state
    if letters:
        (letter,) = letters
        assert (letter.reason, letter.message.body) == ("unreadable", body)
        assert letter.error.isprintable()
        assert state is State.DEAD
    else:
        assert state is State.SUCCEEDED


_NAMES = [
    "task",
    "args",
    "kwargs",
    "options",
    "subtask_type",
    "key",
    "index",
    "size",
    "body",
    "tasks",
    "chain",
    "chord",
    "link",
    "link_error",
    "countdown",
    "eta",
    "expires",
    "priority",
    "queue",
    "task_id",
    "max_deliveries",
    "rate",
    "concurrency",
    "result_expires",
]
_words = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
    | st.sampled_from([10**400, 2**70, 1e300, "jobs.echo", "2030-01-01T00:00:00"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(_NAMES),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(
        st.sampled_from(["chain", "chord", "callbacks", "errbacks"]), _words, max_size=3
    ),
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_whatever_follows_a_task_its_own_ending_stands(
    app: App, follow: dict[str, Any], beside: bool
) -> None:
    """What follows may stand beside the body (ours) or in it (a Celery producer's)."""
    message = app.message("jobs.echo")
    if beside:
        message = replace(message, follow=app.codec.encode_value(follow)[0].decode())
    else:
        body, _, _ = app.codec.encode_body((), {}, follow)
        message = replace(message, body=body)
    app.publish([message])

    letters = run(app)

    mine = [letter for letter in letters if letter.message.task_id == message.task_id]
    state = app.result(message.task_id).state
    if mine:
        assert not beside
        assert [letter.reason for letter in mine] == ["unreadable"]
        assert state is State.DEAD
    else:
        assert state is State.SUCCEEDED
