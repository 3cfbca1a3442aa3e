"""Identifiers made by the producer: monotonic ULIDs, time-ordered UUIDs for Celery callers, one fixed name.

Ids identify and never order: the enqueue sequence given inside the write transaction does that.
Monotonic within a process keeps neighbours together in the store's indexes (random ids measured
42 % inverted neighbours and as many scattered page writes).
"""

from __future__ import annotations

import os
import threading
import time

#: The name of the task that hands its one argument on. It stands in as a chord's body where the body is a
#: workflow of several messages; every app registers it.
GATHER = "taskmq.gather"

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
# 1024 two-character pairs: ten bits a look-up halves the cost of the text form.
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_RANDOM_BITS = 80
_RANDOM_MASK = (1 << _RANDOM_BITS) - 1


class IdSource:
    """Makes 128-bit ids: 48 bits of milliseconds, 80 random bits that count up inside one millisecond."""

    def __init__(self) -> None:
        self._pid = 0
        self._last_ms = 0
        self._tail = 0
        self.renew_lock()

    def renew_lock(self) -> None:
        """In a forked child: another thread of the parent may have held it."""
        self._lock = threading.Lock()

    def number(self) -> int:
        """The next id as a number of 128 bits."""
        ms = time.time_ns() // 1_000_000
        pid = os.getpid()
        fresh: int | None = None
        while True:
            # Nothing is called inside, so no signal handler runs there that would want an id as well.
            with self._lock:
                last = self._last_ms
                # After a fork parent and child would count up from one state.
                new = ms > last or pid != self._pid
                if not new:
                    self._tail += 1
                elif fresh is not None:
                    if ms > last:
                        self._last_ms = ms
                    self._pid = pid
                    self._tail = fresh
                if not new or fresh is not None:
                    return (self._last_ms << _RANDOM_BITS) | (self._tail & _RANDOM_MASK)
            fresh = int.from_bytes(os.urandom(10), "big") >> 1


_SOURCE = IdSource()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_SOURCE.renew_lock)


def ulid() -> str:
    """A new ULID as 26 characters, larger than every earlier one of this process."""
    n = _SOURCE.number()
    pairs = _PAIRS
    out = []
    for shift in (120, 110, 100, 90, 80, 70, 60, 50, 40, 30, 20, 10, 0):
        out.append(pairs[(n >> shift) & 1023])
    return "".join(out)


def uuid() -> str:
    """A new time-ordered UUID (version 7) in its usual text form, for Celery's task ids."""
    n = _SOURCE.number()
    tail = n & _RANDOM_MASK
    ms = n >> _RANDOM_BITS
    # version 7: 48 bits ms, 4 bits version, 12 bits, 2 bits variant, 62 bits. 74 of 80 bits fit,
    # the low ones are kept because they are what counts up.
    high = (tail >> 62) & 0xFFF
    low = (tail & ((1 << 62) - 1)) | (0b10 << 62)
    h = f"{ms:012x}{0x7000 | high:04x}{low:016x}"
    return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"


def derived(parent: str, label: str) -> str:
    """The id of what `label` makes of the message `parent`: the same every time.

    A settle that is replayed after a crash names the same messages again, and submitting them again
    changes nothing.
    """
    # Imported here: it loads OpenSSL, and most processes never derive an id.
    from hashlib import sha256

    digest = sha256(f"{parent}\x00{label}".encode("utf-8", "surrogatepass")).hexdigest()
    # The shape of a UUID (version 8, whose bits are the maker's own), which Celery's tools expect.
    variant = "89ab"[int(digest[16], 16) & 3]
    return f"{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-{variant}{digest[17:20]}-{digest[20:32]}"
