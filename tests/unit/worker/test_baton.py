"""The baton is held by one thread at a time, costs a short task nothing, and comes back at once."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from taskmq.worker import baton as baton_module
from taskmq.worker.baton import Baton
from tests.support.waiting import wait_until

# Long enough that no short task of these tests ever lasts as long, on however busy a machine.
NEVER = 60.0
SOON = 0.001


class Keeping:
    """A keeper that holds the baton until it is asked for, and counts how often it had it."""

    def __init__(self, grace: float) -> None:
        self.rung = threading.Event()
        self.baton = Baton(self.rung.set)
        self.missed = False
        self.times = 0
        self.holding = threading.Event()
        self.drive: Callable[[], None] = lambda: None
        self._grace = grace
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while (task := self.baton.long_task(self._grace)) is not None:
            if not self.baton.take_over(task):
                continue
            self.times += 1
            self.holding.set()
            while not self.baton.asked_back.is_set():
                self.drive()
                self.missed |= not self.rung.wait(10)
                self.rung.clear()
            self.holding.clear()
            self.baton.give_up()


@pytest.fixture
def keeping(request: pytest.FixtureRequest) -> Iterator[Keeping]:
    keeping = Keeping(request.param)
    keeping.thread.start()
    yield keeping
    keeping.baton.retire()
    keeping.thread.join(10)
    assert not keeping.thread.is_alive()
    assert not keeping.missed, "the runner came back and did not ring"


@pytest.mark.parametrize("keeping", [SOON], indirect=True)
def test_a_long_task_is_taken_over_and_gives_the_baton_back(keeping: Keeping) -> None:
    for round_ in range(1, 4):
        keeping.baton.without(lambda: wait_until(keeping.holding.is_set, every=0.001))
        assert keeping.times == round_
        assert not keeping.holding.is_set()
        assert not keeping.baton.asked_back.is_set()


@pytest.mark.parametrize("keeping", [SOON], indirect=True)
def test_a_task_that_raises_gives_the_baton_back_too(keeping: Keeping) -> None:
    def fail() -> None:
        wait_until(keeping.holding.is_set, every=0.001)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        keeping.baton.without(fail)
    assert not keeping.holding.is_set()
    keeping.baton.without(lambda: None)


@pytest.mark.parametrize("keeping", [0.3], indirect=True)
def test_short_tasks_are_never_taken_over(keeping: Keeping) -> None:
    end = time.monotonic() + 0.7
    while time.monotonic() < end:
        keeping.baton.without(lambda: None)
    assert keeping.times == 0


def test_a_keeper_with_nothing_to_look_at_does_not_look(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []
    monkeypatch.setattr(baton_module, "time", SimpleNamespace(sleep=looks.append))
    baton = Baton(lambda: None)
    thread = threading.Thread(target=baton.long_task, args=(NEVER,), daemon=True)
    thread.start()
    for count in (1, 50, 1):
        before = len(looks)
        for _ in range(count):
            baton.without(lambda: None)
        wait_until(lambda: not baton._looked_at.is_set(), what="rest")
        # One look for each task at most, and none once it rests.
        assert before < len(looks) <= before + count
    baton.retire()
    thread.join(10)
    assert not thread.is_alive()


def test_a_task_that_has_ended_is_not_taken_over() -> None:
    baton = Baton(lambda: None)
    got: list[bool] = []

    def ask(number: int) -> None:
        thread = threading.Thread(target=lambda: got.append(baton.take_over(number)))
        thread.start()
        thread.join(10)

    ask(1)  # the runner holds it
    baton.without(lambda: None)
    baton.without(lambda: ask(1))  # that one is over, and the second is none of its business
    ask(2)
    assert got == [False, False, False]
    baton.without(lambda: None)  # and the runner still gets it


@pytest.mark.parametrize("keeping", [SOON], indirect=True)
def test_it_is_never_held_by_two(keeping: Keeping) -> None:
    driving = threading.Lock()
    together: list[str] = []

    def drive() -> None:
        if not driving.acquire(blocking=False):
            together.append(threading.current_thread().name)
            return
        sum(range(500))
        driving.release()

    keeping.drive = drive
    dice = random.Random(7)
    # Around the grace: where the end of a task and the keeper's look meet.
    for _ in range(400):
        drive()
        keeping.baton.without(lambda: time.sleep(dice.uniform(0, 4 * SOON)))
    assert together == []
    assert keeping.times > 10
