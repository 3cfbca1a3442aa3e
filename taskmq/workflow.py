"""Workflows: calls that follow each other, run beside each other, and come together again.

    chain(fetch.s(url), parse.s(), store.s()).apply_async(priority=Priority.HIGH)
    group(resize.s(path, size) for size in SIZES).apply_async()
    chord(count.s(path) for path in paths)(total.s())

What follows a step is stored with its message and submitted in the transaction that settles it: no
process waits in between, and a crash neither loses a step nor doubles it. Every step comes to an end:
one that can no longer run ends as FAILED with `UpstreamFailed`. A workflow begins in one transaction, all
of it or nothing.

Options given to a workflow hold for each of its steps, and those of a step's own signature win: so a
priority beats the tasks' own declarations. `eta` and `countdown` concern the beginning, `task_id` and
`link` the end; `expires` in seconds counts from the submit of the whole. A `link_error` callback gets the
id of the failed task as its first argument, once for each failure; a chord's is its body's, and is told
too when a member fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, TypeVar, overload

from taskmq import ids
from taskmq.errors import ConfigError
from taskmq.message import Message
from taskmq.options import SubmitKeywords, check_seconds
from taskmq.policy.signatures import Chord as Place
from taskmq.policy.signatures import Sig, with_follow
from taskmq.result import GroupResult, Result
from taskmq.signature import BEGINNING, END, ONE_MESSAGE, Call, Options, Rest, Signature, merged

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from taskmq.app import App
    from taskmq.task import Task

R = TypeVar("R")

__all__ = ["chain", "group", "chord", "signature", "Chain", "Group", "Chord", "Signature"]


class _Workflow(Call):
    """What the compositions have in common: parts, all of one app."""

    def __init__(self, parts: Sequence[Call], options: Options | None = None) -> None:
        super().__init__(options)
        self.parts = tuple(parts)
        for part in self.parts:
            if not isinstance(part, Call):
                raise ConfigError(f"{self!r}: its parts are calls like task.s(...), got {part!r}")
        apps = {id(app) for part in self.parts if (app := part._find_app()) is not None}
        if len(apps) > 1:
            raise ConfigError(f"{self!r}: its parts belong to different apps")

    def __repr__(self) -> str:
        return f"{type(self).__name__.lower()}({', '.join(map(repr, self.parts))})"

    def _find_app(self) -> App | None:
        for part in self.parts:
            app = part._find_app()
            if app is not None:
                return app
        return None

    def _with(self, options: Options) -> Self:
        return self._of(self.parts, options)

    def _of(self, parts: Iterable[Call], options: Options | None = None) -> Self:
        return type(self)(tuple(parts), options)

    def _place(self, app: App, outer: Options, *, with_ids: bool) -> Self:
        options = merged(outer, self.options)
        refused = sorted(ONE_MESSAGE & options.keys())
        if refused:
            raise ConfigError(f"{self!r}: {refused[0]} belongs to one message, not to a workflow")
        expires = options.get("expires")
        if expires is not None and not isinstance(expires, datetime):
            # One moment for the whole: a span would count anew for each step.
            seconds = check_seconds(expires, f"{self!r}: expires", above_zero=True)
            moment = datetime.fromtimestamp(app.clock.now(), timezone.utc)
            options["expires"] = moment + timedelta(seconds=seconds)
        shares = self._shares(options)
        return self._of(
            part._place(app, share, with_ids=with_ids)
            for part, share in zip(self.parts, shares, strict=True)
        )

    def _shares(self, options: dict[str, Any]) -> list[dict[str, Any]]:
        """What of the options concerns each part."""
        raise NotImplementedError


class Chain(_Workflow):
    """One call after the other, each with the result of the one before."""

    def apply_async(self, **options: Unpack[SubmitKeywords]) -> Result[Any]:
        """Submit it; the result is that of its last step, and `result.parent` that of the one before."""
        result: Result[Any] = self._send(options)
        return result

    submit = apply_async

    def _given(self, value: Any) -> Self:
        return self._of((self.parts[0]._given(value), *self.parts[1:]), self.options)

    def _shares(self, options: dict[str, Any]) -> list[dict[str, Any]]:
        last = len(self.parts) - 1
        return [_share(options, first=i == 0, last=i == last) for i in range(last + 1)]

    def _leaves(self) -> int:
        return self.parts[-1]._leaves()

    def _stored(self) -> dict[str, Any]:
        return _stored("chain", {"tasks": [part._stored() for part in self.parts]})

    def _messages(self, rest: Rest) -> Iterator[Message]:
        behind = [part._stored() for part in reversed(self.parts[1:])]
        return self.parts[0]._messages(Rest((*rest.chain, *behind), rest.chord))

    def _result(self, parent: Any, *, submitted: bool) -> Any:
        for part in self.parts:
            parent = part._result(parent, submitted=submitted)
            submitted = False
        return parent


class Group(_Workflow):
    """Calls beside each other."""

    def apply_async(self, **options: Unpack[SubmitKeywords]) -> GroupResult:
        """Submit all of them, or none; `task_id` is for each call's own signature."""
        if not self.parts:
            return GroupResult((), None)
        result: GroupResult = self._send(options)
        return result

    submit = apply_async

    def _given(self, value: Any) -> Self:
        return self._of((part._given(value) for part in self.parts), self.options)

    def _shares(self, options: dict[str, Any]) -> list[dict[str, Any]]:
        if "task_id" in options:
            raise ConfigError(f"{self!r}: task_id names one task, and a group has several")
        return [options for _ in self.parts]

    def _leaves(self) -> int:
        return sum(part._leaves() for part in self.parts)

    def _stored(self) -> dict[str, Any]:
        return _stored("group", {"tasks": [part._stored() for part in self.parts]})

    def _messages(self, rest: Rest) -> Iterator[Message]:
        if rest.chain:
            # What follows a group waits for all of it: a chord by another name.
            body = with_follow(rest.chain[-1], chain=rest.chain[:-1], chord=rest.chord)
            yield from self._members(_new_chord(self.parts, body))
        else:
            yield from self._members(rest.chord)

    def _members(self, place: Place | None) -> Iterator[Message]:
        """The members, each in its own place of the chord they count for, if any."""
        for part in self.parts:
            yield from part._messages(Rest(chord=place))
            if place is not None:
                place = replace(place, index=place.index + part._leaves())

    def _result(self, parent: Any, *, submitted: bool) -> GroupResult:
        return GroupResult(
            [part._result(parent, submitted=submitted) for part in self.parts], self._find_app()
        )


