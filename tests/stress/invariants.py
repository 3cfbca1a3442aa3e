"""The invariants of reliability §3 over the log of a run: one function each, all of them in one pass.

A checker that finds nothing proves nothing by itself: `test_mutants` breaks the engine in four ways, and
`test_invariants` shows each function what it has to find.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from tests.stress.log import Event

# The store keeps microseconds, and a time is turned from one clock into the other to about a tenth of that.
TICK = 1e-5
NEVER = float("inf")
# Verbs after which a message is done with, and those that give it back.
ENDS = ("finish", "bury")
GIVES_BACK = ("retry", "release", "yield")


class Violation(NamedTuple):
    """One fault, and whose."""

    invariant: str
    id: str
    t: float
    what: str


@dataclass
class Start:
    """One run of a task's body, the claim it goes back to, and when it was over."""

    event: Event
    claim: Event | None
    over: float = NEVER


@dataclass
class Story:
    """All that was said of one message, in order."""

    id: str
    submit: Event | None = None
    accepted: Event | None = None
    claims: list[Event] = field(default_factory=list)
    settled: list[Event] = field(default_factory=list)
    others: list[Event] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    # token -> until when its lease runs at least, and when its holder began to give it up.
    until: dict[int, float] = field(default_factory=dict)
    given: dict[int, float] = field(default_factory=dict)

    def free_at(self, token: int) -> float:
        """From when on another claim is justified."""
        until = self.until.get(token, 0.0)
        return min(until, self.given.get(token, until))

    def finished(self) -> bool:
        return any(e["ev"] == "end" and e["how"] == "finish" for e in self.others)


class History:
    """A run's events, sorted by message. `final` is the state of each id in the store, `dead` the reason."""

    def __init__(
        self,
        events: Sequence[Event],
        final: Mapping[str, str],
        dead: Mapping[str, str],
        *,
        lease: float,
        max_deliveries: int,
    ) -> None:
        self.events = events
        self.final = final
        self.dead = dead
        self.lease = lease
        self.max_deliveries = max_deliveries
        self.killed = {e["victim"]: e["t"] for e in events if e["ev"] == "killed"}
        self.stories: dict[str, Story] = {}
        for event in events:
            if "id" in event:
                self._tell(self.stories.setdefault(event["id"], Story(event["id"])), event)
        for story in self.stories.values():
            story.claims.sort(key=lambda e: e["at"])
            self._find_runs(story)

    def _tell(self, story: Story, event: Event) -> None:
        kind = event["ev"]
        if kind == "submit":
            # One that is submitted again is the same message.
            story.submit = story.submit or event
        elif kind == "accepted":
            story.accepted = story.accepted or event
        elif kind == "claimed":
            story.claims.append(event)
        elif kind == "settled":
            story.settled.append(event)
        elif kind == "settling" and event["verb"] in GIVES_BACK:
            story.given.setdefault(event["token"], event["t"])
        else:
            story.others.append(event)
        if kind in ("claimed", "renewed"):
            story.until[event["token"]] = max(event["until"], story.until.get(event["token"], 0.0))

    def _find_runs(self, story: Story) -> None:
        for event in story.others:
            if event["ev"] == "start":
                # A supervisor says that it has claimed before it hands on.
                claims = [
                    c
                    for c in story.claims
                    if c["pid"] == event["supervisor"] and c["t"] <= event["t"]
                ]
                story.starts.append(Start(event, claims[-1] if claims else None))
            elif event["ev"] == "end":
                for start in story.starts:
                    if start.event["pid"] == event["pid"]:
                        start.over = min(start.over, event["t"])
        for start in story.starts:
            for process in (start.event["pid"], start.event["supervisor"]):
                death = self.killed.get(process, NEVER)
                if death > start.event["t"]:
                    start.over = min(start.over, death)

    def torn_turns(self) -> list[tuple[float, float]]:
        """When a process began a turn that it did not live to speak of, and when it was dead.

        It may have claimed in silence.
        """
        began: dict[int, float] = {}
        for event in self.events:
            if event["ev"] == "turning":
                began[event["pid"]] = event["t"]
            elif event["ev"] == "turned":
                began.pop(event["pid"], None)
        return [(t, self.killed.get(pid, NEVER)) for pid, t in began.items()]


