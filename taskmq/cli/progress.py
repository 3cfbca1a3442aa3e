"""A progress bar for anything long: one line on stderr that redraws itself, on a terminal only.

Where no terminal reads, `Progress` prints a line when a tenth more is done, so that a log shows that it
moves without being flooded.
"""

from __future__ import annotations

import shutil
import sys
import time
from types import TracebackType
from typing import TextIO

from taskmq.cli.output import is_terminal
from taskmq.cli.text import shorten, width

_FULL, _EMPTY = "█", "░"
# A redraw costs a write to a terminal that may be far away.
_REDRAW = 0.08


class Progress:
    """`with Progress("replaying", total) as bar: bar.advance(10)`. `extra` is shown behind the bar."""

    def __init__(self, label: str, total: int, *, stream: TextIO | None = None) -> None:
        self.label = label
        self.total = max(1, total)
        self.done = 0
        self.extra = ""
        self._stream = stream or sys.stderr
        self._live = is_terminal(self._stream)
        self._drawn_at = 0.0
        self._tenths = 0
        encoding = (getattr(self._stream, "encoding", "") or "").lower().replace("-", "")
        self._glyphs = (_FULL, _EMPTY) if encoding == "utf8" else ("#", ".")

    def __enter__(self) -> Progress:
        self._draw(force=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            self._draw(force=True)
            self._stream.write("\n")
            self._stream.flush()

    def advance(self, count: int = 1, extra: str | None = None) -> None:
        """`count` more are done."""
        self.set(self.done + count, extra)

    def set(self, done: int, extra: str | None = None) -> None:
        """So many are done in all."""
        self.done = min(self.total, done)
        if extra is not None:
            self.extra = extra
        self._draw()

    def text(self, room: int = 28) -> str:
        """The line as it stands."""
        share = self.done / self.total
        full, empty = self._glyphs
        bar = full * int(room * share) + empty * (room - int(room * share))
        count = str(self.done).rjust(len(str(self.total)))
        tail = f"  {self.extra}" if self.extra else ""
        return f"{self.label} {bar} {share:4.0%} {count}/{self.total}{tail}"

    def _draw(self, *, force: bool = False) -> None:
        if not self._live:
            self._log()
            return
        now = time.monotonic()
        if not force and now - self._drawn_at < _REDRAW:
            return
        self._drawn_at = now
        columns = shutil.get_terminal_size((80, 24)).columns - 1
        # The bar's room follows the terminal and not what is said behind it, or it would jump about.
        line = self.text(room=max(8, min(28, columns - 50)))
        if width(line) > columns:
            line = shorten(line, columns)
        self._stream.write("\r" + line + "\x1b[K")
        self._stream.flush()

    def _log(self) -> None:
        tenths = self.done * 10 // self.total
        if tenths > self._tenths:
            self._tenths = tenths
            self._stream.write(self.text() + "\n")
            self._stream.flush()
