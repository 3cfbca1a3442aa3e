"""Ids are unique and grow within a process; derived ones are the same every time."""

from __future__ import annotations

import os
import threading
import uuid as stdlib_uuid
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskmq import ids

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def stop_clock(monkeypatch: pytest.MonkeyPatch, *milliseconds: int) -> None:
    """Let the id source see these times, the last one for ever."""
    left = list(milliseconds)
    now = lambda: (left.pop(0) if len(left) > 1 else left[0]) * 1_000_000  # noqa: E731
    monkeypatch.setattr(ids, "time", SimpleNamespace(time_ns=now))


def test_ulid_is_26_characters_of_crockfords_alphabet() -> None:
    made = ids.ulid()

    assert len(made) == 26
    assert set(made) <= set(ALPHABET)
    assert made[0] <= "7", "128 bits fit into 26 characters of five"


def test_ulid_begins_with_the_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "_SOURCE", ids.IdSource())
    stop_clock(monkeypatch, 1_700_000_000_123)

    made = ids.ulid()

    value = 0
    for char in made[:10]:
        value = value * 32 + ALPHABET.index(char)
    assert value == 1_700_000_000_123


def test_ulids_grow_and_never_repeat() -> None:
    made = [ids.ulid() for _ in range(5000)]

    assert made == sorted(made)
    assert len(set(made)) == 5000


def test_uuids_are_of_version_7_and_grow() -> None:
    made = [ids.uuid() for _ in range(2000)]

    assert made == sorted(made)
    assert len(set(made)) == 2000
    for text in made[:50]:
        parsed = stdlib_uuid.UUID(text)
        assert str(parsed) == text
        assert parsed.version == 7
        assert parsed.variant == stdlib_uuid.RFC_4122


def test_clock_that_steps_back_makes_no_smaller_id(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ids.IdSource()
    stop_clock(monkeypatch, 5000, 5000, 4000, 3000, 5001)

    numbers = [source.number() for _ in range(5)]

    assert numbers == sorted(numbers)
    assert len(set(numbers)) == 5


def test_threads_share_one_sequence() -> None:
    found: list[list[str]] = [[] for _ in range(4)]

    def make(mine: list[str]) -> None:
        mine.extend(ids.ulid() for _ in range(1000))

    threads = [threading.Thread(target=make, args=(mine,)) for mine in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    assert len({made for mine in found for made in mine}) == 4000
    assert all(mine == sorted(mine) for mine in found)


def test_forked_child_does_not_count_on_from_its_parents_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = ids.IdSource()
    stop_clock(monkeypatch, 5000)
    before = source.number()
    monkeypatch.setattr(
        ids, "os", SimpleNamespace(getpid=lambda: os.getpid() + 1, urandom=os.urandom)
    )

    child = source.number()

    assert child != before + 1
    assert child >> 80 == before >> 80 == 5000


def test_a_signal_handler_may_make_an_id_while_one_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ids.IdSource()
    handlers: list[int] = []

    def as_interrupted(call, *arguments):
        # As a handler would that runs right after this call.
        if len(handlers) < 2:
            handlers.append(0)
            handlers[-1] = source.number()
        return call(*arguments)

    monkeypatch.setattr(
        ids,
        "os",
        SimpleNamespace(
            getpid=lambda: as_interrupted(os.getpid),
            urandom=lambda count: as_interrupted(os.urandom, count),
        ),
    )
    thread = threading.Thread(target=lambda: handlers.append(source.number()), daemon=True)
    thread.start()
    thread.join(10)

    assert len(set(handlers)) == 3


def test_derived_id_is_the_same_every_time_and_differs_by_parent_and_label() -> None:
    # Stored ids outlive a release: this value may never change.
    assert ids.derived("m", "chain") == "564074db-515a-8bc9-ae9e-f2255b9431a3"
    made = {ids.derived(p, label) for p in ("m", "m2", "") for label in ("chain", "chain/0", "")}
    assert len(made) == 9


@given(st.text(), st.text())
@settings(max_examples=50, deadline=None)
def test_derived_id_has_the_form_of_a_uuid_whatever_it_comes_from(parent: str, label: str) -> None:
    parsed = stdlib_uuid.UUID(ids.derived(parent, label))

    assert parsed.version == 8
    assert parsed.variant == stdlib_uuid.RFC_4122