def no_loss(history: History) -> Iterator[Violation]:
    """I1: what was accepted is finished, or dead with a reason, or revoked or expired with a cause."""
    for story in history.stories.values():
        if story.submit is None:
            yield Violation("I1", story.id, story.claims[0]["t"], "was never submitted")
            continue
        state = history.final.get(story.id, "unknown")
        # That it ran is not enough: whoever asks for it has to be told.
        if story.accepted is None or (story.finished() and state == "succeeded"):
            continue
        revoked = any(e["ev"] == "revoking" for e in story.others)
        expires = story.submit["expires"] is not None
        explained = (
            bool(history.dead.get(story.id))
            or (state == "revoked" and revoked)
            or (state == "expired" and expires)
        )
        if not explained:
            yield Violation("I1", story.id, story.accepted["t"], f"was accepted and is {state}")


def lease_exclusion(history: History) -> Iterator[Violation]:
    """I2: runs of one id never overlap while the earlier token's lease is live and its process alive.

    A worker that was stopped between its claim and the run begins it late, under a token that was replaced
    meanwhile; no lease can keep it from that, and its effects are I3's.
    """
    for story in history.stories.values():
        runs = sorted((s for s in story.starts if s.claim), key=lambda s: s.claim["at"])  # type: ignore[index]
        for earlier, later in pairwise(runs):
            assert earlier.claim is not None
            both = max(earlier.event["t"], later.event["t"])
            over = min(earlier.over, later.over)
            if both < min(over, story.free_at(earlier.claim["token"]) - TICK):
                yield Violation("I2", story.id, both, "ran twice under a live lease")


def fenced_effects(history: History) -> Iterator[Violation]:
    """I3: at most one ending takes effect per id, and nothing of a token that another claim has replaced."""
    for story in history.stories.values():
        ends = [e for e in story.settled if e["verb"] in ENDS]
        for again in ends[1:]:
            yield Violation("I3", story.id, again["t"], f"ended {len(ends)} times")
        effects = [*story.settled, *(e for e in story.others if e["ev"] == "renewed")]
        for effect in effects:
            own = next((c for c in story.claims if c["token"] == effect["token"]), None)
            for other in story.claims:
                if own is not None and own["at"] < other["at"] < effect["since"] - TICK:
                    what = effect.get("verb", "renewal")
                    yield Violation("I3", story.id, effect["t"], f"a stale token had its {what}")
                    break


def justified_redelivery(history: History) -> Iterator[Violation]:
    """I4: each claim after the first has a cause, a lease that ended or a holder that gave it up; each run
    has a claim of its own."""
    for story in history.stories.values():
        for earlier, later in pairwise(story.claims):
            if later["at"] < story.free_at(earlier["token"]) - TICK:
                yield Violation("I4", story.id, later["t"], "was claimed while it was held")
        seen = set()
        for start in story.starts:
            if start.claim is None:
                yield Violation("I4", story.id, start.event["t"], "started without a claim")
            elif start.claim["token"] in seen:
                yield Violation("I4", story.id, start.event["t"], "started twice for one claim")
            else:
                seen.add(start.claim["token"])


def bounded_poison(history: History) -> Iterator[Violation]:
    """I5: no delivery beyond the limit, and what kills whoever runs it ends in the dead letters."""
    for story in history.stories.values():
        for claim in story.claims:
            if claim["deliveries"] > history.max_deliveries:
                yield Violation("I5", story.id, claim["t"], f"delivery {claim['deliveries']}")
        poison = story.submit is not None and story.submit["task"] == "poison"
        if poison and story.accepted is not None and history.dead.get(story.id) != "crash-loop":
            yield Violation("I5", story.id, story.accepted["t"], "kills and is not buried")


