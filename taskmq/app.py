"""The App: a configuration, the tasks declared on it, and the door through which messages leave."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, overload

from taskmq import ids
from taskmq.clock import Clock, SystemClock
from taskmq.codec.configured import Codecs
from taskmq.config import BROKER_VARIABLE, Config, unknown_settings
from taskmq.declaring import declaration
from taskmq.errors import ConfigError
from taskmq.home import calling_module, project_dir
from taskmq.hooks import Hooks
from taskmq.options import SubmitKeywords, TaskKeywords
from taskmq.registry import Registry, check_task_name
from taskmq.result import Result
from taskmq.states import State
from taskmq.stores import DISABLED, Stores
from taskmq.task import Task
from taskmq.transports.urls import parse_url

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from taskmq.codec import Codec
    from taskmq.declaring import BoundTaskDecorator, TaskDecorator
    from taskmq.message import Message
    from taskmq.results.base import ResultStore
    from taskmq.signature import Signature
    from taskmq.submitting import MessageBuilder
    from taskmq.task import AsyncTask
    from taskmq.transports.base import Transport
    from taskmq.transports.operators import Revoked
    from taskmq.waiting import Waiter

P = ParamSpec("P")
R = TypeVar("R")

# Messages of one `submit_many` transaction: enough to share its cost, short enough not to hold up others.
SUBMIT_CHUNK = 500


class App:
    """Declares tasks and submits them. Safe to share between threads, and after a fork.

        app = App(Config(broker_url="sqlite:///jobs.db"))
        app = App(broker_url="sqlite:///jobs.db")        # the same

    Settings given as keywords are those of `Config` and win over it; the environment's TASKMQ_BROKER_URL
    wins over `broker_url`. `ConfigError` for a wrong value or
    an unknown name, here and not later. Nothing is opened before the first submit. `clock`, `random`,
    `transport` and `id_source` are for tests and for code that builds on TaskMQ; `base_dir` is where
    relative database paths start, by default the home of the module that makes the App.
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        name: str = "",
        clock: Clock | None = None,
        random: Random | None = None,
        transport: Transport | None = None,
        task_class: type[Task[..., Any]] = Task,
        id_source: Callable[[], str] = ids.ulid,
        base_dir: str | Path | None = None,
        **settings: Any,
    ) -> None:
        if config is not None and not isinstance(config, Config):
            hint = f"; a name is App(name={config!r})" if isinstance(config, str) else ""
            raise ConfigError(f"App: a Config comes first, got {config!r}{hint}")
        unknown_settings(settings)
        config = config or Config()
        elsewhere = os.environ.get(BROKER_VARIABLE)
        if elsewhere:
            settings["broker_url"] = elsewhere
        self.config = config.changed(**settings) if settings else config
        if transport is None:
            parse_url(self.config.broker_url)
            if self.config.result_url not in (None, DISABLED):
                parse_url(str(self.config.result_url), setting="result_url")
        self.name = name
        self.clock: Clock = clock or SystemClock()
        self.random = random or Random()
        self.hooks = Hooks()
        self.registry = Registry()
        self.base_dir = Path(base_dir) if base_dir is not None else project_dir(calling_module())
        self.new_id = id_source
        self._task_class = task_class
        self._stores = Stores(
            self.config,
            clock=self.clock,
            random=self.random,
            base_dir=self.base_dir,
            transport=transport,
        )
        self._waiter: Waiter | None = None
        self._codecs = Codecs(self.config)
        self._made_builder: MessageBuilder | None = None
        self.registry.add(Task(self, _gather, ids.GATHER))

    def __repr__(self) -> str:
        return f"<App {self.name or self.config.broker_url} with {len(self.registry.own())} tasks>"

    def __taskmq_app__(self) -> App:
        """The native App behind whatever a project calls its app."""
        return self

    # -- tasks ------------------------------------------------------------------------------------

    @overload
    def task(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...

    @overload
    def task(self, fn: Callable[P, R], /) -> Task[P, R]: ...

    @overload
    def task(
        self, *, bind: Literal[True], **options: Unpack[TaskKeywords]
    ) -> BoundTaskDecorator: ...

    @overload
    def task(
        self, *, bind: Literal[False] = False, **options: Unpack[TaskKeywords]
    ) -> TaskDecorator: ...

    # mypy does not match unpacked keywords with **options: Any.
    def task(self, fn: Any = None, /, *, bind: bool = False, **options: Any) -> Any:  # type: ignore[misc]
        """Declare a task: `@app.task` or `@app.task(queue="email", priority=Priority.HIGH, ...)`.

        The name is the function's module and name unless `name=` gives one. Unknown options, priorities
        out of range and names that are taken raise `ConfigError` at the decorator.
        """
        if fn is not None and not callable(fn):
            raise ConfigError(f"@app.task: options are keywords, as in name={fn!r}; got {fn!r}")
        declare = declaration(self, self._task_class, {"bind": bind, **options})
        return declare if fn is None else declare(fn)

    def add_task(self, task: Task[..., Any]) -> Task[..., Any]:
        """Register a task object under its name; `ConfigError` when another function has it."""
        # Worked out now so that what only the Config can refuse fails at the declaration too.
        self._builder.forget(task.name)
        self._builder.plan(task.name, task)
        self.registry.add(task)
        return task

    def default_priority(self, task: Task[..., Any]) -> int:
        """The priority of a call of this task that names none: task, else queue, else default."""
        return self._builder.plan(task.name, task).priority

    # -- submitting -------------------------------------------------------------------------------

    @overload
    def submit(
        self,
        task: Task[..., R],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[SubmitKeywords],
    ) -> Result[R]: ...

    @overload
    def submit(
        self,
        task: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[SubmitKeywords],
    ) -> Result[Any]: ...

    def submit(
        self,
        task: Task[..., Any] | str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[SubmitKeywords],
    ) -> Result[Any]:
        """Submit one call of a task, or of a name that may be registered only where workers run.

        When it returns the message is stored. Raises `ConfigError` and `PriorityError` for options,
        `TypeError` for arguments the function does not take, `EncodeError` and `TooLarge` for ones that
        cannot be sent; `TransportError` when it could not be stored (`SubmitUnknown`: it may be).
        """
        message = self.message(task, args, kwargs, **options)
        self.publish((message,))
        return self.result_of(message)

    def submit_many(
        self, calls: Iterable[Signature[Any] | Sequence[Any]], **options: Unpack[SubmitKeywords]
    ) -> list[Result[Any]]:
        """Submit many calls at the cost of few transactions; the results come in the order of the calls.

        A call is `task.s(...)` or a tuple `(task or name, args, kwargs, options)` whose end may be left
        out; `options` hold for those that do not say otherwise. All calls are checked and encoded before
        the first is stored. Then every 500 are one transaction, all of them or none: when one fails with
        a `TransportError`, the batches before it are stored.
        """
        from taskmq.signature import as_call

        messages = []
        for call in calls:
            task, args, kwargs, own = as_call(call)
            messages.append(self.build_message(task, args, kwargs, {**options, **own}))
        for start in range(0, len(messages), SUBMIT_CHUNK):
            self.publish(messages[start : start + SUBMIT_CHUNK])
        return [self.result_of(message) for message in messages]

    def message(
        self,
        task: Task[..., Any] | str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[SubmitKeywords],
    ) -> Message:
        """The message a submit would store, checked and encoded; nothing is stored."""
        return self.build_message(task, args, kwargs, options)

    def build_message(
        self,
        task: Task[..., Any] | str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any] | None,
        options: Mapping[str, Any],
        *,
        after_another: bool = False,
    ) -> Message:
        """As `message`, for code that holds options as a mapping.

        With `after_another` it is a step of a workflow whose first argument is not known yet.
        """
        name, known = self._known(task)
        return self._builder.build(name, known, args, kwargs, options, after_another=after_another)

    def keeps_result(self, task: Task[..., Any] | str, ignore_result: bool | None = None) -> bool:
        """Whether a call of this task, with this option, keeps a result."""
        if ignore_result is not None:
            return not ignore_result and not self.results_disabled
        return self._builder.plan(*self._known(task)).store_result

    def _known(self, task: Task[..., Any] | str) -> tuple[str, Task[..., Any] | None]:
        if isinstance(task, Task):
            if task.app is not self:
                raise ConfigError(f"{task!r} belongs to another app, {task.app!r}; submit it there")
            return task.name, task
        if not isinstance(task, str):
            raise ConfigError(f"a task or the name of one is submitted, got {task!r}")
        return check_task_name(task), self.registry.get(task)

    def publish(self, messages: Sequence[Message]) -> None:
        """Store these messages, all or none, with the hooks around it."""
        hooks = self.hooks
        if hooks.before_submit:
            for message in messages:
                hooks.before_submit.send(message)
        self.transport.submit(messages)
        if hooks.after_submit:
            for message in messages:
                hooks.after_submit.send(message)

    # -- results ----------------------------------------------------------------------------------

    def result(self, task_id: str) -> Result[Any]:
        """The result of a task by its id, whoever submitted it."""
        if not isinstance(task_id, str) or not task_id:
            raise ConfigError(f"a task id is text that is not empty, got {task_id!r}")
        return Result(self, task_id, keeps_result=not self.results_disabled)

    def result_of(self, message: Message) -> Result[Any]:
        """The result of a message that was submitted."""
        return Result(
            self,
            message.task_id,
            task=message.task,
            keeps_result=message.store_result,
            submitted=True,
        )

    def state(self, task_id: str) -> State:
        """Where a task stands: from its result, else from where its message is, else UNKNOWN."""
        return self._stores.state(task_id)

    def revoke(
        self, task_ids: Sequence[str], *, terminate: bool = False, reason: str = ""
    ) -> list[Revoked]:
        """Never start these tasks; with `terminate` tell the workers to stop those that run."""
        if isinstance(task_ids, str):
            raise ConfigError(f"revoke: a list of task ids, got {task_ids!r}")
        revoked = self.transport.operators.revoke(task_ids, reason=reason)
        if terminate or any(one.was is State.RUNNING for one in revoked):
            # Stored it is already; this reaches the runs, with the reason.
            self.transport.coordination.send(
                "revoke", {"task_ids": list(task_ids), "terminate": terminate, "reason": reason}
            )
        return revoked

    @property
    def waiter(self) -> Waiter:
        """What awaits results. Made at the first `await`: most programs load no asyncio."""
        if self._waiter is None:
            from taskmq.waiting import Waiter

            # Two made by a race of threads would both do their work.
            self._waiter = Waiter(self)
        return self._waiter

    @property
    def _builder(self) -> MessageBuilder:
        # Made at the first declaration or submit: an app alone needs no codec.
        if self._made_builder is None:
            from taskmq.submitting import MessageBuilder

            # Two made by a race of threads would build the same messages.
            self._made_builder = MessageBuilder(self)
        return self._made_builder

    # -- stores -----------------------------------------------------------------------------------

    @property
    def transport(self) -> Transport:
        """Where messages go; opened at the first use. Raises `TransportError`, `ConfigError` for its URL."""
        return self._stores.transport

    @property
    def has_transport(self) -> bool:
        """Whether the transport was given or is open already, so that looking at it makes nothing."""
        return self._stores.at_hand

    @property
    def results(self) -> ResultStore:
        """Where results are: beside the messages, or in the store of `result_url`."""
        return self._stores.results

    @property
    def results_with_messages(self) -> bool:
        """Whether the settling transaction writes the results; else a worker writes them before it."""
        return self._stores.with_messages

    @property
    def results_disabled(self) -> bool:
        """Whether no task keeps a result (`result_url="disabled"`)."""
        return self._stores.disabled

    @property
    def codec(self) -> Codec:
        """The codec of the configured serializer."""
        return self.codec_for(None)

    def codec_for(self, serializer: str | None) -> Codec:
        """The codec of a serializer; `ConfigError` when what it writes would not be read back."""
        return self._codecs.named(serializer)

    def close(self) -> None:
        """Close transport and result store; idempotent, and the next use opens them again."""
        self._stores.close()

    @contextmanager
    def elsewhere(self, *, broker_url: str, clock: Clock, random: Random) -> Iterator[Self]:
        """Inside the block this app keeps its messages and results at `broker_url`, on this clock.

        What it had open stays as it is and comes back afterwards. For `taskmq.testing`; not for use while
        other threads use the app.
        """
        kept = (self.config, self.clock, self.random, self._stores, self._waiter)
        self.config = self.config.changed(broker_url=broker_url, result_url=None)
        self.clock, self.random, self._waiter = clock, random, None
        self._stores = Stores(
            self.config, clock=clock, random=random, base_dir=self.base_dir, transport=None
        )
        try:
            yield self
        finally:
            self._stores.close()
            self.config, self.clock, self.random, self._stores, self._waiter = kept

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _gather(results: Any) -> Any:
    """Hands on what a chord's members returned, where what follows them is more than one message."""
    return results
