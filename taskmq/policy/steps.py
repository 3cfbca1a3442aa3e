"""From a signature to the messages that run it, once what it waited for is there. Pure.

A message's ids come from its parent's, so that a settle replayed after a crash makes the same messages.
Priority, queue, acknowledgement and delivery bound are the signature's own options, else the parent
message's: a workflow's priority holds for each of its steps, and a step's own wins (DESIGN §8).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from taskmq.codec.bodies import NO_EMBED, encode_json
from taskmq.ids import GATHER, derived
from taskmq.message import Message
from taskmq.policy.composition import body_of, inner, leaves
from taskmq.policy.options import Options
from taskmq.policy.signatures import (
    CHAIN,
    CHORD,
    GROUP,
    TASK,
    Chord,
    Follow,
    Sig,
    kind_of,
    options_of,
    sigs,
    with_follow,
)

#: Header of an error callback's message: the id of the task that failed.
ERRBACK = "taskmq-errback"

_MEMBER_EMBED = NO_EMBED[:-1] + b',"members":'


def baked_options(message: Message) -> dict[str, Any]:
    """The options of a signature that makes this message again: for whoever builds workflows.

    Everything a task's declaration decided is in them, because the process that submits a later step may
    not know the task.
    """
    options: dict[str, Any] = {
        "task_id": message.task_id,
        "queue": message.queue,
        "priority": message.priority,
        "ack": message.ack.value,
        "max_deliveries": message.max_deliveries,
    }
    plain = ("eta", "expires_at", "time_limit", "soft_time_limit", "result_expires")
    options.update({n: v for n in plain if (v := getattr(message, n)) is not None})
    if message.rate is not None:
        options["rate"] = list(message.rate)
    if message.concurrency is not None:
        options["concurrency"] = list(message.concurrency)
    if not message.store_result:
        options["ignore_result"] = True
    if message.headers:
        options["headers"] = dict(message.headers)
    return options


@dataclass(frozen=True, slots=True)
class Steps:
    """Makes the messages that follow one message, at one moment."""

    parent: Message
    now: float

    def expand(
        self,
        sig: Sig,
        given: bytes,
        label: str,
        *,
        rest: Sequence[Sig] = (),
        chord: Chord | None = None,
        headers: Mapping[str, Any] | None = None,
    ) -> Iterator[Message]:
        """The messages with which this signature begins.

        `given` is the JSON value that is prepended to the arguments of what is not immutable, `rest` the
        chain behind it (reversed), `chord` the chord its end counts for. `label` names it under its
        parent.
        """
        options = options_of(sig)
        rest = (*rest, *sigs(options.get("chain")))
        chord = Chord.read(options.get("chord")) or chord
        kind = kind_of(sig)
        if kind == TASK:
            yield self._message(sig, given, label, rest, chord, headers)
        elif kind == CHAIN:
            steps = inner(sig)
            if steps:
                rest = (*rest, *reversed(steps[1:]))
                yield from self.expand(
                    steps[0], given, f"{label}/0", rest=rest, chord=chord, headers=headers
                )
            elif rest:
                yield from self.expand(rest[-1], given, f"{label}/+", rest=rest[:-1], chord=chord)
        elif kind == GROUP and rest:
            # What follows a group waits for all of it: a chord by another name.
            yield from self._chord(inner(sig), rest[-1], rest[:-1], chord, given, label)
        elif kind == GROUP:
            yield from self._members(inner(sig), given, label, chord, headers)
        elif kind == CHORD:
            body = body_of(sig)
            if body is not None:
                yield from self._chord(inner(sig), body, rest, chord, given, label)

    def _members(
        self,
        members: Sequence[Sig],
        given: bytes,
        label: str,
        chord: Chord | None,
        headers: Mapping[str, Any] | None = None,
    ) -> Iterator[Message]:
        """The members of a group, each in its own place of the chord they count for, if any."""
        place = chord.index if chord else 0
        for number, member in enumerate(members):
            mine = replace(chord, index=place) if chord else None
            yield from self.expand(member, given, f"{label}/{number}", chord=mine, headers=headers)
            place += leaves(member)

    def _chord(
        self,
        header: Sequence[Sig],
        body: Sig,
        rest: Sequence[Sig],
        outer: Chord | None,
        given: bytes,
        label: str,
    ) -> Iterator[Message]:
        # Said here once: a member's own priority must not become the body's, whichever ends last.
        body = with_follow(body, chain=rest, chord=outer, **self._workflow())
        size = sum(leaves(member) for member in header)
        if size == 0:
            # As in Celery: a chord without members runs its body with an empty list.
            yield from self.expand(body, b"[]", f"{label}/body")
            return
        key = derived(self.parent.message_id, label)
        yield from self._members(header, given, label, Chord(key, 0, size, body))

    def body(self, chord: Chord) -> tuple[Message, bytes, bytes]:
        """The message of a chord's body, and what stands before and after the members' results in it.

        Its ids come from the chord, so that every member names the same message.
        """
        sig = _first_task(chord.body)
        if sig is None:
            options = options_of(chord.body)
            sig = with_follow(
                {"task": GATHER, "options": {"ignore_result": True}},
                chain=(chord.body,),
                priority=options.get("priority"),
                queue=options.get("queue"),
            )
        options = options_of(sig)
        message = self._message(
            sig,
            None,
            "body",
            sigs(options.get("chain")),
            Chord.read(options.get("chord")),
            None,
            message_id=derived(chord.key, "body"),
        )
        before, after = _around(sig)
        return message, before + b"[", b"]" + after

    def _workflow(self) -> dict[str, Any]:
        return {"priority": self.parent.priority, "queue": self.parent.queue}

    def _message(
        self,
        sig: Sig,
        given: bytes | None,
        label: str,
        rest: Sequence[Sig],
        chord: Chord | None,
        headers: Mapping[str, Any] | None,
        *,
        message_id: str = "",
    ) -> Message:
        parent = self.parent
        options = Options(options_of(sig))
        # A step's own priority or queue is not that of the steps behind it.
        own = {n: v for n, v in self._workflow().items() if options.get(n) is not None}
        if own:
            rest = [with_follow(step, **own) for step in rest]
        message_id = message_id or derived(parent.message_id, label)
        follow = Follow(
            chain=tuple(rest),
            callbacks=sigs(options.get("link")),
            errbacks=sigs(options.get("link_error")),
            chord=chord,
        )
        return Message(
            message_id=message_id,
            task_id=options.text("task_id") or message_id,
            task=sig["task"],
            queue=options.text("queue") or parent.queue,
            body=b"" if given is None else _body(sig, given),
            priority=options.priority(parent.priority),
            eta=options.eta(self.now),
            expires_at=options.expires_at(self.now),
            max_deliveries=options.count("max_deliveries") or parent.max_deliveries,
            ack=options.ack(parent.ack),
            time_limit=options.seconds("time_limit"),
            soft_time_limit=options.seconds("soft_time_limit"),
            rate=options.rate(),
            concurrency=options.concurrency(),
            follow=follow.write(),
            parent_id=parent.task_id,
            root_id=parent.root_id or parent.task_id,
            store_result=options.get("ignore_result") is not True,
            result_expires=options.seconds("result_expires"),
            headers={**options.headers(), **(headers or {})},
        )


def _first_task(sig: Sig) -> Sig | None:
    """The one task a chord's body begins with, carrying what follows it; None where it is several."""
    while kind_of(sig) == CHAIN:
        steps = inner(sig)
        if not steps:
            return None
        options = options_of(sig)
        behind = (*sigs(options.get("chain")), *reversed(steps[1:]))
        sig = with_follow(steps[0], chain=behind, chord=Chord.read(options.get("chord")))
    return sig if kind_of(sig) == TASK else None


def _arguments(sig: Sig) -> tuple[bytes, bytes]:
    """The signature's own args without their brackets, and its kwargs, as JSON."""
    args, kwargs = sig.get("args"), sig.get("kwargs")
    args = list(args) if isinstance(args, (list, tuple)) else []
    kwargs = kwargs if isinstance(kwargs, dict) else {}
    return encode_json(args, "args").encode()[1:-1], encode_json(kwargs, "kwargs").encode()


def _body(sig: Sig, given: bytes) -> bytes:
    args, kwargs = _arguments(sig)
    if sig.get("immutable") is not True:
        args = given + b"," + args if args else given
    return b"[[" + args + b"]," + kwargs + b"," + NO_EMBED + b"]"


def _around(sig: Sig) -> tuple[bytes, bytes]:
    """What stands before and after the list of results in a chord's body."""
    args, kwargs = _arguments(sig)
    if sig.get("immutable") is True:
        # The results go where the task does not look, for the parts are always put together.
        return b"[[" + args + b"]," + kwargs + b"," + _MEMBER_EMBED, b"}]"
    more = b"," + args if args else b""
    return b"[[", more + b"]," + kwargs + b"," + NO_EMBED + b"]"
