"""A call that has not been made yet: a task with arguments and options, as a value.

`Call` is what a single call and the compositions of `taskmq.workflow` have in common. Its stored form is
Celery's signature, with every option that the task's declaration decides written into it, because the
process that submits a later step may not know the task.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from taskmq.errors import ConfigError
from taskmq.message import JSON, Message
from taskmq.options import SUBMIT_OPTIONS, SubmitKeywords, check_seconds, unknown_options
from taskmq.policy.signatures import Chord, Sig
from taskmq.policy.steps import baked_options
from taskmq.result import Result

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from taskmq.app import App
    from taskmq.task import Task
    from taskmq.workflow import Chain

R = TypeVar("R")

Options = Mapping[str, Any]

# What a workflow's options mean to its parts: these to its beginning, these to its end, the others to
# every part that does not say otherwise.
BEGINNING = frozenset({"eta", "countdown"})
END = frozenset({"task_id", "link"})
_LINKS = ("link", "link_error")
# They belong to a message that is made now and alone.
ONE_MESSAGE = frozenset({"message_id", "embed", "follow", "retries"})


class Rest(NamedTuple):
    """What comes after a part of a workflow: the chain behind it (reversed), the chord it counts for."""

    chain: tuple[Sig, ...] = ()
    chord: Chord | None = None

    def follow(self) -> dict[str, Any]:
        """As the `follow` of a message."""
        return {"chain": self.chain, "chord": self.chord.wire() if self.chord else None}


class Call(ABC):
    """A call, or a composition of calls, that can be submitted, followed by another (`|`) or linked.

    Immutable. The methods with an underscore are for compositions: a call is first placed (its parts get
    their ids and their share of the options around them), and only a placed one is stored or sent.
    """

    def __init__(self, options: Options | None = None) -> None:
        self.options: dict[str, Any] = dict(options or {})

    @property
    def app(self) -> App:
        """The app that submits it; `ConfigError` when nothing in it names one."""
        app = self._find_app()
        if app is None:
            raise ConfigError(
                f"{self!r}: no app to submit it with; a task that is only a name needs "
                "signature(..., app=app)"
            )
        return app

    def set(self, **options: Unpack[SubmitKeywords]) -> Self:
        """A copy with these options; they win over what a workflow around it says."""
        unknown_options(options, SUBMIT_OPTIONS, repr(self))
        return self._with({**self.options, **options})

    @abstractmethod
    def apply_async(self, **options: Unpack[SubmitKeywords]) -> Any:
        """Submit it; the result of its end."""

    def __or__(self, after: Call) -> Chain:
        """A chain of this and what comes after it."""
        from taskmq.workflow import chain

        return chain(self, after)

    def wire(self) -> dict[str, Any]:
        """Its stored form, JSON values: what a process submits that settles the step before it.

        Without ids, unless its own options name one: what is linked may run once for each of several tasks.
        """
        return self._place(self.app, {}, with_ids=False)._stored()

    def _send(self, options: Options) -> Any:
        unknown_options(options, SUBMIT_OPTIONS, repr(self))
        app = self.app
        placed = self._place(app, merged({}, options), with_ids=True)
        app.publish(list(placed._messages(Rest())))
        return placed._result(None, submitted=True)

    @abstractmethod
    def _find_app(self) -> App | None:
        """The app of the first task that is more than a name."""

    @abstractmethod
    def _with(self, options: Options) -> Self:
        """A copy with these options in place of its own."""

    @abstractmethod
    def _given(self, value: Any) -> Self:
        """A copy that begins as if this were the result of the step before it."""

    @abstractmethod
    def _place(self, app: App, outer: Options, *, with_ids: bool) -> Self:
        """A copy whose tasks carry their share of the options around them, and ids."""

    @abstractmethod
    def _leaves(self) -> int:
        """How many results it contributes to a chord it is a member of."""

    @abstractmethod
    def _stored(self) -> dict[str, Any]:
        """The stored form."""

    @abstractmethod
    def _messages(self, rest: Rest) -> Iterator[Message]:
        """The messages it begins with."""

    @abstractmethod
    def _result(self, parent: Any, *, submitted: bool) -> Any:
        """The result of its end; `submitted` says whether its beginning is."""


class Signature(Call, Generic[R]):
    """One call, made by `task.s(...)`, `task.si(...)` or `workflow.signature`.

    After another step its result is put before the arguments, unless it is `immutable`.
    """

    def __init__(
        self,
        task: Task[..., R] | str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        options: Options | None = None,
        *,
        immutable: bool = False,
        app: App | None = None,
    ) -> None:
        super().__init__(options)
        self.task = task
        self.args = tuple(args)
        self.kwargs = dict(kwargs or {})
        self.immutable = immutable
        self._app = app if app is not None or isinstance(task, str) else task.app

    def __repr__(self) -> str:
        arguments = [repr(arg) for arg in self.args]
        arguments += [f"{name}={value!r}" for name, value in self.kwargs.items()]
        return f"{self.name}({', '.join(arguments)})"

    @property
    def name(self) -> str:
        """The task's name."""
        return self.task if isinstance(self.task, str) else self.task.name

    def apply_async(self, **options: Unpack[SubmitKeywords]) -> Result[R]:
        """Submit it; its own options win over these. Raises as `App.submit` does."""
        result: Result[R] = self._send(options)
        return result

    submit = apply_async

    def _find_app(self) -> App | None:
        return self._app

    def _with(self, options: Options) -> Self:
        return self._copy(options=options)

    def _given(self, value: Any) -> Self:
        return self if self.immutable else self._copy(args=(value, *self.args))

    def _copy(
        self,
        *,
        args: Sequence[Any] | None = None,
        options: Options | None = None,
        app: App | None = None,
    ) -> Self:
        return type(self)(
            self.task,
            self.args if args is None else args,
            self.kwargs,
            self.options if options is None else options,
            immutable=self.immutable,
            app=app or self._app,
        )

    def _place(self, app: App, outer: Options, *, with_ids: bool) -> Self:
        options = merged(outer, self.options)
        if with_ids:
            options.setdefault("task_id", app.new_id())
        return self._copy(options=options, app=self._app or app)

    def _leaves(self) -> int:
        return 1

    def _messages(self, rest: Rest) -> Iterator[Message]:
        options = {**self.options, "follow": rest.follow()} if any(rest) else self.options
        yield self.app.build_message(self.task, self.args, self.kwargs, options)

    def _stored(self) -> dict[str, Any]:
        refused = sorted(ONE_MESSAGE & self.options.keys())
        if refused:
            raise ConfigError(f"{self!r}: {refused[0]} is not for a step that is submitted later")
        message = self.app.build_message(
            self.task, self.args, self.kwargs, self.options, after_another=not self.immutable
        )
        if message.content_type != JSON:
            raise ConfigError(
                f"{self!r}: a step that is submitted later is stored as JSON, and its serializer makes "
                f"{message.content_type}"
            )
        args, kwargs, _ = json.loads(message.body)
        follow = json.loads(message.follow) if message.follow else {}
        options = baked_options(message)
        if "task_id" not in self.options:
            del options["task_id"]
        self._keep_spans(options)
        for field, option in (("callbacks", "link"), ("errbacks", "link_error")):
            if follow.get(field):
                options[option] = follow[field]
        return {
            "task": message.task,
            "args": args,
            "kwargs": kwargs,
            "options": options,
            "subtask_type": None,
            "immutable": self.immutable,
        }

    def _keep_spans(self, options: dict[str, Any]) -> None:
        """Spans count from when the step is submitted, which is not now."""
        if "countdown" in self.options:
            del options["eta"]
            options["countdown"] = check_seconds(self.options["countdown"], f"{self!r}: countdown")
        expires = self.options.get("expires")
        if expires is None and not isinstance(self.task, str):
            expires = self.task.options.expires
        if expires is not None and not isinstance(expires, datetime):
            del options["expires_at"]
            options["expires"] = check_seconds(expires, f"{self!r}: expires")

    def _result(self, parent: Any, *, submitted: bool) -> Result[R]:
        return Result(
            self.app,
            self.options["task_id"],
            task=self.name,
            keeps_result=self.app.keeps_result(self.task, self.options.get("ignore_result")),
            submitted=submitted,
            parent=parent,
        )


