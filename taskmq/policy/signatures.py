"""Signatures as they are stored beside a message: reading, counting, and what follows in each. Pure.

A signature is Celery's dict: `task, args, kwargs, options, subtask_type, immutable`. A workflow is a
signature whose type is chain (`kwargs.tasks`, in running order), group (`kwargs.tasks`) or chord
(`kwargs.header`, `kwargs.body`). Its options say what follows it: `link`, `link_error`, `chain` (reversed,
the next step last) and `chord` (the chord it is a member of).

Everything here reads leniently: what a message carries may come from anywhere, and a malformed
part must not stop a transport from ending the message. `follow_of_embed` is the strict gate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard

from taskmq.codec.bodies import decode_json, encode_json
from taskmq.codec.values import MAX_FOLLOW_DEPTH
from taskmq.errors import DecodeError

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

# What a workflow's own options mean for the signatures inside it, where those name none.
_SHARED = ("priority", "queue", "expires", "expires_at")
_FIRST = ("eta", "countdown")


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
        if not isinstance(key, str) or not key or not _is_sig(body):
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
            if not _is_sig(sig):
                raise DecodeError(
                    f"the body's {name}[{index}]: a signature with a task, got {_short(sig)}"
                )
        follow[name] = part
    body = embed.get("chord")
    if _is_sig(body):
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
    value = sig.get("options")
    return value if isinstance(value, Mapping) else {}


def sigs(value: Any) -> tuple[Sig, ...]:
    """The signatures in an option that holds one, several or none."""
    if _is_sig(value):
        return (value,)
    if isinstance(value, (list, tuple)):
        return tuple(item for item in value if _is_sig(item))
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


def inner(sig: Sig) -> tuple[Sig, ...]:
    """The signatures of a chain or a group, or the header of a chord, with what its options mean to them.

    A group inside a header is part of the header.
    """
    kwargs = sig.get("kwargs")
    kwargs = kwargs if isinstance(kwargs, Mapping) else {}
    kind = kind_of(sig)
    if kind != CHORD:
        found = [
            _share(sig, item, first=i == 0) for i, item in enumerate(sigs(kwargs.get("tasks")))
        ]
        if kind == CHAIN and found:
            found[-1] = _add_links(found[-1], link=sigs(options_of(sig).get("link")))
        if kind == GROUP:
            found = [_add_links(s, link=sigs(options_of(sig).get("link"))) for s in found]
        return tuple(
            _add_links(s, link_error=sigs(options_of(sig).get("link_error"))) for s in found
        )
    header = kwargs.get("header")
    if _is_sig(header) and kind_of(header) == GROUP:
        header = inner(header)
    return tuple(_flat(_share(sig, item, first=True) for item in sigs(header)))


def body_of(chord: Sig) -> Sig | None:
    """The body of a chord's signature, with what the chord's options mean to it."""
    kwargs = chord.get("kwargs")
    bodies = sigs(kwargs.get("body")) if isinstance(kwargs, Mapping) else ()
    if not bodies:
        return None
    body = _share(chord, bodies[0], first=False)
    options = options_of(chord)
    return _add_links(
        body, link=sigs(options.get("link")), link_error=sigs(options.get("link_error"))
    )


def leaves(sig: Sig) -> int:
    """How many results a header member contributes to its chord."""
    kind = kind_of(sig)
    if kind == GROUP:
        return sum(leaves(item) for item in inner(sig))
    if kind == CHAIN:
        steps = inner(sig)
        return leaves(steps[-1]) if steps else 0
    if kind == CHORD:
        body = body_of(sig)
        return leaves(body) if body is not None else 0
    return 1


def nodes(sig: Sig) -> Iterator[Sig]:
    """Every task that would have come of this signature: itself, what it holds and what follows it."""
    kind = kind_of(sig)
    if kind == TASK:
        yield sig
    else:
        for item in inner(sig):
            yield from nodes(item)
    if kind == CHORD:
        body = body_of(sig)
        if body is not None:
            yield from nodes(body)
    elif kind == TASK:
        for item in sigs(options_of(sig).get("link")):
            yield from nodes(item)
    for item in sigs(options_of(sig).get("chain")):
        yield from nodes(item)


def errbacks_of(sig: Sig) -> tuple[Sig, ...]:
    """Whom to tell when this signature cannot run: the error callbacks of what it begins with."""
    kind = kind_of(sig)
    if kind == TASK:
        return sigs(options_of(sig).get("link_error"))
    if kind == CHORD:
        body = body_of(sig)
        return errbacks_of(body) if body is not None else ()
    begins = inner(sig)[:1] if kind == CHAIN else inner(sig)
    return without_repeats([errback for item in begins for errback in errbacks_of(item)])


def without_repeats(errbacks: Sequence[Sig], told: Sequence[Sig] = ()) -> tuple[Sig, ...]:
    """Each call once, and none of those in `told`: one error callback per failure."""
    seen = {_call(sig) for sig in told}
    out = []
    for sig in errbacks:
        call = _call(sig)
        if call not in seen:
            seen.add(call)
            out.append(sig)
    return tuple(out)


def _call(sig: Sig) -> str:
    return encode_json([sig["task"], sig.get("args"), sig.get("kwargs"), sig.get("immutable")], "")


def chords_of(sig: Sig) -> Iterator[Chord]:
    """The chords outside this signature that wait for it or for the chain behind it."""
    options = options_of(sig)
    chord = Chord.read(options.get("chord"))
    if chord is not None:
        yield chord
    for item in sigs(options.get("chain")):
        yield from chords_of(item)


def _flat(members: Iterator[Sig]) -> Iterator[Sig]:
    for member in members:
        if kind_of(member) == GROUP:
            yield from _flat(iter(inner(member)))
        else:
            yield member


def _share(outer: Sig, item: Sig, *, first: bool) -> Sig:
    options = options_of(outer)
    names = (*_SHARED, *_FIRST) if first or kind_of(outer) == GROUP else _SHARED
    shared = {name: options[name] for name in names if options.get(name) is not None}
    return {**item, "options": {**shared, **options_of(item)}} if shared else item


def _add_links(sig: Sig, **links: tuple[Sig, ...]) -> Sig:
    added = {name: more for name, more in links.items() if more}
    if not added:
        return sig
    options = dict(options_of(sig))
    for name, more in added.items():
        options[name] = [*sigs(options.get(name)), *more]
    return {**sig, "options": options}


def _is_sig(value: Any) -> TypeGuard[Sig]:
    return isinstance(value, Mapping) and isinstance(value.get("task"), str) and bool(value["task"])


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _short(value: Any) -> str:
    return ascii(value)[:80]
