"""Group commit: threads that meet are committed together, and each gets what is its own."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from taskmq.transports.sqlite.group import GroupCommit
from taskmq.transports.sqlite.section import Section
from tests.support.waiting import wait_until


class Commits:
    """Stands for the store: what was committed together, and what goes wrong."""

    def __init__(self) -> None:
        self.section = Section()
        self.groups: list[int] = []
        self.failures: list[BaseException] = []
        self.group = GroupCommit(
            self.section,
            self.commit,
            apart=lambda exc: isinstance(exc, MemoryError),
            fault=lambda exc: exc,
        )

    def commit(self, pieces) -> None:
        for piece in pieces:
            piece.run(None)
        self.groups.append(len(pieces))
        if self.failures:
            raise self.failures.pop(0)
        for piece in pieces:
            piece.done = True

    def together(self, *works):
        """Submit each from a thread of its own while a transaction is under way."""
        answers: list[Any] = [None] * len(works)

        def submit(number, work):
            try:
                answers[number] = self.group.submit(work)
            except BaseException as exc:
                answers[number] = exc

        threads = []

        def meet():
            for number, work in enumerate(works):
                thread = threading.Thread(target=submit, args=(number, work))
                thread.start()
                threads.append(thread)
                wait_until(lambda: len(self.group._queue) == len(threads))

        self.section.run(meet)
        for thread in threads:
            thread.join(10)
        return answers


def works(count):
    return [lambda _, n=n: n for n in range(count)]


def fails(_):
    raise ValueError("mine")


def test_one_alone_is_committed_by_itself() -> None:
    commits = Commits()

    assert commits.group.submit(lambda _: "done") == "done"
    assert commits.groups == [1]


def test_those_that_waited_are_committed_together_and_each_gets_its_own_answer() -> None:
    commits = Commits()

    assert commits.together(*works(8)) == list(range(8))
    assert commits.groups == [8]


def test_who_breaks_the_group_is_left_out_and_alone_gets_the_error() -> None:
    commits = Commits()

    answers = commits.together(works(1)[0], fails, lambda _: "other")

    assert answers[0] == 0
    assert isinstance(answers[1], ValueError)
    assert answers[2] == "other"
    assert commits.groups == [2]


def test_a_commit_that_fails_fails_for_everybody_in_it() -> None:
    commits = Commits()
    commits.failures.append(OSError("the device is gone"))

    answers = commits.together(*works(3))

    assert [type(answer) for answer in answers] == [OSError] * 3


def test_what_was_too_much_together_is_tried_one_by_one() -> None:
    commits = Commits()
    commits.failures.append(MemoryError())

    assert commits.together(*works(3)) == [0, 1, 2]
    assert commits.groups == [3, 1, 1, 1]


def test_an_interrupt_of_the_leader_is_not_the_followers_business() -> None:
    commits = Commits()
    commits.failures.append(KeyboardInterrupt())

    answers = commits.together(*works(3))

    interrupted = [a for a in answers if isinstance(a, KeyboardInterrupt)]
    assert len(interrupted) == 1
    assert len([a for a in answers if isinstance(a, int)]) == 2


def test_an_error_leaves_the_group_usable() -> None:
    commits = Commits()

    with pytest.raises(ValueError, match="mine"):
        commits.group.submit(fails)
    assert commits.group.submit(lambda _: 1) == 1


def test_what_was_committed_before_an_interrupt_is_not_run_again() -> None:
    commits = Commits()
    runs: list[int] = []

    def commit(pieces) -> None:
        for piece in pieces:
            piece.run(None)
            piece.done = True
        if len(pieces) > 1:
            raise KeyboardInterrupt

    def noting(number: int):
        return lambda _: runs.append(number)

    commits.group._commit = commit

    answers = commits.together(*(noting(n) for n in range(3)))

    assert sorted(runs) == [0, 1, 2]
    assert len([a for a in answers if isinstance(a, KeyboardInterrupt)]) == 1


def test_a_call_that_was_interrupted_while_it_waited_is_not_stored_later() -> None:
    commits = Commits()
    ran: list[str] = []

    class Interrupting(Section):
        def run(self, work):
            raise KeyboardInterrupt

    commits.group._section = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        commits.group.submit(lambda _: ran.append("interrupted"))
    commits.group._section = commits.section
    commits.group.submit(lambda _: ran.append("next"))

    assert ran == ["next"]


def test_a_call_that_a_leader_lost_is_still_done_by_its_own_thread() -> None:
    """A leader that is interrupted may have taken it off the queue."""
    commits = Commits()

    def submit() -> None:
        answers.append(commits.group.submit(lambda _: "stored"))

    def lose() -> None:
        thread.start()
        wait_until(lambda: len(commits.group._queue) == 1)
        commits.group._queue.clear()

    answers: list[str] = []
    thread = threading.Thread(target=submit)
    commits.section.run(lose)
    thread.join(10)

    assert answers == ["stored"]
    assert commits.groups == [1]
