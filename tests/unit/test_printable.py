"""Nothing a message carries can move the cursor, colour a terminal or forge a line of a log."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskmq.printable import printable


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("proj.tasks.add", "proj.tasks.add"),
        ("naïve Grüße ☃ 😀 中文 עברית", "naïve Grüße ☃ 😀 中文 עברית"),
        ("👩\u200d💻", "👩\u200d💻"),
        ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
        ("\x1b[2J\x9b31m", "\\x1b[2J\\x9b31m"),
        ("done\n2026 CRITICAL root: pwned", "done\\n2026 CRITICAL root: pwned"),
        ("a\r\tb\x00\x7f", "a\\r\\tb\\x00\\x7f"),
        ("user\u202egnp.exe", "user\\u202egnp.exe"),
        ("\u2066x\u2069\u200f", "\\u2066x\\u2069\\u200f"),
        ("a\u2028b\u2029c", "a\\u2028b\\u2029c"),
        ("\ufeffzero\u200bwidth", "\\ufeffzero\\u200bwidth"),
        ("\ud800", "\\ud800"),
        ("tag\U000e0041", "tag\\U000e0041"),
    ],
)
def test_unsafe_characters_are_escaped_and_others_stay(text: str, safe: str) -> None:
    assert printable(text) == safe


def test_multiline_keeps_lines_and_tabs_only() -> None:
    assert printable("a\n\tb\r\x1b[0m", multiline=True) == "a\n\tb\\r\\x1b[0m"


@given(st.text())
@settings(max_examples=100, deadline=None)
def test_result_is_one_line_of_storable_text_without_controls(text: str) -> None:
    safe = printable(text)

    safe.encode("utf-8")
    assert safe.splitlines() in ([safe], [])
    assert not any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in safe)
    assert printable(safe) == safe
