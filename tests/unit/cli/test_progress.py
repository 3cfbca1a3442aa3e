"""The progress bar: redrawn on a terminal, a few lines in a log."""

from __future__ import annotations

import io

from taskmq.cli.progress import Progress


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_in_a_log_it_prints_a_line_per_tenth_without_control_characters() -> None:
    log = io.StringIO()

    with Progress("replaying", 250, stream=log) as bar:
        for _ in range(250):
            bar.advance(1)

    lines = log.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[0].endswith("10%  25/250")
    assert lines[-1].endswith("100% 250/250")
    assert "\x1b" not in log.getvalue()
    assert "\r" not in log.getvalue()


def test_on_a_terminal_one_line_is_redrawn_and_ended() -> None:
    terminal = Terminal()

    with Progress("replaying", 4, stream=terminal) as bar:
        bar.set(4, "last one")

    drawn = terminal.getvalue()
    assert drawn.count("\n") == 1
    assert drawn.endswith("100% 4/4  last one\x1b[K\n")


def test_it_never_shows_more_than_everything() -> None:
    bar = Progress("x", 3, stream=io.StringIO())

    bar.advance(5)

    assert "100% 3/3" in bar.text()


def test_nothing_to_do_is_done() -> None:
    assert "0%" in Progress("x", 0, stream=io.StringIO()).text()
