"""What `-A` and `-b` name, opened once for one command.

With an application the settings are its own; with only a URL, or neither, the defaults serve the
commands that look into the store without running tasks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from taskmq.config import BROKER_VARIABLE, Config
from taskmq.errors import ConfigError

if TYPE_CHECKING:
    from taskmq.app import App
    from taskmq.results.base import ResultStore
    from taskmq.task import Task
    from taskmq.transports.base import QueueShare, Transport


class Session:
    """The options that say where, and what they opened; closed when the command ends."""

    def __init__(self) -> None:
        self.app_spec = ""
        self.broker = ""
        self.as_celery = False
        self.workdir = ""
        self._app: App | None = None
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
        from taskmq.loading import load_app

        return load_app(self.app_spec)

    def _nameless(self) -> App:
        from taskmq.app import App

        # Relative paths start where the person stands: there is no project to have a home.
        return App(Config(), name="command line", base_dir=os.getcwd())

    def database(self) -> tuple[Path, Mapping[str, str]] | None:
        """The SQLite file that is meant and the options of its URL; None for another transport."""
        from taskmq.transports.sqlite.paths import resolve_path
        from taskmq.transports.urls import parse_url

        url = parse_url(self.app.config.broker_url)
        if url.scheme != "sqlite":
            return None
        return resolve_path(url.location, self.app.base_dir), url.options

    @property
    def transport(self) -> Transport:
        """The open transport.

        Where no application says which store is meant, only one that exists is opened: a mistyped path
        must not become an empty store. Raises `ConfigError` naming the place.
        """
        self._must_exist()
        return self.app.transport

    @property
    def results(self) -> ResultStore:
        """The result store, opened under the same condition."""
        self._must_exist()
        return self.app.results

    def _must_exist(self) -> None:
        found = None if self.app_spec else self.database()
        if found is not None and not found[0].exists():
            hint = "nothing was submitted there" if self.broker else "give -A/--app or -b/--broker"
            raise ConfigError(f"there is no database {found[0]}; {hint}")

    def shares(self, names: list[str]) -> tuple[QueueShare, ...]:
        """Queues with their weights; without names every queue of the settings and the store."""
        from taskmq.transports.base import QueueShare

        config = self.app.config
        chosen = names or sorted(
            {config.default_queue, *config.queues}
            | {info.name for info in self.transport.operators.queues()}
        )
        return tuple(QueueShare(name, config.queue(name).weight) for name in chosen)
