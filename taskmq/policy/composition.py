"""What a workflow's signature consists of: its parts, its tasks, and who waits for it. Pure.

Apart from `signatures`, which reads one value: here whole trees of them are walked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from taskmq.codec.bodies import encode_json
from taskmq.policy.signatures import (
    CHAIN,
    CHORD,
    GROUP,
    TASK,
    Chord,
    Sig,
    is_sig,
    kind_of,
    options_of,
    sigs,
)

# What a workflow's own options mean for the signatures inside it, where those name none.
_SHARED = ("priority", "queue", "expires", "expires_at")
_FIRST = ("eta", "countdown")


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
    if is_sig(header) and kind_of(header) == GROUP:
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
