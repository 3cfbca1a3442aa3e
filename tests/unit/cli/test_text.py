"""Spans, sizes and tables."""

from __future__ import annotations

import pytest

from taskmq.cli.text import duration, pad, plural, shorten, size, table, width


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-3, "0ms"),
        (0, "0ms"),
        (0.0042, "4ms"),
        (0.0994, "99ms"),
        (0.1, "0.1s"),
        (9.94, "9.9s"),
        (9.96, "10s"),
        (59.4, "59s"),
        (59.6, "1m00s"),
        (252, "4m12s"),
        (3599.7, "1h00m"),
        (11_100, "3h05m"),
        (86_399, "23h59m"),
        (187_200, "2d04h"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_sizes_and_counts_read_as_people_write_them() -> None:
    assert [size(512), size(3_500_000), size(2**42)] == ["512 B", "3.3 MiB", "4.0 TiB"]
    assert [plural(1, "message"), plural(2, "message")] == ["1 message", "2 messages"]


def test_wide_and_combining_characters_are_counted_as_a_terminal_shows_them() -> None:
    assert [width("abc"), width("任务"), width("é")] == [3, 4, 1]
    assert pad("任务", 6, ">") == "  任务"


def test_shortening_keeps_both_ends_and_the_width() -> None:
    short = shorten("proj.billing.tasks.send_invoice", 15)

    assert width(short) == 15
    assert short.startswith("proj.bi")
    assert short.endswith("invoice")
    assert shorten("short", 15) == "short"
    assert width(shorten("任务任务任务任务", 7)) <= 7


def test_a_table_aligns_its_columns() -> None:
    lines = table(["QUEUE", "READY"], [("email", 3), ("a", 104)], align="<>")

    assert lines == ["QUEUE  READY", "email      3", "a        104"]


def test_only_the_elastic_column_gives_way_to_a_narrow_terminal() -> None:
    rows = [("1", "a.very.long.task.name.indeed", "id-1")]

    narrow = table(["#", "TASK", "ID"], rows, columns=24, elastic=(1,))

    assert max(width(line) for line in narrow) <= 24
    assert narrow[1].endswith("id-1")
    assert "a.very.long.task.name.indeed" in table(["#", "TASK", "ID"], rows)[1]


def test_a_cell_cannot_reach_the_terminal_with_control_characters() -> None:
    lines = table(["TASK"], [("\x1b]0;owned\x07\n2026 CRITICAL",)])

    assert len(lines) == 2
    assert "\x1b" not in lines[1]
    assert "\n" not in lines[1]
