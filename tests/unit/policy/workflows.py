"""Signatures and messages for the tests of what follows, and a small runner of whole workflows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from taskmq.codec import Codec, encode_failure
from taskmq.ids import GATHER
from taskmq.message import Message, ResultRecord
from taskmq.policy.following import ChordPart, Consequence, ended, succeeded
from taskmq.states import State

NOW = 1_700_000_000.0
JSON = "application/json"
Sig = dict[str, Any]


def sig(task: str, *args: Any, immutable: bool = False, kwargs: Any = None, **options: Any) -> Sig:
    return {
        "task": task,
        "args": list(args),
        "kwargs": kwargs or {},
        "options": options,
        "subtask_type": None,
        "immutable": immutable,
    }


def composed(kind: str, options: Mapping[str, Any] | None = None, **kwargs: Any) -> Sig:
    return {
        "task": f"celery.{kind}",
        "args": [],
        "kwargs": kwargs,
        "options": dict(options or {}),
        "subtask_type": kind,
        "immutable": False,
    }


def chain(*tasks: Sig, **options: Any) -> Sig:
    return composed("chain", options, tasks=list(tasks))


def group(*tasks: Sig, **options: Any) -> Sig:
    return composed("group", options, tasks=list(tasks))


def chord(header: Iterable[Sig], body: Sig, **options: Any) -> Sig:
    return composed("chord", options, header=list(header), body=body)


def place(index: int, size: int, body: Sig, key: str = "k") -> dict[str, Any]:
    return {"key": key, "index": index, "size": size, "body": body}


def message(task: str = "first", follow: Any = None, **fields: Any) -> Message:
    values: dict[str, Any] = {
        "message_id": "m-1",
        "task_id": "t-1",
        "task": task,
        "queue": "work",
        "body": b"[[],{},null]",
        "follow": json.dumps(follow) if isinstance(follow, dict) else follow,
    }
    return Message(**{**values, **fields})


def after_success(of: Message, result: Any = 5) -> Consequence:
    body, content_type = Codec().encode_value(result)
    return succeeded(of, body, content_type, now=NOW)


def after_failure(of: Message, state: State = State.FAILED) -> Consequence:
    failure = encode_failure(ValueError("boom"))
    return ended(of, state, failure, now=NOW, result_expires=60.0)


def arguments(of: Message) -> tuple[list[Any], dict[str, Any]]:
    args, kwargs, _ = Codec().decode_body(of.body, of.content_type, of.content_encoding)
    return args, kwargs


def told(record: ResultRecord) -> str:
    value = json.loads(record.body or b"")
    assert (value["exc_type"], value["exc_module"]) == ("UpstreamFailed", "taskmq.errors")
    text: str = value["exc_message"][0]
    return text


@dataclass
class Runner:
    """Runs messages to the end as a transport would apply their consequences.

    `functions` by task name give the value or raise; a task without one returns its name with its
    arguments. `ran` lists (task, args, priority) in the order of running.
    """

    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    ran: list[tuple[str, list[Any], int]] = field(default_factory=list)
    results: dict[str, Any] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    _parts: dict[str, dict[int, bytes]] = field(default_factory=dict)
    _over: set[str] = field(default_factory=set)
    _seen: set[str] = field(default_factory=set)

    def run(self, *messages: Message) -> Runner:
        queue = list(messages)
        while queue:
            queue += self._one(queue.pop(0))
        return self

    def names(self) -> list[str]:
        return [task for task, _, _ in self.ran if task != GATHER]

    def _one(self, msg: Message) -> list[Message]:
        assert msg.message_id not in self._seen, f"{msg.task} was submitted twice"
        self._seen.add(msg.message_id)
        args, kwargs = arguments(msg)
        self.ran.append((msg.task, args, msg.priority))
        function = self.functions.get(msg.task)
        try:
            if function is not None:
                value = function(*args, **kwargs)
            else:
                value = args[0] if msg.task == GATHER else f"{msg.task}{args!r}"
        except ValueError:
            self.lost[msg.task_id] = "raised"
            return self._apply(after_failure(msg))
        self.results[msg.task_id] = value
        return self._apply(after_success(msg, value))

    def _apply(self, then: Consequence) -> list[Message]:
        out = list(then.submits)
        for record in then.results:
            self.lost[record.task_id] = told(record)
        for move in then.chords:
            if move.key in self._over:
                continue
            if isinstance(move, ChordPart):
                parts = self._parts.setdefault(move.key, {})
                parts.setdefault(move.index, move.part)
                if len(parts) < move.size:
                    continue
                joined = b",".join(parts[index] for index in sorted(parts))
                out.append(replace(move.then, body=move.prefix + joined + move.suffix))
            else:
                out += move.submits
                for record in move.results:
                    self.lost[record.task_id] = told(record)
            self._over.add(move.key)
        return out


def boom(*args: Any) -> Any:
    raise ValueError("boom")
