"""Asking before something is gone for good."""

from __future__ import annotations

import sys

import click

from taskmq.cli.codes import FAILED
from taskmq.cli.output import is_terminal, note


def confirm(question: str, *, sure: bool, flag: str) -> None:
    """Go on only when the person agrees or gave `flag`; else the command ends here, with exit code 1.

    `UsageError` without a terminal: nobody can be asked.
    """
    if sure:
        return
    if not is_terminal(sys.stdin):
        raise click.UsageError(f"{question} There is nobody to ask here: give {flag} to agree.")
    if not click.confirm(question, err=True):
        note("Nothing was deleted.")
        raise click.exceptions.Exit(FAILED)
