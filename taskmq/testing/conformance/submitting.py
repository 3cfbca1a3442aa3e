"""Submit: stored when it returns, all or none, idempotent, visible when due."""

from __future__ import annotations

from typing import Any

import pytest

from taskmq.errors import PriorityError, TooLarge
from taskmq.message import ConcurrencyKey, Rate
from taskmq.states import AckMode, State
from taskmq.testing.conformance.bench import Bench, Contract


class TestSubmit(Contract):
    def test_every_field_of_a_message_arrives_as_it_was_sent(self, bench: Bench) -> None:
        sent = bench.message(
            "m1",
            task_id="any text: ünïcode, spaces",
            priority=-3,
            body=b'[[1, "\xc3\xa9"], {"x": 2}, {}]',
            content_encoding="utf-8",
            expires_at=bench.clock.now() + 3600,
            max_deliveries=9,
            ack=AckMode.LATE,
            retries=2,
            time_limit=10.5,
            soft_time_limit=9.0,
            rate=Rate("conformance.task", 0.5),
            concurrency=ConcurrencyKey("account-1", 2),
            follow='{"errbacks": []}',
            parent_id="p",
            root_id="r",
            store_result=False,
            result_expires=60.0,
            headers={"x-one": 1, "nested": {"list": [1, None, "é"]}},
        )

        bench.transport.submit([sent])

        assert bench.take().message == sent

    def test_bodies_are_bytes_and_stay_what_they_are(self, bench: Bench) -> None:
        body = bytes(range(256))

        bench.submit("raw", body=body, content_type="application/x-anything")

        received = bench.take().message
        assert received.body == body
        assert received.content_type == "application/x-anything"

    def test_submitting_a_message_id_again_changes_nothing(self, bench: Bench) -> None:
        first = bench.message("m1", priority=1)
        bench.transport.submit([first])

        bench.transport.submit([first, bench.message("m2")])
        bench.transport.submit([bench.message("m1", priority=9)])

        assert [d.message for d in bench.reserve(5)] == [first, bench.message("m2")]

    def test_a_message_that_is_held_can_not_be_submitted_again(self, bench: Bench) -> None:
        message = bench.message("m1")
        bench.transport.submit([message])
        bench.take()

        bench.transport.submit([message])

        assert bench.reserve(5) == []

    def test_live_messages_may_share_a_task_id(self, bench: Bench) -> None:
        bench.submit("m1", "m2", task_id="same")

        assert [d.message.message_id for d in bench.reserve(5)] == ["m1", "m2"]

    def test_one_message_that_is_too_large_keeps_all_out(self, bench: Bench) -> None:
        bench.make(max_body=100)
        messages = [bench.message("fits"), bench.message("large", body=b"x" * 101)]

        with pytest.raises(TooLarge):
            bench.transport.submit(messages)

        assert bench.reserve(5) == []
        assert bench.state("fits") is State.UNKNOWN

    def test_too_large_names_the_size_and_the_limit(self, bench: Bench) -> None:
        bench.make(max_body=100)

        with pytest.raises(TooLarge, match=r"(?s)101.*100"):
            bench.transport.submit([bench.message("large", body=b"x" * 101)])

    @pytest.mark.parametrize("priority", [10, -10, 99, True, "9", 1.5, None])
    def test_a_priority_out_of_range_is_refused(self, bench: Bench, priority: Any) -> None:
        with pytest.raises(PriorityError, match=r"-9"):
            bench.transport.submit([bench.message("wrong", priority=priority)])

        assert bench.state("wrong") is State.UNKNOWN

    @pytest.mark.parametrize(
        ("part", "fields"),
        [
            ("headers", {"headers": {"note": "x" * 1_000}}),
            ("follow-ups", {"follow": '{"callbacks": "' + "x" * 1_000 + '"}'}),
            ("concurrency key", {"concurrency": ConcurrencyKey("x" * 1_001)}),
            ("task_id", {"task_id": "x" * 256}),
            ("parent_id", {"parent_id": "x" * 256}),
            ("queue", {"queue": "x" * 256}),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_an_envelope_that_is_too_large_is_refused_by_the_name_of_the_part(
        self, bench: Bench, part: str, fields: dict[str, Any]
    ) -> None:
        bench.make(max_body=1000)

        with pytest.raises(TooLarge, match=part):
            bench.transport.submit([bench.message("large", **fields)])

        assert bench.state("large") is State.UNKNOWN
        assert bench.reserve(5) == []

    def test_a_body_of_exactly_the_limit_is_accepted(self, bench: Bench) -> None:
        bench.make(max_body=100)

        bench.submit("just", body=b"x" * 100)

        assert len(bench.take().message.body) == 100

    def test_submitting_nothing_is_no_error(self, bench: Bench) -> None:
        bench.transport.submit([])

        assert bench.reserve(1) == []

    def test_state_is_recorded_at_submit(self, bench: Bench) -> None:
        assert bench.state("m1") is State.UNKNOWN

        bench.submit("m1")

        assert bench.state("m1") is State.QUEUED

    def test_a_future_eta_is_not_claimable_before_it_is_due(self, bench: Bench) -> None:
        bench.submit("later", eta=bench.clock.now() + 10)

        bench.clock.advance(9.99)

        assert bench.reserve(1) == []
        assert bench.state("later") is State.SCHEDULED

    def test_a_due_eta_is_claimable(self, bench: Bench) -> None:
        bench.submit("later", eta=bench.clock.now() + 10)

        bench.clock.advance(10)

        assert bench.take().message.task_id == "later"

    def test_next_due_is_the_first_eta_of_the_queues_asked_for(self, bench: Bench) -> None:
        now = bench.clock.now()
        bench.submit("b", eta=now + 20)
        bench.submit("a", eta=now + 10, priority=-9)
        bench.submit("other", eta=now + 5, queue="elsewhere")

        assert bench.transport.next_due(bench.request().queues) == pytest.approx(now + 10)

    def test_nothing_scheduled_has_no_next_due(self, bench: Bench) -> None:
        bench.submit("now")

        assert bench.transport.next_due(bench.request().queues) is None
