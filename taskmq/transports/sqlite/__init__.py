"""The embedded transport: one SQLite file that needs no server (DESIGN §6.1).

transport     the seam's verbs, in terms of what is below
store         the one write path: file lock, BEGIN IMMEDIATE, group commit, fork and moved-file guard
lock  files  faults  forks  wake  options  paths     what a file on a disk brings with it
schema.sql  migrations  rows  catalog                what is in the file
submit  settle  claim  leases  places  endings  …    one idea of the engine each, given a `Tx`
operators  find  dead  coordination  duties  results the other seams
"""

from __future__ import annotations

from taskmq.transports.sqlite.transport import SQLiteTransport

__all__ = ["SQLiteTransport"]
