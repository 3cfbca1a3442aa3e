"""Actors that fork with a transport in their hands."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

from taskmq import ids
from tests.faults.sqlite.actors import FOREVER, QUEUES, message, opened, say


def fork_and_submit(path: str, count: str) -> None:
    """Open and use a transport, fork, and go on with it on both sides, its threads included."""
    transport = opened(path)
    transport.submit([message("before")])
    transport.operators.queues()
    transport.wait(0)
    # One thread is always in the middle of something when the fork comes.
    stop = threading.Event()

    def busy() -> None:
        number = 0
        while not stop.is_set():
            transport.submit([message(f"busy{number}")])
            number += 1

    thread = threading.Thread(target=busy)
    thread.start()
    children = []
    for child in range(5):
        pid = os.fork()
        if pid == 0:
            for number in range(int(count)):
                transport.submit([message(f"child{child}-{number}")])
            found = transport.operators.find(f"child{child}-0")
            transport.close()
            os._exit(0 if found else 1)
        children.append(pid)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    stop.set()
    thread.join()
    transport.submit([message("after")])
    transport.close()
    say(f"codes {codes}")


def fork_while_an_id_is_made(path: str) -> None:
    """Fork while another thread is just making an id; the child submits."""
    transport = opened(path)
    inside, told = threading.Event(), threading.Event()

    def make_one() -> None:
        with ids._SOURCE._lock:
            inside.set()
            told.wait(FOREVER)

    thread = threading.Thread(target=make_one)
    thread.start()
    inside.wait(FOREVER)
    pid = os.fork()
    if pid == 0:
        signal.alarm(10)
        transport.submit([message(ids.ulid())])
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    told.set()
    thread.join()
    say(f"code {code}")


def leave_a_child(path: str) -> None:
    """Use a transport, fork and exit, as a daemon does; the child submits at once, and when it is told to."""
    transport = opened(path)
    transport.submit([message("parent")])
    transport.operators.queues()
    if os.fork():
        os._exit(0)
    told = threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: told.set())
    transport.submit([message("early")])
    say(f"child {os.getpid()}")
    told.wait(FOREVER)
    transport.submit([message("late")])
    found = transport.operators.peek(QUEUES, 10)
    say(f"found {len(found)}")
    transport.close()
    os._exit(0)


ACTORS: dict[str, Callable[..., None]] = {
    call.__name__: call for call in (fork_and_submit, fork_while_an_id_is_made, leave_a_child)
}
