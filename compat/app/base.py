"""`Celery`: the app of a project, holding the native App that does the work.

Configuration, tasks and the native App are made when they are first needed, as Celery users rely on:
tasks may be declared before the settings are named, and settings changed until a task is called.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from datetime import datetime
from random import Random
from typing import TYPE_CHECKING, Any, overload

from taskmq import ids
from taskmq.app import App
from taskmq.compat import _state
from taskmq.compat.app import declaring, periodic
from taskmq.compat.app.adapter import AdapterTask
from taskmq.compat.app.configured import Configured
from taskmq.compat.app.engine import engine_config
from taskmq.compat.app.loader import Loader
from taskmq.compat.app.registry import TaskRegistry
from taskmq.compat.app.routes import AMQP
from taskmq.compat.app.task import Task as TaskBase
from taskmq.compat.exceptions import AlwaysEagerIgnored, ImproperlyConfigured
from taskmq.compat.utils.dispatch import Signal
from taskmq.compat.utils.imports import symbol_by_name
from taskmq.home import calling_module, main_module_name, project_dir

if TYPE_CHECKING:
    from taskmq.clock import Clock
    from taskmq.compat.app.control import Control
    from taskmq.compat.result import AsyncResult
    from taskmq.config import Config

__all__ = ("Celery",)

log = logging.getLogger("taskmq.compat")


class Celery(Configured):
    """A Celery app on TaskMQ's engine: `app = Celery("proj", broker="sqlite:///proj.db")`.

    `broker`, `backend`, `include` and settings given as keywords win over `config_from_object`.
    `task_cls` is the base of the tasks. Raises `ImproperlyConfigured` for parts of Celery that TaskMQ has
    none of (`amqp`, `events`, `log`, `control` classes, a `loader`). `clock` and `random` are for tests.
    """

    def __init__(
        self,
        main: str | None = None,
        loader: Any = None,
        backend: Any = None,
        amqp: Any = None,
        events: Any = None,
        log: Any = None,
        control: Any = None,
        set_as_current: bool = True,
        tasks: Any = None,
        broker: Any = None,
        include: Any = None,
        changes: dict[str, Any] | None = None,
        config_source: Any = None,
        fixups: Any = None,
        task_cls: Any = None,
        autofinalize: bool = True,
        namespace: str | None = None,
        strict_typing: bool = True,
        config_source_silent: bool = False,
        clock: Clock | None = None,
        random: Random | None = None,
        **settings: Any,
    ) -> None:
        for name, value in (
            ("amqp", amqp),
            ("events", events),
            ("log", log),
            ("control", control),
            ("loader", loader),
            ("tasks", tasks),
        ):
            if value is not None:
                raise ImproperlyConfigured(
                    f"Celery({name}=): a class of one's own is not there yet, got {value!r}"
                )
        if fixups:
            raise ImproperlyConfigured(f"Celery(fixups=): fixups are not there yet, got {fixups!r}")
        Configured.__init__(self, config_source, namespace, silent=config_source_silent)
        self.main = main
        self.set_as_current = set_as_current
        self.autofinalize = autofinalize
        self.strict_typing = strict_typing
        self.finalized = False
        self.task_cls = task_cls
        self.on_after_finalize = Signal(name="app.on_after_finalize")
        self.on_after_fork = Signal(name="app.on_after_fork")
        self.loader = Loader(self)
        self.origin = f"gen{os.getpid()}@{socket.gethostname()}"
        # Where relative database paths start: the home of the module that makes the app, not of whatever
        # code happens to call the first task.
        self._base_dir = project_dir(calling_module())
        self._clock = clock
        self._random = random
        self._tasks = TaskRegistry()
        self._pending: deque[Any] = deque()
        self._mutex = threading.RLock()
        self._engine: App | None = None
        self._said: set[str] = set()
        given = {"broker_url": broker, "result_backend": backend, "include": include}
        self._conf.update({name: value for name, value in given.items() if value})
        self._conf.update(changes or {})
        self._conf.update(settings)
        if set_as_current:
            self.set_current()
        self.on_init()
        _state._register_app(self)

    def on_init(self) -> None:
        """Called at the end of the constructor; for subclasses."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.main or '__main__'}>"

    def __reduce__(self) -> Any:
        raise TypeError(f"{self!r} cannot be pickled; import it where it is needed")

    def __enter__(self) -> Celery:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        from taskmq.compat._missing import missing_attribute

        # Only for names that are not there: Celery's that come later say so.
        raise missing_attribute("app", name, self)

    def __taskmq_app__(self) -> App:
        """The native App, complete: every module with tasks is imported. For workers and commands."""
        self.loader.import_default_modules()
        return self.engine

    # -- tasks ------------------------------------------------------------------------------------

    @property
    def Task(self) -> Any:  # noqa: N802 - Celery's name
        """The base class of this app's tasks; may be set to a class of one's own."""
        found = self._cache.get("Task") or self.__dict__.get("_task_base")
        if found is None:
            base = symbol_by_name(self.task_cls) or TaskBase
            found = type("Task", (base,), {"_app": self, "abstract": True})
            self.__dict__["_task_base"] = found
        return found

    @Task.setter
    def Task(self, cls: Any) -> None:  # noqa: N802
        self.__dict__["_task_base"] = cls

    @overload
    def task(self, fn: Callable[..., Any], /) -> Any: ...

    @overload
    def task(self, **options: Any) -> Callable[[Callable[..., Any]], Any]: ...

    def task(self, *args: Any, **options: Any) -> Any:
        """Declare a task: `@app.task` or `@app.task(bind=True, priority=5, ...)`.

        Options Celery does not know become attributes. A priority out of range raises `ConfigError` here.
        """
        return declaring.declare(self, args, options)

    def register_task(self, task: Any, **options: Any) -> Any:
        """Register a task made from a class of one's own, given as an instance or the class."""
        if isinstance(task, type):
            task = task()
        if not task.name:
            cls = type(task)
            task.name = cls.name = self.gen_task_name(cls.__name__, cls.__module__)
        declaring.check_options({"priority": task.priority})
        declaring.add(self, task, options)
        return task

    def gen_task_name(self, name: str, module: str | None) -> str:
        """`module.name`; for a script the app's name, else the name it has when it is imported."""
        if not module or module == "__main__":
            module = self.main or main_module_name()
        return f"{module}.{name}"

    @property
    def tasks(self) -> TaskRegistry:
        """The tasks by name. Completes the app."""
        self.finalize(auto=True)
        return self._tasks

    @property
    def current_task(self) -> TaskBase | None:
        """The task being run here, or None."""
        return _state.get_current_task()

    @property
    def current_worker_task(self) -> TaskBase | None:
        """The task a worker is running here, or None."""
        return _state.get_current_worker_task()

    def finalize(self, auto: bool = False) -> None:
        """Complete the app: make the tasks declared so far and bind the shared ones. Once."""
        with self._mutex:
            if self.finalized:
                return
            if auto and not self.autofinalize:
                raise RuntimeError("Contract breach: app not finalized")
            self.finalized = True
            # The app's own before the shared ones: what is declared here keeps its name.
            while self._pending:
                self._pending.popleft()._get_current_object()
            _state._announce_app_finalized(self)
            self.on_after_finalize.send(sender=self)

    def autodiscover_tasks(
        self,
        packages: Iterable[str] | Callable[[], Iterable[str]] | None = None,
        related_name: str | None = "tasks",
        force: bool = False,
    ) -> None:
        """Have the module `related_name` of these packages imported when a worker opens the app.

        Without packages: of Django's INSTALLED_APPS. With `force`: now. A package without such a module
        is passed over; an error inside one is raised.
        """
        if force:
            self.loader.discover(packages, related_name)
        else:
            self.loader.discover_later(packages, related_name)

    def add_periodic_task(
        self,
        schedule: Any,
        sig: Any,
        args: Any = (),
        kwargs: Any = None,
        name: str | None = None,
        **opts: Any,
    ) -> str:
        """Keep a periodic task in `conf.beat_schedule` under `name`; the key it is kept under.

        Nothing submits it yet: a worker's start says so.
        """
        key, entry = periodic.entry_of(self, schedule, sig, args, kwargs, name, opts)
        self.when_configured(lambda: periodic.keep(self.conf, key, entry, named=name is not None))
        return key

    # -- the native app ---------------------------------------------------------------------------

    @property
    def engine(self) -> App:
        """The native `taskmq.App` of this configuration, with every task that is known."""
        if self._engine is None or self._stale:
            with self._mutex:
                self._open_engine()
        assert self._engine is not None
        return self._engine

    def _open_engine(self) -> None:
        from taskmq.compat.app.workers import connect

        self.finalize(auto=True)
        config = engine_config(self.conf, self.amqp.queues)
        self._stale = False
        if self._engine is not None and self._engine.config == config:
            return
        if self._engine is not None:
            self._engine.close()
        self._engine = self._make_engine(config)
        connect(self, self._engine)
        for task in self._tasks.values():
            self._register(task)

    def _make_engine(self, config: Config) -> App:
        return App(
            config,
            name=self.main or "",
            clock=self._clock,
            random=self._random,
            id_source=ids.uuid,
            base_dir=self._base_dir,
        )

    def _register(self, task: TaskBase) -> None:
        if self._engine is not None:
            self._engine.add_task(AdapterTask(self._engine, task))

    @property
    def amqp(self) -> AMQP:
        """The queues and routes of the project."""
        return self._cached("amqp", lambda: AMQP(self.conf))

    @property
    def control(self) -> Control:
        """Commands to the workers: `app.control.revoke(id)`, `app.control.inspect().active()`."""
        from taskmq.compat.app.control import Control

        return self._cached("control", lambda: Control(self))

    @property
    def backend(self) -> Any:
        """The result store, in the words of Celery's backends."""
        from taskmq.compat.app.backend import Backend

        return self._cached("backend", lambda: Backend(self))

    def now(self) -> datetime:
        """The time in the app's zone."""
        return datetime.fromtimestamp(self.engine.clock.now(), self.timezone)

    # -- calling ----------------------------------------------------------------------------------

    def send_task(
        self,
        name: str,
        args: Any = None,
        kwargs: Any = None,
        countdown: float | None = None,
        eta: Any = None,
        task_id: str | None = None,
        **options: Any,
    ) -> AsyncResult:
        """Submit a call of a task by name; it need not be registered here.

        Raises as `taskmq.compat.app.publish.publish` says. `task_always_eager` does not apply.
        """
        from taskmq.compat.app.publish import publish

        if self.conf.task_always_eager:
            warnings.warn(
                "task_always_eager has no effect on send_task", AlwaysEagerIgnored, stacklevel=2
            )
        options = {**options, "countdown": countdown, "eta": eta, "task_id": task_id}
        known = self.tasks.get(name)
        if known is not None:
            options = {
                **known._get_exec_options(),
                **{k: v for k, v in options.items() if v is not None},
            }
        return publish(self, name, args, kwargs, task=known, options=options)

    def signature(self, *args: Any, **kwargs: Any) -> Any:
        """A call by name, to be made later."""
        from taskmq.compat.canvas.signature import Signature

        kwargs["app"] = self
        return Signature(*args, **kwargs)

    def AsyncResult(self, id: str, **kwargs: Any) -> AsyncResult:  # noqa: N802, A002 - Celery's names
        """The result of a task by its id, whoever submitted it."""
        from taskmq.compat.result import AsyncResult

        kwargs.setdefault("app", self)
        return AsyncResult(id, **kwargs)

    # -- the process ------------------------------------------------------------------------------

    def set_current(self) -> None:
        """Make this the current app of this thread."""
        _state._set_current_app(self)

    def set_default(self) -> None:
        """Make this the app of every thread that has no current one."""
        _state.set_default_app(self)

    def close(self) -> None:
        """Close the result store and the transport; the next use opens them again."""
        _state._deregister_app(self)
        if self._engine is not None:
            self._engine.close()

    def worker_main(self, argv: list[str] | None = None) -> None:
        """Run a worker in this process: `app.worker_main(["worker", "--loglevel=INFO"])`."""
        from taskmq.compat.app.workers import worker_main

        worker_main(self, argv)

    def start(self, argv: list[str] | None = None) -> None:
        """Run a command: `app.start()` takes it from the command line of the script."""
        from taskmq.compat.app.workers import start

        start(self, argv)

    def say_once(self, text: str) -> None:
        """Log a warning the first time it is given."""
        if text not in self._said:
            self._said.add(text)
            log.warning("%s", text)
