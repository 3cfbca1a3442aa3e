"""Prefork: children are lost, killed, worn out and replaced, and the coordinator is none the worse."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from taskmq import App
from taskmq.pools import frames
from taskmq.pools.base import Completion, Ending
from taskmq.pools.child import ChildSettings
from taskmq.pools.child_process import memory_kib
from taskmq.pools.prefork import PreforkPool
from tests.support.waiting import wait_until
from tests.unit.pools.conftest import MakePool
from tests.unit.pools.jobs import Driver, job_of


def kill(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize(
    ("die", "how"),
    [
        (lambda: os._exit(0), "exited with code 0"),
        (lambda: os._exit(3), "exited with code 3"),
        (lambda: kill(signal.SIGKILL), "killed by SIGKILL"),
        (lambda: os.abort(), "killed by SIGABRT"),
        (lambda: kill(signal.SIGBUS), "killed by SIGBUS"),
        (lambda: ctypes.string_at(0), "killed by SIGSEGV"),
    ],
    ids=["exit 0", "exit 3", "SIGKILL", "abort", "SIGBUS", "segfault"],
)
def test_a_child_that_dies_is_noticed_at_once_and_replaced(
    app: App, start: MakePool, die: Callable[[], None], how: str
) -> None:
    dying = app.task(name="jobs.die")(die)
    working = app.task(name="jobs.pid")(os.getpid)
    driver = start()
    completion = driver.run(job_of(app, dying))
    assert completion.ending is Ending.LOST
    assert how in completion.error
    assert driver.run(job_of(app, working)).ending is Ending.SUCCEEDED


def test_a_child_killed_from_outside_takes_only_its_own_job_along(
    app: App, start: MakePool
) -> None:
    waiting = app.task(name="jobs.wait")(time.sleep)
    driver = start(2)
    driver.wait_free(2)
    lost, other = job_of(app, waiting, 30), job_of(app, waiting, 0.2)
    driver.pool.dispatch(lost)
    driver.pool.dispatch(other)
    os.kill(driver.pool.busy_pids()[lost.number], signal.SIGKILL)
    assert driver.end_of(lost).ending is Ending.LOST
    assert driver.end_of(other).ending is Ending.SUCCEEDED


def test_a_lost_child_is_noticed_although_a_process_of_its_task_holds_the_pipe_open(
    app: App, start: MakePool, tmp_path: Path
) -> None:
    left_behind = tmp_path / "pid"

    def leave_a_process_behind() -> None:
        pid = os.fork()
        if pid == 0:
            time.sleep(30)
            os._exit(0)
        left_behind.write_text(str(pid))
        kill(signal.SIGKILL)

    task = app.task(name="jobs.fork")(leave_a_process_behind)
    driver = start()
    try:
        assert driver.run(job_of(app, task)).ending is Ending.LOST
    finally:
        # Raises if it has ended: then it did not hold the pipe open meanwhile.
        os.kill(int(left_behind.read_text()), signal.SIGKILL)


def test_a_copy_of_the_child_that_a_task_forked_does_not_answer_for_it(
    app: App, start: MakePool
) -> None:
    def fork() -> int:
        return os.fork()

    task = app.task(name="jobs.fork")(fork)
    driver = start()
    # Answered twice, the driver's check for a second end would fail.
    assert driver.run(job_of(app, task)).body != b"0"
    assert driver.run(job_of(app, task)).body != b"0"


def test_the_hard_limit_kills_and_the_slot_goes_on(app: App, start: MakePool) -> None:
    def deaf() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})
        time.sleep(30)

    task = app.task(name="jobs.deaf")(deaf)
    next_one = app.task(name="jobs.pid")(os.getpid)
    driver = start()
    completion = driver.run(job_of(app, task, soft_time_limit=0.05, time_limit=0.1))
    assert completion.ending is Ending.TIMED_OUT
    assert "0.1 s" in completion.error
    assert driver.run(job_of(app, next_one)).ending is Ending.SUCCEEDED


def test_terminate_ends_one_job_as_told(app: App, start: MakePool) -> None:
    task = app.task(name="jobs.wait")(time.sleep)
    driver = start()
    job = driver.dispatch(job_of(app, task, 30))
    assert not driver.pool.terminate(job.number + 1_000, Ending.CANCELLED, "nobody")
    assert driver.pool.terminate(job.number, Ending.CANCELLED, "revoked")
    assert driver.end_of(job).ending is Ending.CANCELLED


def test_a_child_is_replaced_after_max_tasks(app: App, start: MakePool) -> None:
    task = app.task(name="jobs.pid")(os.getpid)
    driver = start(max_tasks_per_child=2)
    pids = [driver.run(job_of(app, task)).body for _ in range(5)]
    assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4]


def test_a_child_is_replaced_when_it_grew_too_large(app: App, start: MakePool) -> None:
    kept = []

    def grow(mib: int) -> int:
        kept.append(bytearray(os.urandom(1024) * 1024 * mib))
        return os.getpid()

    task = app.task(name="jobs.grow")(grow)
    settings = ChildSettings(measure_memory=True)
    driver = start(settings=settings, max_memory_per_child=memory_kib() + 40 * 1024)
    first, second, third = (driver.run(job_of(app, task, mib)).body for mib in (1, 80, 1))
    assert first == second != third


def test_a_child_is_replaced_when_a_task_leaks_descriptors(app: App, start: MakePool) -> None:
    kept: list[int] = []

    def leak(count: int) -> int:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4_096), hard))
        kept.extend(os.dup(0) for _ in range(count))
        return os.getpid()

    task = app.task(name="jobs.leak")(leak)
    driver = start()
    first, second, third = (driver.run(job_of(app, task, count)).body for count in (5, 600, 0))
    assert first == second != third


def test_tasks_cannot_spoil_the_next_one(app: App, start: MakePool, tmp_path: Path) -> None:
    def spoil() -> int:
        sys.stdout = sys.stderr = None
        os.chdir(tmp_path)
        os.umask(0o777)
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGALRM, lambda *_: None)
        threading.Thread(target=time.sleep, args=(30,)).start()
        return os.getpid()

    def look() -> list[Any]:
        return [
            os.getpid(),
            signal.getsignal(signal.SIGALRM) is signal.SIG_DFL,
            signal.getsignal(signal.SIGTERM) is signal.SIG_DFL,
            signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL,
        ]

    spoiling = app.task(name="jobs.spoil")(spoil)
    looking = app.task(name="jobs.look")(look)
    driver = start()
    pid = driver.run(job_of(app, spoiling)).body
    seen = driver.run(job_of(app, looking)).body
    assert seen == b"[" + (pid or b"") + b",true,false,false]"


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_child_is_replaced_when_a_task_closes_a_standard_descriptor(
    app: App, start: MakePool, number: int
) -> None:
    def close(closing: bool) -> int:
        if closing:
            os.close(number)
        return os.getpid()

    task = app.task(name="jobs.close")(close)
    driver = start()
    first, second, third = (driver.run(job_of(app, task, how)).body for how in (False, True, False))
    assert first == second != third


def test_a_task_may_use_the_alarm_signal_beside_a_soft_limit(app: App, start: MakePool) -> None:
    def fn() -> str:
        rang = []
        signal.signal(signal.SIGALRM, lambda *_: rang.append("alarm"))
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        time.sleep(0.1)
        return rang[0]

    task = app.task(name="jobs.alarm")(fn)
    completion = start().run(job_of(app, task, soft_time_limit=10.0))
    assert completion.body == b'"alarm"'


def test_a_task_that_writes_to_the_channel_is_ended_and_hurts_nobody(
    app: App, start: MakePool
) -> None:
    def garble() -> None:
        for number in range(200, 300):
            try:
                os.write(number, b"\xff" * 64)
            except OSError:
                pass
        time.sleep(5)

    garbling = app.task(name="jobs.garble")(garble)
    next_one = app.task(name="jobs.pid")(os.getpid)
    driver = start()
    assert driver.run(job_of(app, garbling)).ending is Ending.LOST
    assert driver.run(job_of(app, next_one)).ending is Ending.SUCCEEDED


def test_bodies_larger_than_a_pipe_go_both_ways(start: MakePool) -> None:
    app = App(broker_url="memory://", max_body=8 * 1024 * 1024)
    pool = PreforkPool(app, 1, clock=app.clock, settings=ChildSettings())
    task = app.task(name="jobs.echo")(lambda text: text)
    pool.start()
    try:
        completion = Driver(pool).run(job_of(app, task, "x" * 2_000_000))
        assert completion.body is not None
        assert len(completion.body) == 2_000_002
    finally:
        pool.stop(hand_back=False)


def test_what_a_child_sent_before_it_ended_is_read_to_the_end(app: App, start: MakePool) -> None:
    number, body = 7, b"x" * 10_000
    progress = frames.pack_completion(Completion(number=number, ending=Ending.PROGRESS, body=body))
    # What comes first is all that is read at once, to the byte; then a result that needs two reads.
    body += b"x" * (frames.FrameReader(from_child=True).room - len(progress))
    sent = b"".join(
        frames.pack_completion(Completion(number=number, ending=ending, body=body))
        for ending, body in ((Ending.PROGRESS, body), (Ending.SUCCEEDED, b"y" * 50_000))
    )

    def send_and_die() -> None:
        for fd in range(200, 300):
            try:
                os.write(fd, sent)
            except OSError:
                pass
        kill(signal.SIGKILL)

    task = app.task(name="jobs.send_and_die")(send_and_die)
    driver = start()
    driver.wait_free()
    (pid,) = driver.pool.pids()
    driver.pool.dispatch(replace(job_of(app, task), number=number))
    wait_until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
    driver.poll()
    assert driver.ended[number].ending is Ending.SUCCEEDED


def test_children_write_no_core_and_die_with_the_coordinator(app: App, start: MakePool) -> None:
    def look() -> list[int]:
        buffer = ctypes.c_int()
        ctypes.CDLL(None).prctl(2, ctypes.byref(buffer), 0, 0, 0)
        return [resource.getrlimit(resource.RLIMIT_CORE)[0], buffer.value]

    task = app.task(name="jobs.look")(look)
    completion = start().run(job_of(app, task))
    assert completion.body == b"[0,9]"


def test_child_hooks_run_in_each_child(app: App, start: MakePool, tmp_path: Path) -> None:
    def note(name: str) -> None:
        (tmp_path / f"{name}-{os.getpid()}").touch()

    app.hooks.child_init.connect(lambda app: note("init"))
    app.hooks.child_exit.connect(lambda app: note("exit"))
    driver = start(2)
    driver.wait_free(2)
    driver.pool.stop(hand_back=False)
    names = sorted(path.name.split("-")[0] for path in tmp_path.iterdir())
    assert names == ["exit", "exit", "init", "init"]


def test_stopping_leaves_no_process_and_no_descriptor(app: App, start: MakePool) -> None:
    before = len(os.listdir("/proc/self/fd"))
    task = app.task(name="jobs.wait")(time.sleep)
    driver = start(3)
    driver.wait_free(3)
    job = driver.dispatch(job_of(app, task, 30))
    pid = driver.pool.busy_pids()[job.number]
    driver.pool.stop(hand_back=True)
    assert not Path(f"/proc/{pid}").exists()
    assert len(os.listdir("/proc/self/fd")) == before
