"""What `-A` and `-b` name, opened once for one command.

With an application the settings are its own; with only a URL, or neither, the defaults serve the
commands that look into the store without running tasks. Looking never makes a store.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taskmq.cli.output import note
from taskmq.config import BROKER_VARIABLE, Config
from taskmq.errors import ConfigError

if TYPE_CHECKING:
    from taskmq.app import App
    from taskmq.results.base import ResultStore
    from taskmq.states import State
    from taskmq.task import Task
    from taskmq.transports.base import Transport

_ALONE = (
    "memory:// keeps messages inside one process, so this command and any other would never meet. Give a "
    "file, as in -b sqlite:///taskmq.db"
)


class Session:
    """The options that say where, and what they opened; closed when the command ends."""

    def __init__(self) -> None:
        self.app_spec = ""
        self.broker = ""
        self.as_celery = False
        self.workdir = ""
        self._app: App | None = None
        self._stand_in: Transport | None = None
        self._noted = False
        self._exit = ExitStack()

    @classmethod
    def of(cls, ctx: click.Context) -> Session:
        """The session of this invocation."""
        session = ctx.ensure_object(cls)
        ctx.find_root().call_on_close(session.close)
        return session

    def close(self) -> None:
        """Close what was opened; idempotent."""
        self._exit.close()

    def prepare(self) -> None:
        """What must happen before a module of the project is imported; idempotent."""
        if self.workdir:
            os.chdir(self.workdir)
            self.workdir = ""
        if self.broker:
            # Through the environment, so that the project's App, wherever it is made, and every pool
            # child that imports it again mean the same store.
            os.environ[BROKER_VARIABLE] = self.broker
        if self.as_celery:
            from taskmq.loading import install_alias

            install_alias()

    @property
    def app(self) -> App:
        """The application of `-A`, else one of defaults for the store of `-b` (or the default store).

        Raises `ConfigError` when `-A` names none.
        """
        if self._app is None:
            self.prepare()
            self._app = self._named() if self.app_spec else self._nameless()
            self._exit.callback(self._app.close)
        return self._app

    def own_tasks(self) -> list[Task[..., Any]]:
        """The application's tasks by name, without those that every App brings along."""
        registry = self.app.registry
        return [registry[name] for name in sorted(registry) if not name.startswith("taskmq.")]

    def advice(self) -> list[str]:
        """What is valid and may still not do what was meant, in the settings and in the project."""
        from taskmq.cli.views.settings import advice

        app = self.app
        said = advice(app.config, [task.options for task in self.own_tasks()])
        for adviser in app.hooks.advisers:
            said.extend(adviser())
        return said

    def required_app(self) -> App:
        """The application of `-A`; `ConfigError` when there is no `-A`, for commands that need tasks."""
        if not self.app_spec:
            raise ConfigError("no application: give -A/--app MODULE, or set TASKMQ_APP")
        return self.app

    def _named(self) -> App:
        from taskmq.cli.project import load

        return load(self.app_spec, as_celery=self.as_celery)

    def _nameless(self) -> App:
        from taskmq.app import App

        # Relative paths start where the person stands: there is no project to have a home.
        return App(Config(), name="command line", base_dir=os.getcwd())

    def database(self) -> tuple[Path, Mapping[str, str]] | None:
        """The SQLite file that is meant and the options of its URL; None for another transport."""
        return self._file(self.app.config.broker_url)

    # -- what commands that look are given --------------------------------------------------------

    @property
    def missing(self) -> Path | None:
        """The file of a store that is not there yet; None when it is, or is no file."""
        if self.app.has_transport:
            return None
        return self._missing(self.app.config.broker_url)

    @property
    def transport(self) -> Transport:
        """The open transport, for looking: a store that is not there is never made by it.

        With an application an empty one in memory stands in and a note says so; without one a path is
        more likely mistyped, and `ConfigError` names it.
        """
        if not self._noted and self.app_spec and self.missing is not None:
            self._noted = True
            note(
                f"there is no store yet: {self.missing} is made by the first submit or the first worker"
            )
        return self.glance()

    def glance(self) -> Transport:
        """As `transport`, and says nothing: for commands that make the store, or need only names of it."""
        missing = self.check_place()
        return self.app.transport if missing is None else self._nothing()

    @property
    def results(self) -> ResultStore:
        """The result store, for looking."""
        with_messages = self.transport.results
        url = self.app.config.result_url
        if self.app.results_with_messages or url is None:
            return with_messages
        return self.app.results if self._missing(url) is None else self._nothing().results

    def state(self, task_id: str) -> State:
        """As `App.state`, and makes no store."""
        beside = self.transport.results.state(task_id)
        if self.app.results_with_messages:
            return beside
        record = self.results.get(task_id)
        return record.state if record is not None and record.state.final else beside

    @property
    def where(self) -> str:
        """The place that is looked at, for people."""
        missing = self.missing
        return self.transport.describe() if missing is None else str(missing)

    # -- what commands that act are given ---------------------------------------------------------

    @property
    def acting(self) -> Transport:
        """The open transport, for storing something: makes the store of an application."""
        self.check_place()
        return self.app.transport

    def refuse_memory(self) -> None:
        """`ConfigError` where `-b` or the environment sends a worker into its own memory."""
        self.prepare()
        url = os.environ.get(BROKER_VARIABLE, "")
        if url.startswith("memory:"):
            raise ConfigError(f"-b {url}: {_ALONE}")

    def check_place(self, *, made: bool = False) -> Path | None:
        """The file that is missing, if any; `ConfigError` where a command cannot meet any other process.

        Without an application a missing file is one, too, unless the command would have `made` it.
        """
        from taskmq.transports.urls import parse_url

        url = self.app.config.broker_url
        if not self.app.has_transport and parse_url(url).scheme == "memory":
            raise ConfigError(f"broker_url {url!r}: {_ALONE}")
        missing = self.missing
        if missing is not None and not self.app_spec and not made:
            hint = "nothing was submitted there" if self.broker else "give -A/--app or -b/--broker"
            raise ConfigError(f"there is no database {missing}; {hint}")
        return missing

    # -- inside -----------------------------------------------------------------------------------

    def _missing(self, url: str) -> Path | None:
        found = self._file(url)
        if found is None:
            return None
        try:
            found[0].stat()
        except (FileNotFoundError, NotADirectoryError):
            return found[0]
        except OSError:
            pass  # it may be there; opening it says what is wrong
        return None

    def _file(self, url: str) -> tuple[Path, Mapping[str, str]] | None:
        from taskmq.transports.sqlite.paths import resolve_path
        from taskmq.transports.urls import parse_url

        parsed = parse_url(url)
        if parsed.scheme != "sqlite":
            return None
        return resolve_path(parsed.location, self.app.base_dir), parsed.options

    def _nothing(self) -> Transport:
        """An empty store that stands in for one that is not there."""
        if self._stand_in is None:
            from taskmq.transports.memory import MemoryTransport

            self._stand_in = MemoryTransport(clock=self.app.clock, random=self.app.random)
            self._stand_in.open()
            self._exit.callback(self._stand_in.close)
        return self._stand_in
