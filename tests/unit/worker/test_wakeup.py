"""Signals and other threads wake the coordinator through one descriptor."""

from __future__ import annotations

import os
import signal
import threading

from taskmq.worker.loop import wait_readable
from taskmq.worker.wakeup import DRAIN_SIGNALS, STOP_SIGNALS, Wakeup, signals_to


def test_a_signal_arrives_as_its_number_and_does_nothing_else() -> None:
    wakeup = Wakeup()
    with signals_to(wakeup):
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGQUIT)
        wait_readable([wakeup.fd], 5.0)
        assert set(wakeup.drain()) == {signal.SIGTERM, signal.SIGQUIT}
    wakeup.close()


def test_handlers_are_put_back_and_an_ignored_hangup_stays_ignored() -> None:
    wakeup = Wakeup()
    before = signal.getsignal(signal.SIGTERM)
    hangup = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_to(wakeup):
            assert signal.getsignal(signal.SIGTERM) is not before
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is before
    finally:
        signal.signal(signal.SIGHUP, hangup)
        wakeup.close()


def test_another_thread_can_wake_and_gets_no_handlers() -> None:
    wakeup = Wakeup()
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def elsewhere() -> None:
        with signals_to(wakeup):
            seen.append(signal.getsignal(signal.SIGTERM))
        wakeup.ring()

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [before]
    assert wakeup.drain() == b"\0"
    wakeup.close()


def test_ringing_often_and_after_the_end_harms_nobody() -> None:
    wakeup = Wakeup()
    for _ in range(100_000):
        wakeup.ring()
    assert set(wakeup.drain()) == {0}
    wakeup.close()
    wakeup.ring()


def test_term_int_and_hangup_drain_and_quit_stops() -> None:
    assert {signal.SIGTERM, signal.SIGINT, signal.SIGHUP} == DRAIN_SIGNALS
    assert {signal.SIGQUIT} == STOP_SIGNALS
