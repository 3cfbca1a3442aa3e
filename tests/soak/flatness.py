"""Whether a long run is flat: samples of it, two windows, and what has grown between them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

MIB = 1024 * 1024
# Shares of the tasks done: the first window begins when caches are full and the first results were swept.
_EARLY = (0.30, 0.50)
_LATE = (0.80, 1.01)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One look; sizes in bytes. `children` is resident size by process id."""

    done: int
    producer: int
    coordinator: int
    tree: int
    descriptors: int
    wal: int
    database: int
    children: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """How much the median of the last window may exceed that of the first one."""

    name: str
    of: Callable[[Sample], int]
    most: int


# What sawing children, a checkpoint that comes a little later or a faster minute may add. A leak of 1 KiB in
# each task is beyond each of them after some 20,000 tasks.
ALLOWED = (
    Allowance(name="producer memory", of=lambda s: s.producer, most=6 * MIB),
    Allowance(name="coordinator memory", of=lambda s: s.coordinator, most=3 * MIB),
    Allowance(name="memory of the tree", of=lambda s: s.tree, most=8 * MIB),
    Allowance(name="file descriptors", of=lambda s: s.descriptors, most=3),
    Allowance(name="write-ahead log", of=lambda s: s.wal, most=8 * MIB),
    Allowance(name="database", of=lambda s: s.database, most=12 * MIB),
)
# A child's growth from its first to its last look, where it lives long enough for a leak to show.
CHILD_GROWTH = 3 * MIB


def window(samples: Sequence[Sample], share: tuple[float, float]) -> list[Sample]:
    """The samples taken between two shares of the tasks."""
    total = samples[-1].done
    return [s for s in samples if share[0] * total <= s.done < share[1] * total]


def grown(samples: Sequence[Sample]) -> dict[str, int]:
    """By name: the median of the last window less that of the first."""
    early, late = window(samples, _EARLY), window(samples, _LATE)
    return {
        allowed.name: int(
            statistics.median(map(allowed.of, late)) - statistics.median(map(allowed.of, early))
        )
        for allowed in ALLOWED
    }


def child_growths(samples: Sequence[Sample]) -> list[int]:
    """Of each child that was replaced: how much larger it was at the last look than at the first."""
    lives: dict[int, list[int]] = {}
    for sample in samples:
        for pid, size in sample.children.items():
            lives.setdefault(pid, []).append(size)
    ended = [sizes for pid, sizes in lives.items() if pid not in samples[-1].children]
    return [sizes[-1] - sizes[0] for sizes in ended if len(sizes) >= 3]


def complaints(samples: Sequence[Sample], *, long_lived: bool) -> list[str]:
    """What is not flat, in words; `long_lived` says that children lived for thousands of tasks."""
    growth = grown(samples)
    said = [
        f"{allowed.name} grew by {growth[allowed.name]:,} (allowed {allowed.most:,})"
        for allowed in ALLOWED
        if growth[allowed.name] > allowed.most
    ]
    lives = child_growths(samples)
    if long_lived and lives and statistics.median(lives) > CHILD_GROWTH:
        said.append(
            f"a child grew by {int(statistics.median(lives)):,} in its life (allowed {CHILD_GROWTH:,})"
        )
    return said
