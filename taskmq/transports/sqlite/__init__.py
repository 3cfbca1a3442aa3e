"""The embedded transport: one SQLite file that needs no server (DESIGN §6.1).

transport                                 the seam's verbs, in terms of what is below
store  group  connect                     the one write path: file lock, BEGIN IMMEDIATE, group commit
lock  files  faults  forks  wake  waiter  what a file on a disk brings with it
options  paths
schema.sql  migrations  rows  records     what is in the file
catalog
tx                                        what every part below is given
submit  settle  claim  heads  due  peek   one idea of the engine each
leases  places  keys  rates  rotation
endings  consequences
operators  depth  order  find  dead       the operators' seam
revoking  purging
coordination  reaping  sweeping           workers and duties
results                                   the result store
"""

from __future__ import annotations

from taskmq.transports.sqlite.transport import SQLiteTransport

__all__ = ["SQLiteTransport"]
