"""Retry policy: number, bounds and deadline of the delays."""

import itertools

import pytest

from store import retry
from store.retry import RetryPolicy


def test_delays_are_random_below_a_bound_that_doubles_up_to_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry.random, "uniform", lambda low, high: (low, high))
    assert list(RetryPolicy(0.1, 0.5, attempts=6).delays()) == [
        0.0,
        *[(0.0, bound) for bound in (0.1, 0.2, 0.4, 0.5, 0.5)],
    ]


def test_the_first_attempt_waits_for_nothing_and_none_longer_than_its_bound() -> None:
    delays = list(RetryPolicy(0.01, 0.05, attempts=100).delays())
    assert delays[0] == 0
    assert 0 < max(delays) <= 0.05


def test_without_a_number_of_attempts_there_is_no_end() -> None:
    assert len(list(itertools.islice(RetryPolicy(1, 1).delays(), 1_000))) == 1_000


def test_no_attempt_begins_after_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(retry.time, "monotonic", lambda: now[0])
    begun = 0
    for _ in RetryPolicy(1, 1, deadline_seconds=5).delays():
        begun += 1
        now[0] += 2
    assert begun == 4  # at 0, 2, 4 and 6 seconds, the deadline being 5 after the first failure
