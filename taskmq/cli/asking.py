"""Asking before something is gone for good."""

from __future__ import annotations

import sys

import click

from taskmq.cli.output import is_terminal


def confirm(question: str, *, sure: bool, flag: str) -> None:
    """Go on only when the person agrees or gave `flag`; without a terminal nobody can be asked."""
    if sure:
        return
    if not is_terminal(sys.stdin):
        raise click.UsageError(f"{question} There is nobody to ask here: give {flag} to agree.")
    click.confirm(question, abort=True, err=True)
