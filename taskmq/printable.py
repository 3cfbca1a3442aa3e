"""Untrusted text made safe for a terminal, a table and a line of a log.

A task name, an id or an exception's message may come from anybody who can reach the broker. Escape
sequences in it could rewrite what an operator reads, and a line break could forge a log record.
"""

from __future__ import annotations

import re

# C0 and C1 controls (ESC, CSI, CR, LF…), DEL, what reverses the direction of text, line and paragraph
# separators, invisible marks and tags, and lone surrogates, which cannot be printed at all. The joiners
# U+200C and U+200D stay: emoji and several scripts need them.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str, *, multiline: bool = False) -> str:
    """`text` with every control, direction and invisible character written as an escape.

    `multiline` keeps line feeds and tabs, for tracebacks. Text without such characters comes back as it
    is, in every script.
    """
    # The common case is one scan in C.
    if text.isprintable():
        return text
    return _UNSAFE.sub(_escape_lines if multiline else _escape, text)


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if char in _NAMED:
        return _NAMED[char]
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escape_lines(match: re.Match[str]) -> str:
    return match[0] if match[0] in "\n\t" else _escape(match)
