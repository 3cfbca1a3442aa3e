"""What a message can do to a real worker of one child: nothing (reliability rows 30-34, I1 I10)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from taskmq import Result, State
from taskmq.errors import TooLarge
from tests.faults.messages.bodies import hostile
from tests.faults.messages.conftest import Site
from tests.support.waiting import wait_until

MIB = 1024 * 1024


def ended(result: Result[Any]) -> None:
    wait_until(lambda: result.state.final, 20, what=f"the end of {result.id}")


def test_every_hostile_body_is_buried_and_worker_and_child_stay_the_same(
    site: Site, tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    every = hostile(str(canary))
    before = site.submit("pids").get(timeout=20)
    sent = {}
    for said in every.values():
        message = replace(site.app.message("jobs.echo"), **said._asdict())
        site.app.publish([message])
        sent[message.task_id] = said.body
    operators = site.app.transport.operators

    after = site.submit("pids", priority=-9).get(timeout=20)

    wait_until(lambda: len(operators.dead_letters()) == len(every), what="the dead letters")
    letters = operators.dead_letters()
    assert {letter.message.task_id: letter.message.body for letter in letters} == sent
    assert {letter.reason for letter in letters} == {"unreadable"}
    assert all(letter.error.isprintable() and letter.error for letter in letters)
    assert after == before
    assert not canary.exists()
    assert "Traceback" not in site.log()


def test_what_cannot_be_sent_back_is_a_failure_that_says_so(site: Site) -> None:
    pids = site.submit("pids").get(timeout=20)
    told = {
        "object": "EncodeError",
        "loop": "EncodeError",
        "nan": "EncodeError",
        "surrogate": "EncodeError",
        "set": "EncodeError",
        "deep": "EncodeError",
        "large": "TooLarge",
        "mute": "Mute",
        "unpicklable": "Unpicklable",
        "large_error": "ValueError",
        "surrogate_error": "ValueError",
    }
    results = {how: site.submit("odd", how) for how in told}

    for how, name in told.items():
        result = results[how]
        ended(result)
        assert result.state is State.FAILED, how
        record = result.record()
        assert record is not None
        assert record.body is not None
        assert name.encode() in record.body
        assert len(record.body) <= 64 * 1024
        assert len(record.traceback or "") <= 64 * 1024
        assert name in site.log()
    assert site.submit("pids").get(timeout=20) == pids


def test_an_unknown_task_is_released_and_then_buried_and_imports_nothing(
    site: Site, tmp_path: Path
) -> None:
    (tmp_path / "trap.py").write_text("open('imported', 'w')")
    pids = site.submit("pids").get(timeout=20)
    names = ["os.system", "trap.run", "trap", "jobs.os.system", "builtins.eval"]
    unknown = [site.app.submit(name, ("touch imported",), priority=9) for name in names]

    assert site.submit("echo", 1).get(timeout=20) == [1]

    for result in unknown:
        ended(result)
        assert result.state is State.FAILED
    letters = site.app.transport.operators.dead_letters()
    assert [letter.reason for letter in letters] == ["unknown-task"] * len(names)
    assert {letter.deliveries for letter in letters} == {2}
    assert not (tmp_path / "imported").exists()
    assert site.submit("pids").get(timeout=20) == pids


class TestLargeBodies:
    @pytest.fixture
    def max_body(self) -> int:
        return 64 * MIB

    def test_a_body_of_50_mb_runs_in_bounded_memory_where_max_body_allows_it(
        self, site: Site
    ) -> None:
        text = "x" * (50 * MIB)

        length, peak = site.submit("size", text).get(timeout=40)

        assert length == 50 * MIB
        # The body, its text, the value and a frame: measured 173 MiB.
        assert peak < 400

    def test_above_max_body_the_submit_says_how_large_it_is_and_nothing_is_stored(
        self, site: Site
    ) -> None:
        with pytest.raises(TooLarge, match=r"67,10\d,\d\d\d bytes; max_body is 67,108,864"):
            site.submit("size", "x" * (64 * MIB))

        assert site.submit("echo", 1).get(timeout=20) == [1]
        assert site.app.transport.operators.dead_letters() == []