def order(history: History) -> Iterator[Violation]:
    """I6: nothing is claimed while a more urgent message, stored and due before, waits unclaimed.

    Left out are those that a torn turn may have held until its lease ended. Within a priority the order is
    that of one consumer, which the conformance suite looks at.
    """
    torn = history.torn_turns()
    # (time, what happens first at one time, …): leaving before looking before arriving.
    timeline: list[tuple[float, int, int, str]] = []
    for story in history.stories.values():
        timeline += [(c["at"], 1, c["priority"], story.id) for c in story.claims]
        if story.submit is None or story.accepted is None:
            continue
        arrived = max(story.accepted["t"], story.submit["eta"] or 0.0) + TICK
        left = min(
            story.claims[0]["at"] if story.claims else NEVER,
            story.submit["expires"] or NEVER,
            *(e["t"] for e in story.others if e["ev"] == "revoking"),
            NEVER,
        )
        left -= TICK
        hidden = any(arrived < dead and t + history.lease <= left + 2 * TICK for t, dead in torn)
        if arrived < left and not hidden:
            timeline.append((arrived, 2, story.submit["priority"], story.id))
            timeline.append((left, 0, story.submit["priority"], story.id))
    waiting: dict[int, set[str]] = defaultdict(set)
    for t, what, priority, task_id in sorted(timeline):
        if what == 2:
            waiting[priority].add(task_id)
        elif what == 0:
            waiting[priority].discard(task_id)
        else:
            above = [i for level, ids in waiting.items() if level > priority for i in ids]
            if above:
                yield Violation("I6", task_id, t, f"was claimed before {above[0]}")


def in_time(history: History) -> Iterator[Violation]:
    """I7: never claimed before its eta, and never started after it expired."""
    for story in history.stories.values():
        if story.submit is None:
            continue
        eta, expires = story.submit["eta"], story.submit["expires"]
        for claim in story.claims:
            if eta is not None and claim["at"] < eta - TICK:
                yield Violation("I7", story.id, claim["t"], "was claimed before its eta")
            if expires is not None and claim["at"] > expires + TICK:
                yield Violation("I7", story.id, claim["t"], "was claimed after it expired")
        for event in story.others:
            late = event["ev"] == "started" and expires is not None
            if late and event["since"] > expires + TICK:
                yield Violation("I7", story.id, event["t"], "started after it expired")


def no_resurrection(history: History) -> Iterator[Violation]:
    """I8: nothing is claimed after its end or its revocation, and nothing runs after its own ack."""
    for story in history.stories.values():
        ended = min((e["t"] for e in story.settled if e["verb"] in ENDS), default=NEVER)
        revoked = min((e["t"] for e in story.others if e["ev"] == "revoked"), default=NEVER)
        for claim in story.claims:
            if claim["at"] > ended:
                yield Violation("I8", story.id, claim["t"], "was claimed after its end")
            elif claim["at"] > revoked:
                yield Violation("I8", story.id, claim["t"], "was claimed after it was revoked")
        acked = {e["token"]: e["t"] for e in story.settled if e["verb"] in ENDS}
        for start in story.starts:
            own = acked.get(start.claim["token"], NEVER) if start.claim else NEVER
            if start.event["t"] > own:
                yield Violation("I8", story.id, start.event["t"], "started after its own end")


INVARIANTS: tuple[Callable[[History], Iterator[Violation]], ...] = (
    no_loss,
    lease_exclusion,
    fenced_effects,
    justified_redelivery,
    bounded_poison,
    order,
    in_time,
    no_resurrection,
)


def check(history: History) -> list[Violation]:
    """Every violation of I1 to I8, in order of time."""
    found = [v for invariant in INVARIANTS for v in invariant(history)]
    return sorted(found, key=lambda v: v.t)
