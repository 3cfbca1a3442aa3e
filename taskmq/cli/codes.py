"""Exit codes. 0 is done; a shell script can tell the others apart."""

from __future__ import annotations

FAILED = 1  # what was asked did not succeed
MISUSE = 2  # wrong use or configuration
CORRUPT = 3  # the store is damaged and was left as it is
HELD = 5  # the pid file is held by a live worker
INTERRUPTED = 130  # as shells have it for SIGINT
