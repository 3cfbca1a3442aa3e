"""The transport seam: one verb per state transition (DESIGN §6).

An adapter fetches what policy needs and carries out what it says. How Redis and RabbitMQ carry out
each verb stands in docs/architecture.md; a verb they could not carry out would be a wrong verb.

    submit ──▶ queued / scheduled / blocked ──reserve──▶ reserved ──start──▶ running ──settle──▶ …
                       ▲   ▲                                │  yield, release     │ retry
                       └───┴────────────────────────────────┴─────────────────────┘
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from taskmq.clock import Clock
from taskmq.message import Delivery, Message, ResultRecord
from taskmq.policy.aging import Aging
from taskmq.policy.bands import OPEN, Budget, Window
from taskmq.policy.following import NOTHING, Consequence

if TYPE_CHECKING:
    from taskmq.coordination.base import Coordination
    from taskmq.results.base import ResultStore
    from taskmq.transports.operators import Operators

ALL_BANDS = Window()


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a transport can do; `taskmq doctor` and the worker's banner print what it cannot.

    keeps_place     a yielded message returns to the place it had
    exact_peek      peek sees exactly what a reserve would find
    atomic_turn     a turn is one transaction: a crash splits no settle from what follows it
    leases          a lost worker's messages come back after a lease (else with its connection)
    shared_limits   rate limits and concurrency keys hold over all workers (else per worker)
    shared_results  results are written in the settling transaction
    persistent      messages survive the process
    processes       several processes may share it
    """

    keeps_place: bool
    exact_peek: bool
    atomic_turn: bool
    leases: bool
    shared_limits: bool
    shared_results: bool
    persistent: bool
    processes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a transport needs to know of the configuration; times in seconds, sizes in bytes."""

    max_body: int = 1024 * 1024
    max_yields: int = 100
    lease: float = 30.0
    result_expires: float | None = 86_400.0
    dead_letter_expires: float | None = 30 * 86_400.0
    revocation_expires: float = 86_400.0
    poll_interval: float = 0.05


@dataclass(frozen=True, slots=True)
class QueueShare:
    """A queue a worker consumes, and its weight inside a band (P3)."""

    name: str
    weight: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveRequest:
    """What a worker asks for in one turn.

    `slots` deliveries may start at once, within `budget`. `room` more may be held unstarted.
    `waiting` are the unstarted deliveries the worker holds already: each free slot takes the better
    of their head and the store's, and those taken come back started. `lease` is in seconds.
    """

    worker: str
    queues: tuple[QueueShare, ...]
    slots: int
    room: int = 0
    budget: Budget = OPEN
    lease: float = 30.0
    waiting: tuple[Delivery, ...] = ()
    aging: Aging | None = None


class Verb(enum.Enum):
    """How a delivery is settled."""

    FINISH = "finish"  # a final state: the message is done with
    RETRY = "retry"  # run again after `delay`; deliveries start from 0, retries + 1
    RELEASE = "release"  # give back to its place; the delivery is taken back unless `counted`
    BURY = "bury"  # to the dead letters, with a reason
    REPORT = "report"  # progress: the delivery stays held


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One settled delivery and all that commits with it.

    `result` is written (none leaves what is there), `then` applied, in the same transaction wherever the
    store can. RETRY uses `delay`, `priority` (None keeps it) and `body` (None keeps it); its `result` is
    the RETRYING record. RELEASE uses `delay` and `counted`. BURY uses `reason` and `error`; its `result`
    is the final record (FAILED or DEAD).
    """

    delivery: Delivery
    verb: Verb
    result: ResultRecord | None = None
    then: Consequence = NOTHING
    delay: float = 0.0
    priority: int | None = None
    body: bytes | None = None
    counted: bool = False
    reason: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Started:
    """What `start` did: the deliveries now running, and those not (limit, pause, revoked, lease lost)."""

    started: tuple[Delivery, ...] = ()
    refused: tuple[Delivery, ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn brought.

    `lost` are the deliveries of the outcomes whose lease was lost: nothing of those outcomes was
    applied. `deliveries` are new ones and those of `waiting` that started; `refused` those of
    `waiting` that are no longer ours to start (limit, pause, revoked, expired, lease lost). `more` says that
    a cap on the work of one transaction was met, so the next turn should not wait.
    """

    lost: tuple[Delivery, ...] = ()
    deliveries: tuple[Delivery, ...] = ()
    refused: tuple[Delivery, ...] = ()
    more: bool = False


class Transport(ABC):
    """Moves messages. One instance serves one process and all its threads; a forked child opens its own.

    Every method may raise `TransportError` (see `taskmq.errors`); losing a lease is a return value.
    """

    #: URL scheme and name for people.
    name: str = ""
    capabilities: Capabilities

    #: Seconds between the looks for commits that `wait` takes by itself while it waits (P15); None when it
    #: takes none, so that its caller has to come back every `poll_interval`.
    looks_every: float | None = None

    clock: Clock

    # -- life -------------------------------------------------------------------------------------

    @abstractmethod
    def open(self) -> None:
        """Connect, creating or migrating the store if needed. Called once before use; idempotent."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything; idempotent. What is held under a lease stays until the lease ends."""

    def describe(self) -> str:
        """Where the messages are, for the banner: an absolute path or a URL without its password."""
        return self.name

    def notes(self) -> tuple[str, ...]:
        """What is to be known of this place beyond its capabilities, for the banner; known once open."""
        return ()

    # -- producers --------------------------------------------------------------------------------

    @abstractmethod
    def submit(self, messages: Sequence[Message]) -> None:
        """Store all of these, or none. When it returns they are stored; it is idempotent per message_id.

        A future `eta` makes a message scheduled; a revoked `task_id` ends it at once as revoked.
        Raises `TooLarge`, `TransportFull`, `TransportUnavailable`, `SubmitUnknown`.
        """

    # -- workers ----------------------------------------------------------------------------------

    @abstractmethod
    def turn(self, outcomes: Sequence[Outcome], request: ReserveRequest | None) -> Turn:
        """Settle, start and reserve, in one transaction where the store can (G1, P10, P16).

        Outcomes are applied first, each fenced by its token. One outcome that cannot be stored (a result
        too large, say) is retried alone with a failure in its place and never takes the others with
        it. An idle turn, with no outcome and nothing to reserve, only reads.
        """

    def reserve(self, request: ReserveRequest) -> tuple[Delivery, ...]:
        """Take the next messages under a lease: strictly by band over all queues, then by rotation."""
        return self.turn((), request).deliveries

    def settle(self, outcomes: Sequence[Outcome]) -> tuple[Delivery, ...]:
        """Apply outcomes; return the deliveries whose lease was lost."""
        return self.turn(outcomes, None).lost

    @abstractmethod
    def start(self, deliveries: Sequence[Delivery]) -> Started:
        """Mark reserved deliveries running: one fenced transition that takes rate token and key.

        A refused one is no longer held: set aside until its token, back in its place because its queue is
        paused, ended as revoked or expired, or lost.
        """

    @abstractmethod
    def peek_max_priority(
        self,
        queues: Sequence[QueueShare],
        *,
        window: Window = ALL_BANDS,
        aging: Aging | None = None,
    ) -> int | None:
        """The highest effective priority that could be reserved now from these queues, or None.

        Counts due messages whether or not they were moved to ready; not those of a paused queue, set
        aside by a limit, expired, outside the window, or no longer yieldable (seed §7).
        """

    @abstractmethod
    def yield_reservation(self, delivery: Delivery, *, delay: float) -> bool:
        """Hand an unstarted delivery back: queued again, not before `delay` seconds, in its old place.

        `yields` + 1 and the delivery is taken back (P13); takes no token and frees no key (P18).
        False when the lease was lost or it has started.
        """

    @abstractmethod
    def extend(self, deliveries: Sequence[Delivery], lease: float) -> tuple[Delivery, ...]:
        """Renew leases to `lease` seconds from now; return those already lost."""

    @abstractmethod
    def wait(self, timeout: float, fds: Sequence[int] = ()) -> None:
        """Return when work may have come, when one of `fds` is readable, or after `timeout` seconds.

        May return early for no reason. Does not read from `fds`.
        """

    @abstractmethod
    def next_due(self, queues: Sequence[QueueShare]) -> float | None:
        """When the next message of these queues falls due (epoch seconds), if known; bounds a wait."""

    # -- the other seams --------------------------------------------------------------------------

    @property
    @abstractmethod
    def operators(self) -> Operators:
        """Depth, peek, find, revoke, purge, pause, dead letters."""

    @property
    @abstractmethod
    def coordination(self) -> Coordination:
        """Workers, commands, events, duties."""

    @property
    @abstractmethod
    def results(self) -> ResultStore:
        """The result store beside the messages."""
