"""TaskMQ beside Celery (Redis) and Huey (SQLite and Redis) where installed, in one run, as one table.

    python -m tests.benchmarks.compare [--quick] [--only drain-prefork,idle] [--peers taskmq,celery]
                                       [--rounds 3] [--markdown docs/performance.md] [--json FILE]

Rounds are interleaved, one peer after the other, and each figure is the median of its rounds. Machines are
shared and noisy: read the ratios before the rates. `--markdown` writes the table between the two marks of a
document that has them, else a file of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.figures import FIGURES, Figure, asked
from tests.benchmarks.peers import PEERS, installed
from tests.benchmarks.redis_database import RedisDatabase, redis_database
from tests.benchmarks.running import ROWS, measure
from tests.benchmarks.table import conditions, markdown, text

BEGIN, END = "<!-- figures -->", "<!-- /figures -->"

Samples = dict[tuple[str, str], list[dict[str, float]]]


def collect(
    samples: Samples,
    rows: Sequence[str],
    peers: Sequence[str],
    rounds: int,
    *,
    redis: RedisDatabase | None,
    quick: bool,
) -> None:
    """Row by row, round by round, peer by peer: A B A B. A failure is said, and a run without figures."""
    for row in rows:
        # Filling a million rows once is enough: the backlogs of a round already take turns.
        for turn in range(1 if row == "claim" else rounds):
            for peer in [name for name in peers if asked(row, name)]:
                began = time.monotonic()
                if redis is not None:
                    redis.empty()
                try:
                    figures = measure(
                        row, PEERS[peer], redis=redis.url if redis else "", quick=quick
                    )
                except RuntimeError as exc:
                    print(f"! {exc}", file=sys.stderr)
                    figures = {}
                samples.setdefault((row, peer), []).append(figures)
                said = ", ".join(f"{key} {value:.4g}" for key, value in figures.items())
                took = time.monotonic() - began
                print(f"  {row} {turn + 1} {peer}: {said} ({took:.0f} s)", file=sys.stderr)


def medians(samples: Samples) -> dict[Figure, dict[str, float]]:
    """By figure, by peer: the median of its rounds."""
    results: dict[Figure, dict[str, float]] = {}
    for figure in FIGURES:
        for (row, peer), runs in samples.items():
            values = [run[figure.key] for run in runs if figure.key in run]
            if row == figure.row and values:
                results.setdefault(figure, {})[peer] = statistics.median(values)
    return results


def write(path: Path, body: str) -> None:
    """Into the marked place of an existing document, or as the whole of a new one."""
    if not path.exists():
        path.write_text(body + "\n")
        return
    head, _, rest = path.read_text().partition(BEGIN)
    _, mark, tail = rest.partition(END)
    if not mark:
        raise SystemExit(f"{path} exists and has no {BEGIN} … {END}")
    path.write_text(f"{head}{BEGIN}\n{body}\n{END}{tail}")


def names(value: str, known: Sequence[str], what: str) -> list[str]:
    """A comma-separated choice; `drain` stands for all that begin with it."""
    chosen = [k for k in known if any(k == v or k.startswith(f"{v}-") for v in value.split(","))]
    for part in value.split(","):
        if not any(k == part or k.startswith(f"{part}-") for k in known):
            raise ValueError(f"no {what} {part!r}; there are {', '.join(known)}")
    return chosen


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer messages, one round")
    parser.add_argument("--only", metavar="ROWS", help=", ".join(ROWS))
    parser.add_argument("--peers", metavar="NAMES", help=", ".join(PEERS))
    parser.add_argument("--rounds", type=int, help="3, or 1 with --quick")
    parser.add_argument("--redis", default="redis://localhost:6379", metavar="SERVER")
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    parser.add_argument("--json", type=Path, metavar="FILE", help="every sample of every round")
    options = parser.parse_args()
    # Both end what runs, give the database up, and show what has been measured until then.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    load = os.getloadavg()[0]
    try:
        rows = names(options.only, list(ROWS), "row") if options.only else list(ROWS)
    except ValueError as refused:
        parser.error(str(refused))
    peers = [peer.name for peer in installed()]
    if options.peers:
        chosen = options.peers.split(",")
        if unknown := [name for name in chosen if name not in peers]:
            parser.error(
                f"not known or not installed: {', '.join(unknown)}; here: {', '.join(peers)}"
            )
        peers = chosen
    rounds = options.rounds or (1 if options.quick else 3)
    with redis_database(options.redis) as redis:
        if redis is None and (left_out := [name for name in peers if PEERS[name].redis]):
            print(f"! no Redis at {options.redis}: without {', '.join(left_out)}", file=sys.stderr)
            peers = [name for name in peers if name not in left_out]
        samples: Samples = {}
        interrupted = False
        try:
            collect(samples, rows, peers, rounds, redis=redis, quick=options.quick)
        except KeyboardInterrupt:
            interrupted = True
    results = medians(samples)
    about = conditions(peers, rounds, options.quick, load)
    print("\n".join(about), text(results, peers), sep="\n\n")
    if interrupted:
        print("\ninterrupted: nothing is written", file=sys.stderr)
        return 130
    if options.json:
        raw = [{"row": r, "peer": p, "runs": runs} for (r, p), runs in samples.items()]
        options.json.write_text(json.dumps({"conditions": about, "samples": raw}, indent=1))
    if options.markdown:
        write(options.markdown, "\n".join([*about, "", markdown(results, peers)]))
    if failed := [f"{row} of {peer}" for (row, peer), runs in samples.items() if {} in runs]:
        print(f"\nfailed, see above: {', '.join(failed)}", file=sys.stderr)
        return 2
    missed = [figure for figure, values in results.items() if figure.reached(values) is False]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