def as_call(
    call: Any,
) -> tuple[Task[..., Any] | str, Sequence[Any], Mapping[str, Any] | None, Options]:
    """Task, arguments and options of `task.s(...)` or of `(task or name, args, kwargs, options)`.

    The end of such a tuple may be left out; `ConfigError` for anything else.
    """
    if isinstance(call, Signature):
        return call.task, call.args, call.kwargs, call.options
    if not isinstance(call, (tuple, list)) or not 1 <= len(call) <= 4:
        raise ConfigError(
            f"submit_many: a call is task.s(...) or (task, args, kwargs, options), got {call!r}"
        )
    left_out: list[Any] = [(), None, None][len(call) - 1 :]
    task, args, kwargs, options = list(call) + left_out
    if options is not None and not isinstance(options, Mapping):
        raise ConfigError(f"submit_many: options are a mapping, got {options!r} in {call!r}")
    return task, args, kwargs, options or {}


def merged(outer: Options, own: Options) -> dict[str, Any]:
    """The options of a part: its own, else those around it; links add up. None leaves an option out."""
    given = {name: value for name, value in own.items() if value is not None}
    if BEGINNING & given.keys():
        outer = {name: value for name, value in outer.items() if name not in BEGINNING}
    both = {**outer, **given}
    for name in _LINKS:
        if name in outer and name in given:
            both[name] = [*_listed(given[name]), *_listed(outer[name])]
    return both


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else (value,)
