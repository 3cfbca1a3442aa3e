"""`taskmq demo`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from taskmq.cli.codes import FAILED
from taskmq.cli.demo import report
from taskmq.cli.demo.corpus import files, library
from taskmq.cli.demo.figures import summary, waits_by_priority
from taskmq.cli.demo.plot import ASCII, DRAWN
from taskmq.cli.demo.round import Plan, Round, play
from taskmq.cli.group import Command
from taskmq.cli.options import json_option
from taskmq.cli.output import columns, complain, show, show_json, style
from taskmq.cli.progress import Progress
from taskmq.cli.text import plural

_COLORS = {"on": "green", "off": "yellow", "axis": "bright_black"}


@click.command(cls=Command)
@click.option(
    "--files",
    "count",
    type=click.IntRange(10),
    default=300,
    show_default=True,
    help="How many source files.",
)
@click.option(
    "--requests", type=click.IntRange(3), default=90, show_default=True, help="Urgent requests."
)
@click.option(
    "--workers", type=click.IntRange(1), default=2, show_default=True, help="Worker processes."
)
@click.option(
    "--prefetch",
    type=click.IntRange(1),
    default=16,
    show_default=True,
    help="Messages each worker holds.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(1),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="Give a round up after that.",
)
@click.option("--keep", is_flag=True, help="Keep the databases and the workers' logs.")
@json_option
def demo(
    count: int,
    requests: int,
    workers: int,
    prefetch: int,
    timeout: float,
    keep: bool,
    as_json: bool,
) -> int:
    """See urgent work overtake real bulk work.

    Analyses the sources of Python's standard library at low priority while urgent, high and normal
    requests about single files come in: real tasks, real worker processes, a real SQLite file. Twice, with
    yielding and without, with the same tasks. At the end: how long each priority waited. Exit code 0 only
    when every task has its result and both rounds found the same.
    """
    plan = Plan(
        sources=library(),
        files=files(count),
        requests=requests,
        workers=workers,
        prefetch=prefetch,
        timeout=timeout,
    )
    folder = Path(tempfile.mkdtemp(prefix="taskmq-demo-"))
    kept = keep
    try:
        say = _silent if as_json else show
        say(_opening(plan, folder))
        rounds = {name: _play(plan, folder, name) for name in report.MODES}
        answer = _answer(plan, rounds)
        if as_json:
            show_json(answer | ({"folder": str(folder)} if keep else {}))
        else:
            _closing(answer, rounds)
        kept = keep or not answer["complete"]
        return 0 if answer["complete"] else FAILED
    except Exception:
        kept = True
        raise
    finally:
        if kept:
            click.echo(f"Databases and logs are kept in {folder}", err=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _silent(lines: object) -> None:
    """With --json the answer is the only thing on stdout."""


def _opening(plan: Plan, folder: Path) -> list[str]:
    workers = plural(plan.workers, "process", "processes")
    return [
        style("TaskMQ demo", bold=True),
        f"  bulk      {len(plan.files)} tasks at P-5, each analyses one source file",
        f"  sources   {plan.sources}",
        f"  requests  {plan.requests} at P9, P5 and P0, coming in while the bulk work runs",
        f"  workers   {workers} of one slot, each holding up to {plan.prefetch} messages",
        f"  store     SQLite in {folder}",
        "  rounds    yielding on; then off: workers run what they hold, in order",
        "",
    ]


def _play(plan: Plan, folder: Path, name: str) -> Round:
    with Progress(f"yielding {name:<3}", len(plan.files)) as bar:
        return play(plan, folder, yielding=name == "on", watch=bar.set)


def _answer(plan: Plan, rounds: dict[str, Round]) -> dict[str, Any]:
    summaries = {name: summary(r.facts) for name, r in rounds.items()}
    same = summaries["on"] == summaries["off"]
    return {
        "complete": same and all(r.complete for r in rounds.values()),
        "same_results": same,
        "workers": plan.workers,
        "prefetch": plan.prefetch,
        "summary": summaries["on"],
        "rounds": {
            name: {
                "submitted": r.submitted,
                "succeeded": len(r.waits),
                "failures": r.failures,
                "seconds": round(r.seconds, 3),
                "waits": [
                    {
                        "priority": w.priority,
                        "count": w.samples,
                        "min": round(w.least, 6),
                        "p50": round(w.p50, 6),
                        "p95": round(w.p95, 6),
                        "max": round(w.most, 6),
                    }
                    for w in waits_by_priority(r.waits)
                ],
            }
            for name, r in rounds.items()
        },
    }


def _closing(answer: dict[str, Any], rounds: dict[str, Round]) -> None:
    waits = {name: waits_by_priority(r.waits) for name, r in rounds.items()}
    room = min((columns() or 80), 100) - 18
    show(["", style("Waiting time from submit to start", bold=True), ""])
    show(report.wait_table(waits))
    show([""])
    glyphs = DRAWN if (sys.stdout.encoding or "").lower().replace("-", "") == "utf8" else ASCII
    for key, line in report.wait_plot(waits, room, glyphs):
        show([style(line, fg=_COLORS[key])])
    bar = f"{glyphs.bar * 2} least to p95   {glyphs.middle} half   {glyphs.most * 2} up to the longest"
    show([" " * 16 + bar, "", *report.verdict(waits), ""])
    show([style("What the bulk work found", bold=True), "", *report.found(answer["summary"]), ""])
    _say_complete(answer, rounds, show)


def _say_complete(
    answer: dict[str, Any], rounds: dict[str, Round], say: Callable[[list[str]], None]
) -> None:
    submitted = sum(r.submitted for r in rounds.values())
    seconds = sum(r.seconds for r in rounds.values())
    if answer["complete"]:
        done = f"All {submitted} tasks of both rounds succeeded in {seconds:.1f} s, with the same results."
        say([style(done, fg="green")])
        return
    for name, one in rounds.items():
        missing = one.submitted - len(one.waits)
        if missing:
            complain(f"yielding {name}: {missing} of {one.submitted} tasks have no result")
        for failure in one.failures[:10]:
            complain(f"yielding {name}: {failure}")
    if not answer["same_results"]:
        complain("the two rounds did not find the same")