class Chord(_Workflow):
    """Calls beside each other (the header), then one with the list of their results (the body)."""

    def __init__(self, parts: Sequence[Call], options: Options | None = None) -> None:
        super().__init__(parts, options)
        self.header, self.body = self.parts

    def apply_async(self, **options: Unpack[SubmitKeywords]) -> Result[Any]:
        """Submit the header; the result is the body's, and `result.parent` the header's.

        The results come to the body in the order of the header. Without members it runs with `[]`.
        """
        result: Result[Any] = self._send(options)
        return result

    submit = apply_async

    def _given(self, value: Any) -> Self:
        return self._of((self.header._given(value), self.body), self.options)

    def _shares(self, options: dict[str, Any]) -> list[dict[str, Any]]:
        header = _share(options, first=True, last=False)
        # A member's failure reaches the body's error callbacks by the chord itself.
        header.pop("link_error", None)
        return [header, _share(options, first=False, last=True)]

    def _leaves(self) -> int:
        return self.body._leaves()

    def _stored(self) -> dict[str, Any]:
        return _stored("chord", {"header": self.header._stored(), "body": self.body._stored()})

    def _messages(self, rest: Rest) -> Iterator[Message]:
        assert isinstance(self.header, Group)
        if not self.header.parts:
            return self.body._given([])._messages(rest)
        body = with_follow(self.body._stored(), chain=rest.chain, chord=rest.chord)
        return self.header._members(_new_chord(self.header.parts, body))

    def _result(self, parent: Any, *, submitted: bool) -> Any:
        header = self.header._result(parent, submitted=submitted)
        # Without members the body is what was submitted.
        return self.body._result(header, submitted=submitted and not len(header))


