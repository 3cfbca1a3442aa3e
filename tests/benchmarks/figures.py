"""The rows of the comparison: what each figure is, how it was configured, and what it must reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tests.benchmarks.peers import PEERS

Values = Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One line of the table.

    `target` is TaskMQ's own bound and `times` its bound as a multiple of Celery's figure; none is no bound.
    `taskmq_only` marks what the peers are not asked for.
    """

    row: str
    key: str
    what: str
    unit: str
    better: Literal["higher", "lower"] = "lower"
    target: float | None = None
    times: float | None = None
    config: str = ""
    taskmq_only: bool = False

    def reached(self, values: Values) -> bool | None:
        """Whether TaskMQ's figure meets all of its bounds; None where there is none, or it cannot be told."""
        mine, theirs = values.get("taskmq"), values.get("celery")
        if mine is None or (self.target is None and self.times is None):
            return None
        good = True
        if self.target is not None:
            good = mine >= self.target if self.better == "higher" else mine <= self.target
        if self.times is None or not good:
            return good
        return None if theirs is None else mine >= self.times * theirs

    def ratio(self, values: Values, peer: str) -> float | None:
        """How many times better TaskMQ is than this peer: above 1 is better whichever way is better."""
        mine, theirs = values.get("taskmq"), values.get(peer)
        if not mine or not theirs:
            return None
        return mine / theirs if self.better == "higher" else theirs / mine

    def bound(self) -> str:
        """The bounds as the table writes them."""
        sign = "≥" if self.better == "higher" else "≤"
        parts = [] if self.target is None else [f"{sign} {self.target:,g}"]
        parts += [] if self.times is None else [f"≥ {self.times:g}× Celery"]
        return ", ".join(parts) or "–"


_DRAIN = (
    "20,000 waiting tasks (Huey with fsync 4,000); TaskMQ at least once, Celery acks early, "
    "Huey at most once"
)
_JUMP = "3,000 naps of 20 ms below, 4 slots, prefork; Celery with 10 priority steps; Huey holds 4"

FIGURES: tuple[Figure, ...] = (
    Figure(
        row="submit",
        key="rate",
        what="`delay()` of a no-op, one producer",
        unit="/s",
        better="higher",
        target=12_000,
        times=5,
        config="default durability, one transaction per `delay()`, no worker",
    ),
    Figure(
        row="submit-full",
        key="rate",
        what="the same, surviving a power cut",
        unit="/s",
        better="higher",
        config="TaskMQ `durability=full`; Huey's default",
    ),
    Figure(
        row="drain-prefork",
        key="rate",
        what="no-ops drained, prefork 2",
        unit="/s",
        better="higher",
        target=7_000,
        times=6,
        config=f"{_DRAIN}; Celery prefetch 8",
    ),
    Figure(
        row="drain-threads",
        key="rate",
        what="no-ops drained, threads 8",
        unit="/s",
        better="higher",
        target=10_000,
        config="as above; Celery prefetch 32",
    ),
    Figure(
        row="drain-solo",
        key="rate",
        what="no-ops drained, solo",
        unit="/s",
        better="higher",
        target=8_000,
        config="as above; Celery prefetch 4; Huey one thread",
    ),
    Figure(
        row="idle",
        key="start p50",
        what="idle worker: submit → start, p50",
        unit="ms",
        target=1,
        config="prefork 2, one task at a time, 20 ms between them",
    ),
    Figure(
        row="idle",
        key="start p99",
        what="idle worker: submit → start, p99",
        unit="ms",
        target=3,
        config="as above",
    ),
    Figure(
        row="idle",
        key="silence p50",
        what="the same after 2 s of silence, p50",
        unit="ms",
        target=1,
        config="10 tasks a round",
    ),
    Figure(
        row="idle",
        key="silence max",
        what="the same after 2 s of silence, worst",
        unit="ms",
        target=3,
        config="10 tasks a round",
    ),
    Figure(
        row="idle",
        key="get p50",
        what="submit → `get()` returns, p50",
        unit="ms",
        target=2,
        config="prefork 2, one task at a time, results on",
    ),
    Figure(
        row="idle",
        key="get p99",
        what="submit → `get()` returns, p99",
        unit="ms",
        config="as above",
    ),
    *(
        figure
        for prefetch in (4, 16)
        for figure in (
            Figure(
                row=f"jump-{prefetch}",
                key="p50",
                what=f"urgent into a backlog, prefetch {prefetch}: wait to start, p50",
                unit="tasks",
                target=0.5,
                config=_JUMP if prefetch == 4 else "as above",
            ),
            Figure(
                row=f"jump-{prefetch}",
                key="max",
                what=f"urgent into a backlog, prefetch {prefetch}: wait to start, max",
                unit="tasks",
                target=1.25,
                config="in lengths of a nap",
            ),
            Figure(
                row=f"jump-{prefetch}",
                key="naps",
                what=f"urgent into a backlog, prefetch {prefetch}: naps meanwhile",
                unit="/s",
                better="higher",
                target=189,
                config="200/s is all that 4 slots can do",
            ),
        )
    ),
    Figure(
        row="claim",
        key="1k",
        what="reserve of one, 1 k ready, p50",
        unit="µs",
        config="10 queues, 9 bands, default durability",
        taskmq_only=True,
    ),
    Figure(
        row="claim",
        key="100k",
        what="reserve of one, 100 k ready, p50",
        unit="µs",
        config="as above",
        taskmq_only=True,
    ),
    Figure(
        row="claim",
        key="1m",
        what="reserve of one, 1 M ready, p50",
        unit="µs",
        config="as above",
        taskmq_only=True,
    ),
    Figure(
        row="claim",
        key="growth",
        what="reserve of one: at 1 M ÷ at 1 k",
        unit="×",
        target=1.5,
        config="backlogs measured in turns",
        taskmq_only=True,
    ),
    Figure(
        row="cpu",
        key="share",
        what="idle worker, share of a core",
        unit="%",
        target=1,
        config="prefork 2, whole tree, over 20 s",
    ),
    Figure(
        row="memory",
        key="rss",
        what="peak memory of the whole tree, sum of RSS",
        unit="MiB",
        target=100,
        config="prefork 2, draining 20,000 no-ops",
    ),
    Figure(
        row="memory",
        key="pss",
        what="peak memory of the whole tree, PSS",
        unit="MiB",
        config="as above, shared pages counted once",
    ),
    Figure(
        row="import",
        key="package",
        what="`import taskmq`",
        unit="ms",
        target=60,
        config="the same of the peer's package; names load on first use in TaskMQ and Celery",
    ),
    Figure(
        row="import",
        key="names",
        what="`from taskmq import App`",
        unit="ms",
        target=60,
        config="the same of the peer's application class",
    ),
    Figure(
        row="ready",
        key="first start",
        what="`taskmq worker`: command → first task starts",
        unit="s",
        target=0.6,
        config="prefork 2, one task waits",
    ),
)


def asked(row: str, peer: str) -> bool:
    """Whether this peer can be asked for this row."""
    if peer == "taskmq":
        return True
    if any(figure.taskmq_only for figure in FIGURES if figure.row == row):
        return False
    if peer == "huey-no-fsync" and not row.startswith(("submit", "drain")):
        # The disk decides nothing else.
        return False
    can = PEERS[peer].can
    if row == "submit-full":
        return "full" in can
    # A peer that holds what it holds is measured once.
    return row != "jump-16" or "prefetch" in can
