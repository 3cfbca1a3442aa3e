"""Signatures as they are stored beside a message, and what follows a message. Pure.

A signature is Celery's dict: `task, args, kwargs, options, subtask_type, immutable`. A workflow is a
signature whose type is chain (`kwargs.tasks`, in running order), group (`kwargs.tasks`) or chord
(`kwargs.header`, `kwargs.body`). Its options say what follows it: `link`, `link_error`, `chain` (reversed,
the next step last) and `chord` (the chord it is a member of).

Everything here reads leniently: what a message carries may come from anywhere, and a malformed
part must not stop a transport from ending the message. `follow_of_embed` is the strict gate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard

from taskmq.codec.bodies import decode_json, encode_json
from taskmq.codec.values import MAX_FOLLOW_DEPTH
from taskmq.errors import DecodeError
from taskmq.message import MAX_COUNT

Sig = Mapping[str, Any]

TASK, CHAIN, GROUP, CHORD = "task", "chain", "group", "chord"
_KINDS = {
    "chain": CHAIN,
    "group": GROUP,
    "chord": CHORD,
    "celery.chain": CHAIN,
    "celery.group": GROUP,
    "celery.chord": CHORD,
}


@dataclass(frozen=True, slots=True)
class Chord:
    """A chord as its members carry it. `index` is this member's place (of its first leaf) among `size`."""

    key: str
    index: int
    size: int
    body: Sig

    @classmethod
    def read(cls, value: Any) -> Chord | None:
        """The chord, or None for anything else (Celery's own form names no size)."""
        if not isinstance(value, Mapping):
            return None
        key, body = value.get("key"), value.get("body")
        index, size = value.get("index"), value.get("size")
        if not isinstance(key, str) or not key or not is_sig(body):
            return None
        if not _is_count(index) or not _is_count(size) or index >= size:
            return None
        return cls(key, index, size, body)

    def wire(self) -> dict[str, Any]:
        """As it is stored in a `follow` and in a signature's options."""
        return {"key": self.key, "index": self.index, "size": self.size, "body": self.body}


class Follow(NamedTuple):
    """What follows one message."""

    chain: tuple[Sig, ...] = ()
    callbacks: tuple[Sig, ...] = ()
    errbacks: tuple[Sig, ...] = ()
    chord: Chord | None = None

    def write(self) -> str | None:
        """As JSON text; None when nothing follows."""
        if not any(self):
            return None
        value: dict[str, Any] = {
            "chain": self.chain,
            "callbacks": self.callbacks,
            "errbacks": self.errbacks,
            "chord": self.chord.wire() if self.chord else None,
        }
        return encode_json({name: part for name, part in value.items() if part}, "follow")


def read_follow(text: str | None) -> Follow:
    """What follows, from a message's `follow`; malformed parts are left out."""
    if not text:
        return Follow()
    try:
        value = decode_json(text, max_depth=MAX_FOLLOW_DEPTH)
    except DecodeError:
        return Follow()
    if not isinstance(value, Mapping):
        return Follow()
    return Follow(
        chain=sigs(value.get("chain")),
        callbacks=sigs(value.get("callbacks")),
        errbacks=sigs(value.get("errbacks")),
        chord=Chord.read(value.get("chord")),
    )


def follow_of_embed(embed: Mapping[str, Any], headers: Mapping[str, Any]) -> str | None:
    """What follows a foreign message, from the third part of its body, as `Message.follow` holds it.

    Raises `DecodeError` naming the first part that is no signature. Celery's chord is kept only where it
    names its size: otherwise its parts are counted in Celery's own result store.
    """
    follow: dict[str, Any] = {}
    for name in ("chain", "callbacks", "errbacks"):
        part = embed.get(name)
        if not part:
            continue
        if not isinstance(part, (list, tuple)):
            raise DecodeError(f"the body's {name}: a list of signatures, got {_short(part)}")
        for index, sig in enumerate(part):
            if not is_sig(sig):
                raise DecodeError(
                    f"the body's {name}[{index}]: a signature with a task, got {_short(sig)}"
                )
        follow[name] = part
    body = embed.get("chord")
    if is_sig(body):
        chord = Chord.read(
            {
                "key": headers.get("group"),
                "index": headers.get("group_index") or 0,
                "size": body.get("chord_size"),
                "body": body,
            }
        )
        if chord is not None:
            follow["chord"] = chord.wire()
    return encode_json(follow, "the body's embed") if follow else None


def kind_of(sig: Sig) -> str:
    """TASK, CHAIN, GROUP or CHORD. Celery's map and chunks are tasks that run as such."""
    kind = sig.get("subtask_type")
    return _KINDS.get(kind if isinstance(kind, str) else sig["task"], TASK)


def options_of(sig: Sig) -> Mapping[str, Any]:
    """A signature's options; empty where it has none that can be read."""
    value = sig.get("options")
    return value if isinstance(value, Mapping) else {}


def sigs(value: Any) -> tuple[Sig, ...]:
    """The signatures in an option that holds one, several or none."""
    if is_sig(value):
        return (value,)
    if isinstance(value, (list, tuple)):
        return tuple(item for item in value if is_sig(item))
    return ()


def with_follow(
    sig: Sig, *, chain: Sequence[Sig] = (), chord: Chord | None = None, **more: Any
) -> Sig:
    """The signature with more to follow it: a chain after its own, a chord it is a member of.

    `more` are options it takes where it names none itself.
    """
    options = {**{k: v for k, v in more.items() if v is not None}, **options_of(sig)}
    if chain:
        options["chain"] = [*chain, *sigs(options.get("chain"))]
    if chord is not None and Chord.read(options.get("chord")) is None:
        options["chord"] = chord.wire()
    return {**sig, "options": options}


def is_sig(value: Any) -> TypeGuard[Sig]:
    """Whether this names a task: the least a signature is."""
    return isinstance(value, Mapping) and isinstance(value.get("task"), str) and bool(value["task"])


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT


def _short(value: Any) -> str:
    return ascii(value)[:80]
