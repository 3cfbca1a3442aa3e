"""Which expired leases are really lost: two looks apart, and not after a jump of the clock (I2)."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import example, given, settings
from hypothesis import strategies as st

from taskmq.clock import FakeClock
from taskmq.policy.reaping import LeaseWatch, duty_is_free

QUICK = settings(max_examples=100, deadline=None)
LEASE = 30.0
KEY = (1, 100)


@dataclass
class Looker:
    """A reaper with its clock."""

    clock: FakeClock
    watch: LeaseWatch

    @classmethod
    def new(cls) -> Looker:
        return cls(FakeClock(), LeaseWatch(LEASE))

    def look(self, *expired: tuple[int, int], after: float = 0.0) -> list[tuple[int, int]]:
        self.clock.advance(after)
        return self.watch.lost(expired, now=self.clock.now(), monotonic=self.clock.monotonic())


def test_lease_is_lost_at_the_second_look_a_third_of_a_lease_later() -> None:
    reaper = Looker.new()

    assert reaper.look(KEY) == []
    assert reaper.look(KEY, after=LEASE / 3 - 0.1) == []
    assert reaper.look(KEY, after=0.1) == [KEY]


def test_renewal_between_two_looks_starts_over() -> None:
    reaper = Looker.new()

    reaper.look(KEY)
    assert reaper.look(after=LEASE) == []
    assert reaper.look(KEY, after=LEASE) == []
    assert reaper.look(KEY, after=LEASE) == [KEY]


def test_new_delivery_of_the_same_message_is_another_lease() -> None:
    reaper = Looker.new()

    reaper.look(KEY)

    assert reaper.look((1, 101), after=LEASE) == []


def test_clock_that_jumps_forward_expires_nothing_for_one_whole_lease() -> None:
    reaper = Looker.new()
    reaper.look()
    reaper.clock.step(3600)

    assert reaper.look(KEY, after=1) == []
    assert reaper.look(KEY, after=LEASE - 1) == []
    assert reaper.look(KEY, after=1) == [KEY]


def test_jump_between_two_looks_forgets_the_first() -> None:
    reaper = Looker.new()
    reaper.look(KEY)
    reaper.clock.step(-60)

    assert reaper.look(KEY, after=LEASE / 2) == []
    assert reaper.look(KEY, after=LEASE) == [KEY]


def test_suspended_machine_counts_as_a_jump() -> None:
    """Wall time goes on while the machine sleeps, monotonic time does not."""
    reaper = Looker.new()
    reaper.look()
    reaper.clock.step(600)

    assert reaper.look(KEY) == []


def test_drift_below_a_second_is_no_jump() -> None:
    reaper = Looker.new()
    reaper.look(KEY)
    reaper.clock.step(0.9)

    assert reaper.look(KEY, after=LEASE / 3) == [KEY]


def test_several_leases_are_told_apart() -> None:
    reaper = Looker.new()

    reaper.look((1, 1), (2, 2))
    assert reaper.look((1, 1), (3, 3), after=LEASE / 3) == [(1, 1)]
    assert reaper.look((3, 3), (1, 1), after=LEASE / 3) == [(1, 1), (3, 3)]


def test_a_lease_is_never_longer_than_it_was_taken_for() -> None:
    """The wall clock went back before the first look, so that its deadline is an hour away."""
    clock, watch = FakeClock(), LeaseWatch(LEASE)
    until = clock.now() + LEASE
    clock.step(-3600)

    def ended(length: float) -> bool:
        held = [(*KEY, until, length)]
        return KEY in watch.expired(held, now=clock.now(), monotonic=clock.monotonic())

    assert not ended(LEASE)
    clock.advance(LEASE - 1)
    assert not ended(LEASE)
    clock.advance(1)
    assert ended(LEASE)


def test_a_duty_is_free_when_its_time_is_up_or_cannot_be_right() -> None:
    assert not duty_is_free(until=1010.0, ttl=10.0, now=1000.0)
    assert duty_is_free(until=1010.0, ttl=10.0, now=1010.0)
    assert duty_is_free(until=1010.0, ttl=10.0, now=900.0)


looks = st.lists(
    st.tuples(
        st.floats(0, LEASE),
        st.sampled_from([0.0, 0.0, 0.0, 0.5, 3600.0, -3600.0]),
        st.sets(st.integers(1, 3)),
    ),
    max_size=20,
)


@given(looks)
@example([(1.2553899292053128, 0.0, set()), (0.0, 3600.0, {1}), (30.0, 0.0, {1})])
@QUICK
def test_lost_means_seen_expired_at_two_looks_without_a_break(
    steps: list[tuple[float, float, set[int]]],
) -> None:
    reaper = Looker.new()
    history: list[tuple[float, bool, set[int]]] = []
    for wait, jump, expired in steps:
        reaper.clock.step(jump)
        lost = reaper.look(*((n, n) for n in expired), after=wait)
        history.append((reaper.clock.monotonic(), abs(jump) > 1 and bool(history), expired))

        now = history[-1][0]
        last_jump = max((at for at, jumped, _ in history if jumped), default=None)
        for number in range(1, 4):
            since = None
            for at, jumped, seen in history:
                if number not in seen:
                    since = None
                elif jumped or since is None:
                    since = at
            due = since is not None and now - since >= LEASE / 3
            # Added and not subtracted, as the product does: the two differ by a rounding.
            settled = last_jump is None or now >= last_jump + LEASE
            assert ((number, number) in lost) is (due and settled)
