"""What `taskmq doctor` looks at: each module yields findings about one thing."""

from __future__ import annotations

from typing import NamedTuple

OK, NOTE, WARN, FAIL = "ok", "note", "warn", "fail"


class Finding(NamedTuple):
    """One thing that was looked at. `status` is ok, note, warn or fail; `said` is a sentence or a value."""

    status: str
    name: str
    said: str
