"""Retry policy: number, bounds and deadline of the delays; and quantities in messages."""

import itertools

import pytest

from store import concurrency
from store.concurrency import RetryPolicy
from store.errors import quantity


def test_delays_are_random_below_a_bound_that_doubles_up_to_the_longest() -> None:
    bounds = [0.0, 0.1, 0.2, 0.4, 0.5, 0.5]
    many = [list(RetryPolicy(0.1, 0.5, attempts=len(bounds)).delays()) for _ in range(200)]
    for bound, delays in zip(bounds, zip(*many, strict=True), strict=True):
        assert bound / 2 <= max(delays) <= bound
    assert len(list(itertools.islice(RetryPolicy(1, 1).delays(), 1_000))) == 1_000


def test_no_attempt_begins_after_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(concurrency.time, "monotonic", lambda: now[0])
    begun = 0
    for _ in RetryPolicy(1, 1, deadline_seconds=5).delays():
        begun += 1
        now[0] += 2
    assert begun == 4  # at 0, 2, 4 and 6 seconds, the deadline being 5 after the first failure


def test_one_thing_is_one_and_all_others_are_many() -> None:
    assert [quantity(number, "node") for number in (0, 1, 2, 1_000)] == ["0 nodes", "1 node", "2 nodes", "1,000 nodes"]
    assert [quantity(number, "child", "children") for number in (1, 2)] == ["1 child", "2 children"]
