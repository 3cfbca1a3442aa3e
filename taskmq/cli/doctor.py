"""`taskmq doctor`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import click

from taskmq.cli.checks import FAIL, NOTE, OK, WARN, Finding, database, installation, running
from taskmq.cli.codes import FAILED
from taskmq.cli.group import Command
from taskmq.cli.options import json_option
from taskmq.cli.output import columns, show, show_json, style
from taskmq.cli.session import Session
from taskmq.cli.status import look
from taskmq.cli.text import plural
from taskmq.errors import TaskMQError
from taskmq.printable import printable
from taskmq.transports.sqlite.options import SQLiteOptions

_COLORS = {OK: "green", NOTE: "cyan", WARN: "yellow", FAIL: "red"}
# Where a finding's sentence begins.
_INDENT = 19


@click.command(cls=Command)
@json_option
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> int:
    """Check the installation, the store and the app.

    Looks and changes nothing. Each line is ok, note (good to know), warn (act on it) or fail (it
    does not work so). Exit code 1 when anything fails.
    """
    session = Session.of(ctx)
    findings = []
    for finding in _findings(session):
        findings.append(finding)
        if not as_json:
            show(_lines(finding))
    failed = sum(finding.status == FAIL for finding in findings)
    if as_json:
        show_json({"ok": not failed, "findings": [f._asdict() for f in findings]})
    else:
        warned = sum(finding.status == WARN for finding in findings)
        show(["", f"{plural(failed, 'failure')}, {plural(warned, 'warning')}"])
    return FAILED if failed else 0


def _findings(session: Session) -> Iterator[Finding]:
    yield from installation.check()
    try:
        tasks = session.own_tasks()
    except TaskMQError as error:
        yield Finding(FAIL, "application", str(error))
        return
    if session.app_spec:
        yield Finding(OK, "application", f"{session.app_spec} with {plural(len(tasks), 'task')}")
        for line in session.advice():
            yield Finding(WARN, "settings", line)
    file = session.database()
    if file is not None:
        path, options = file
        sound = True
        for finding in database.check(path, SQLiteOptions.parse(options)):
            sound = sound and finding.status != FAIL
            yield finding
        if not sound or not path.exists():
            return
    try:
        transport = session.transport
        yield from running.capabilities(transport.capabilities)
        yield from running.life(look(session, []), session.app.config.lease)
    except TaskMQError as error:
        yield Finding(FAIL, "transport", str(error))


def _lines(finding: Finding) -> list[str]:
    """A finding, its sentence wrapped under itself where a terminal is narrower."""
    said = printable(finding.said)
    wide = columns()
    wrapped = textwrap.wrap(said, max(30, wide - _INDENT)) if wide else [said]
    mark = style(f"{finding.status:<5}", fg=_COLORS[finding.status])
    first = f"{mark} {finding.name:<12} {wrapped[0] if wrapped else ''}"
    return [first, *(" " * _INDENT + line for line in wrapped[1:])]
