"""A signature's options: each with its type and a size that a store has room for, or not at all (row 34)."""

from __future__ import annotations

from typing import Any

import pytest

from taskmq.policy.options import Options
from taskmq.policy.signatures import Chord


@pytest.mark.parametrize("span", [10**400, 1e300, float("nan"), float("inf"), True, "5"])
def test_a_span_that_no_store_keeps_is_left_out(span: Any) -> None:
    options = Options(
        {"countdown": span, "expires": span, "result_expires": span, "rate": ["k", span]}
    )

    assert options.eta(0.0) is None
    assert options.expires_at(0.0) is None
    assert options.seconds("result_expires") is None
    assert options.rate() is None


@pytest.mark.parametrize("count", [2**31, 2**70, 0, -1, True, 1.5, "5"])
def test_a_count_that_no_store_keeps_is_left_out(count: Any) -> None:
    options = Options({"max_deliveries": count, "concurrency": ["k", count]})

    assert options.count("max_deliveries") is None
    assert options.concurrency() is None


@pytest.mark.parametrize(("index", "size"), [(0, 2**31), (2**70, 2**71), (-1, 2), (True, 2)])
def test_a_chord_whose_counts_no_store_keeps_is_none(index: Any, size: Any) -> None:
    body = {"task": "c"}

    assert Chord.read({"key": "k", "index": index, "size": size, "body": body}) is None
    assert Chord.read({"key": "k", "index": 0, "size": 2, "body": body}) is not None
