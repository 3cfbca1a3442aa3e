"""The conformance suite: what every transport must do, importable by whoever writes one.

A test module of a transport defines one pytest fixture and imports the tests::

    import pytest
    from taskmq.testing.conformance import *
    from taskmq.transports.base import Settings

    @pytest.fixture
    def make_transport(tmp_path):
        def make(clock, random, **settings):
            return MyTransport(Settings(**settings), clock=clock, random=random)
        return make

Each call of `make` gives a new, empty transport that is not open yet. What a transport says it cannot do
(`Capabilities`) is skipped, everything else must pass. Needs pytest.
"""

from __future__ import annotations

import pytest

_GROUPS = (
    "aging",
    "bench",
    "concurrency",
    "coordinating",
    "dead_letters",
    "ending",
    "holding",
    "keys",
    "leases",
    "operating",
    "order",
    "peeking",
    "rates",
    "results",
    "settling",
    "sharing",
    "submitting",
    "waiting",
    "workflows",
    "yielding",
)
# Before they are imported: so that a failing assert shows its values as in a test module.
pytest.register_assert_rewrite(*(f"{__name__}.{group}" for group in _GROUPS))

from taskmq.testing.conformance.aging import TestAging  # noqa: E402
from taskmq.testing.conformance.bench import Bench, Contract, MakeTransport  # noqa: E402
from taskmq.testing.conformance.concurrency import TestThreads  # noqa: E402
from taskmq.testing.conformance.coordinating import TestCoordination  # noqa: E402
from taskmq.testing.conformance.dead_letters import TestDeadLetters  # noqa: E402
from taskmq.testing.conformance.ending import TestExpiry, TestFollowing, TestRevoke  # noqa: E402
from taskmq.testing.conformance.holding import TestHolding, TestStart  # noqa: E402
from taskmq.testing.conformance.keys import TestConcurrencyKey  # noqa: E402
from taskmq.testing.conformance.leases import TestFencing, TestLeases  # noqa: E402
from taskmq.testing.conformance.operating import (  # noqa: E402
    TestDepth,
    TestFind,
    TestPause,
    TestPreview,
    TestPurge,
)
from taskmq.testing.conformance.order import TestOrder  # noqa: E402
from taskmq.testing.conformance.peeking import TestPeek  # noqa: E402
from taskmq.testing.conformance.rates import TestRateLimit  # noqa: E402
from taskmq.testing.conformance.results import TestResults  # noqa: E402
from taskmq.testing.conformance.settling import (  # noqa: E402
    TestBatch,
    TestBury,
    TestFinish,
    TestRelease,
    TestReport,
    TestRetry,
)
from taskmq.testing.conformance.sharing import TestBudgets, TestWeights  # noqa: E402
from taskmq.testing.conformance.submitting import TestSubmit  # noqa: E402
from taskmq.testing.conformance.waiting import TestWait  # noqa: E402
from taskmq.testing.conformance.workflows import TestChord  # noqa: E402
from taskmq.testing.conformance.yielding import TestYield  # noqa: E402

__all__ = [
    "TestSubmit",
    "TestOrder",
    "TestWeights",
    "TestBudgets",
    "TestHolding",
    "TestStart",
    "TestYield",
    "TestPeek",
    "TestLeases",
    "TestFencing",
    "TestFinish",
    "TestRelease",
    "TestRetry",
    "TestBury",
    "TestReport",
    "TestBatch",
    "TestChord",
    "TestRateLimit",
    "TestConcurrencyKey",
    "TestExpiry",
    "TestRevoke",
    "TestFollowing",
    "TestAging",
    "TestDepth",
    "TestPreview",
    "TestFind",
    "TestPurge",
    "TestPause",
    "TestDeadLetters",
    "TestCoordination",
    "TestResults",
    "TestWait",
    "TestThreads",
    "Bench",
    "Contract",
    "MakeTransport",
]
