"""`taskmq result`: what a task ended as. Pure."""

from __future__ import annotations

import json
from typing import Any

from taskmq.cli.text import duration, moment, printable_lines
from taskmq.message import JSON, ResultRecord
from taskmq.printable import printable
from taskmq.states import State

# The error whose name says no more than the state.
_SAID_BY_STATE = {State.REVOKED: "TaskRevoked", State.EXPIRED: "TaskExpired"}


def value_of(record: ResultRecord) -> Any:
    """The stored value as JSON has it; bytes in another content type are described, never unpickled."""
    if record.body is None:
        return None
    if record.content_type != JSON:
        return f"<{len(record.body)} bytes of {record.content_type}>"
    try:
        return json.loads(record.body)
    except ValueError:
        return f"<{len(record.body)} bytes that are no JSON>"


def failure_of(record: ResultRecord) -> str:
    """`ValueError: boom` from a stored failure; empty when the record holds none."""
    value = value_of(record)
    if not isinstance(value, dict) or "exc_type" not in value:
        return ""
    said = value.get("exc_message") or ()
    parts = [str(part) for part in said] if isinstance(said, list) else [str(said)]
    return ": ".join(filter(None, [str(value["exc_type"]), ", ".join(parts)]))


def because(record: ResultRecord) -> str:
    """Why it ended so, for people: what was raised, or what is to be said beyond the state's own name."""
    said = failure_of(record)
    own = _SAID_BY_STATE.get(record.state)
    if own is not None:
        said = said.removeprefix(own).removeprefix(": ")
    return "" if said == str(record.state) else said


def lines(
    task_id: str, state: State, record: ResultRecord | None, now: float, *, traceback: bool
) -> list[str]:
    """The value alone when it succeeded, so that it can be piped; else the state and the failure."""
    if record is not None and state is State.SUCCEEDED:
        return printable_lines(json.dumps(value_of(record), ensure_ascii=False, indent=2))
    said = [f"{printable(task_id)}: {state}"]
    if record is None:
        return said
    if state.final:
        said[0] += f", {because(record)}" if because(record) else ""
        if record.ended_at is not None:
            ago = duration(now - record.ended_at)
            said.append(f"  ended at {moment(record.ended_at, now)}, {ago} ago")
    elif record.body is not None and not failure_of(record):
        said.append(f"  progress {json.dumps(value_of(record), ensure_ascii=False)}")
    if record.worker:
        said.append(f"  worker {record.worker}")
    said = [printable(line) for line in said]
    if traceback and record.traceback:
        said += ["", *printable_lines(record.traceback)]
    return said


def as_json(
    task_id: str, state: State, record: ResultRecord | None, *, traceback: bool
) -> dict[str, Any]:
    """The same for programs; `value` is the result, the failure or the progress."""
    answer: dict[str, Any] = {"task_id": task_id, "state": str(state), "final": state.final}
    if record is not None:
        answer |= {
            "value": value_of(record),
            "error": failure_of(record) or None,
            "task": record.task,
            "worker": record.worker,
            "retries": record.retries,
            "ended_at": record.ended_at,
            "expires_at": record.expires_at,
        }
        if traceback:
            answer["traceback"] = record.traceback
    return answer
