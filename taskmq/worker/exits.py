"""The exit codes of a worker."""

from __future__ import annotations

#: it stopped because it was told to; nothing it held is left behind
EXIT_OK = 0
#: it gave up: the transport did not answer, also not after reconnecting
EXIT_FAILED = 1
#: wrong use or configuration, or the transport could not be opened at the start
EXIT_USAGE = 2
#: the message store is damaged
EXIT_CORRUPT = 3
#: no pool child could be started
EXIT_NO_CHILDREN = 4
