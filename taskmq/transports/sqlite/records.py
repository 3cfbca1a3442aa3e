"""Result records as rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from taskmq.message import JSON, ResultRecord
from taskmq.states import State
from taskmq.transports.sqlite.rows import dump
from taskmq.transports.sqlite.times import micros, seconds
from taskmq.transports.sqlite.tx import Tx

RECORD_COLUMNS = (
    "task_id, state, body, ended_at, expires_at, task, worker, retries, traceback, meta"
)
_PUT = (
    "INSERT INTO result(task_id, state, final, body, ended_at, expires_at, task, worker, retries, "
    "traceback, meta) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(task_id) DO UPDATE SET "
    "state = excluded.state, final = excluded.final, body = excluded.body, "
    "ended_at = excluded.ended_at, expires_at = excluded.expires_at, task = excluded.task, "
    "worker = excluded.worker, retries = excluded.retries, traceback = excluded.traceback, "
    "meta = excluded.meta"
)


def put_record(tx: Tx, record: ResultRecord) -> None:
    """Write or replace a task's record."""
    tx.execute(_PUT, _row(record))


def put_records(tx: Tx, records: Iterable[ResultRecord]) -> None:
    """As `put_record`, of several tasks."""
    tx.executemany(_PUT, map(_row, records))


def _row(record: ResultRecord) -> tuple[Any, ...]:
    return (
        record.task_id,
        record.state.value,
        record.state.final,
        record.body,
        record.ended_at,
        None if record.expires_at is None else micros(record.expires_at),
        record.task,
        record.worker,
        record.retries,
        record.traceback,
        _meta(record),
    )


def _meta(record: ResultRecord) -> str | None:
    meta: dict[str, Any] = {}
    if record.content_type != JSON:
        meta["content_type"] = record.content_type
    if record.parent_id is not None:
        meta["parent_id"] = record.parent_id
    if record.children:
        meta["children"] = record.children
    if record.label:
        meta["label"] = record.label
    return dump(meta, f"the result of {record.task_id}") if meta else None


def to_record(row: Sequence[Any]) -> ResultRecord:
    """The record of a row of `RECORD_COLUMNS`."""
    task_id, state, body, ended_at, expires_at, task, worker, retries, traceback, meta = row
    more = json.loads(meta) if meta else {}
    if "children" in more:
        more["children"] = tuple(more["children"])
    return ResultRecord(
        task_id=task_id,
        state=State(state),
        body=body,
        traceback=traceback,
        ended_at=ended_at,
        expires_at=seconds(expires_at),
        task=task,
        worker=worker,
        retries=retries,
        **more,
    )
