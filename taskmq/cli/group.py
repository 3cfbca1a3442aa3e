"""Commands that are imported when they are used, and what is said to a name that is none.

`taskmq --help` and a worker's start must not pay for the other commands, so the catalogue holds each
command's place and its line of help; a test compares that line with the command's own.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import click

from taskmq.cli.options import WhereOption, where_options
from taskmq.errors import nearest


class Entry(NamedTuple):
    """Where a command is (`module:attribute`) and what `taskmq --help` says of it."""

    place: str
    help: str


class _Sections:
    """Lists the options that say where apart from the command's own; a mix-in of click commands."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own: list[tuple[str, str]] = []
        where: list[tuple[str, str]] = []
        for param in self.get_params(ctx):  # type: ignore[attr-defined]
            record = param.get_help_record(ctx)
            if record is not None and not isinstance(param, click.Argument):
                (where if isinstance(param, WhereOption) else own).append(record)
        for title, records in (("Options", own), ("Application", where)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class Command(_Sections, click.Command):
    """A command with the options every command has."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(where_options())


class Group(_Sections, click.Group):
    """A family of commands (`taskmq dlq …`) whose members are `Command`s."""

    command_class = Command

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(where_options())

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            raise click.UsageError(self.refusal(ctx, name), ctx)
        return super().resolve_command(ctx, args)

    def refusal(self, ctx: click.Context, name: str) -> str:
        """What to say of a name that is no command here."""
        return f"no such command {name!r}.{nearest(name, self.list_commands(ctx))}"


class LazyGroup(Group):
    """The whole command line. `later` names Celery's commands that do not exist here, and says why."""

    def __init__(
        self, *args: Any, catalogue: dict[str, Entry], later: dict[str, str], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.catalogue = catalogue
        self.later = later

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.catalogue)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.catalogue.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.place.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self.catalogue.items()])

    def refusal(self, ctx: click.Context, name: str) -> str:
        if name in self.later:
            return f"{name!r}: {self.later[name]}"
        return super().refusal(ctx, name)