class _OpenChord:
    """`chord(header)`, which waits for its body."""

    def __init__(self, header: Group) -> None:
        self.header = header

    def __call__(self, body: Call, **options: Unpack[SubmitKeywords]) -> Result[Any]:
        """Submit it with this body."""
        return Chord((self.header, body)).apply_async(**options)


def chain(*steps: Call) -> Chain:
    """One step after the other. What follows a group waits for all of it and gets their results (a chord).

    `a.s(1) | b.s()` is the same. Raises `ConfigError` for a chain of nothing.
    """
    if not steps:
        raise ConfigError("chain(): a chain has at least one step")
    for index, step in enumerate(steps[:-1]):
        if isinstance(step, Group):
            return Chain((*steps[:index], Chord((step, chain(*steps[index + 1 :])))))
    return Chain(steps)


def group(*members: Call | Iterable[Call]) -> Group:
    """Calls beside each other: `group(a.s(), b.s())` or one iterable of them."""
    if len(members) == 1 and not isinstance(members[0], Call):
        return Group(_iterated("group", members[0]))
    return Group(members)  # type: ignore[arg-type]  # checked there


@overload
def chord(header: Iterable[Call] | Group) -> _OpenChord: ...


@overload
def chord(header: Iterable[Call] | Group, body: Call) -> Chord: ...


def chord(header: Iterable[Call] | Group, body: Call | None = None) -> Chord | _OpenChord:
    """A group and what is done with its results: `chord(header, body)`, or `chord(header)(body)` to submit.

    The header is a group or an iterable of calls; a group inside it is part of it.
    """
    members = header if isinstance(header, Group) else Group(_iterated("chord", header))
    return _OpenChord(members) if body is None else Chord((members, body))


@overload
def signature(
    task: Task[..., R],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    immutable: bool = False,
    app: App | None = None,
    **options: Unpack[SubmitKeywords],
) -> Signature[R]: ...


@overload
def signature(
    task: str,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    immutable: bool = False,
    app: App | None = None,
    **options: Unpack[SubmitKeywords],
) -> Signature[Any]: ...


def signature(
    task: Task[..., Any] | str,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    immutable: bool = False,
    app: App | None = None,
    **options: Unpack[SubmitKeywords],
) -> Signature[Any]:
    """One call with its options. One by name alone takes `app`, or that of the workflow around it."""
    call: Signature[Any] = Signature(task, args, kwargs, immutable=immutable, app=app)
    return call.set(**options)


def _share(options: Options, *, first: bool, last: bool) -> dict[str, Any]:
    return {
        name: value
        for name, value in options.items()
        if (first or name not in BEGINNING) and (last or name not in END)
    }


def _stored(kind: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    return {
        "task": f"celery.{kind}",
        "args": [],
        "kwargs": kwargs,
        "options": {},
        "subtask_type": kind,
        "immutable": False,
    }


def _new_chord(members: Sequence[Call], body: Sig) -> Place:
    size = sum(member._leaves() for member in members)
    if not size:
        raise ConfigError(
            f"group{tuple(members)!r}: what follows a group without members never runs"
        )
    return Place(ids.ulid(), 0, size, body)


def _iterated(name: str, members: Any) -> tuple[Call, ...]:
    if isinstance(members, (str, bytes)) or not isinstance(members, Iterable):
        raise ConfigError(
            f"{name}: calls like task.s(...), or an iterable of them, got {members!r}"
        )
    return tuple(members)
