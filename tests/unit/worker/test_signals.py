"""Signals and other threads wake the coordinator through one descriptor."""

from __future__ import annotations

import os
import signal
import threading

from taskmq.bell import Bell, readable
from taskmq.worker.signals import DRAIN_SIGNALS, STOP_SIGNALS, signals_to


def test_a_signal_arrives_as_its_number_and_does_nothing_else() -> None:
    bell = Bell()
    with signals_to(bell):
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGQUIT)
        readable([bell.fd], 5.0)
        assert set(bell.drain()) == {signal.SIGTERM, signal.SIGQUIT}
    bell.close()


def test_a_signal_is_heard_while_a_task_has_a_bell_of_its_own_in_that_place() -> None:
    bell, of_a_task = Bell(), Bell()
    with signals_to(bell):
        ours = signal.set_wakeup_fd(of_a_task.write_fd)
        os.kill(os.getpid(), signal.SIGTERM)
        assert bell.drain() == bytes((signal.SIGTERM,))
        # The task goes on hearing what it wants to hear.
        assert signal.set_wakeup_fd(ours, warn_on_full_buffer=False) == of_a_task.write_fd
        os.kill(os.getpid(), signal.SIGTERM)
        # Once, or the worker would take it for a second one.
        assert bell.drain() == bytes((signal.SIGTERM,))
    of_a_task.close()
    bell.close()


def test_handlers_are_put_back_and_an_ignored_hangup_stays_ignored() -> None:
    bell = Bell()
    before = signal.getsignal(signal.SIGTERM)
    hangup = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_to(bell):
            assert signal.getsignal(signal.SIGTERM) is not before
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is before
    finally:
        signal.signal(signal.SIGHUP, hangup)
        bell.close()


def test_another_thread_can_wake_and_gets_no_handlers() -> None:
    bell = Bell()
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def elsewhere() -> None:
        with signals_to(bell):
            seen.append(signal.getsignal(signal.SIGTERM))
        bell.ring()

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [before]
    assert bell.drain() == b"\0"
    bell.close()


def test_ringing_often_and_after_the_end_harms_nobody() -> None:
    bell = Bell()
    for _ in range(100_000):
        bell.ring()
    assert set(bell.drain()) == {0}
    bell.close()
    bell.ring()


def test_term_int_and_hangup_drain_and_quit_stops() -> None:
    assert {signal.SIGTERM, signal.SIGINT, signal.SIGHUP} == DRAIN_SIGNALS
    assert {signal.SIGQUIT} == STOP_SIGNALS
