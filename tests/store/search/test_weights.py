"""Weights: their order as text is that of the numbers, the greatest first."""

import re
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from store.search.word_items import WEIGHT, descending

NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e125, max_value=1e125),
    st.decimals(-1000, 1000, places=3).map(str),
)
AFTERWARDS = st.text(st.sampled_from("01239!#:a"), max_size=3)  # of a sort key


def number_of(stored: int | float | str) -> Decimal:
    return Decimal(str(stored))


@given(NUMBERS, NUMBERS, AFTERWARDS, AFTERWARDS)
def test_texts_are_in_the_order_of_numbers_whatever_follows(one, other, after_one, after_other) -> None:
    if number_of(one) > number_of(other):
        assert (descending(one) + after_one).encode() < (descending(other) + after_other).encode()
    elif number_of(one) == number_of(other):
        assert descending(one) == descending(other)


ROUND = st.builds(lambda digits, zeros: digits * 10**zeros, st.integers(-(10**6), 10**6), st.integers(0, 20))


@given(st.integers(-(2**63), 2**63 - 1) | ROUND)
@example(1)
@example(10**18 - 1)
@example(10**18)
def test_a_whole_number_has_the_same_text_as_a_decimal(number) -> None:
    assert descending(number) == descending(str(number)) == descending(f"{number}.0")


@given(NUMBERS)
def test_each_matches_the_pattern(number) -> None:
    assert re.fullmatch(WEIGHT, descending(number))


@pytest.mark.parametrize("value", [None, True, "x", "NaN", "Infinity", "1e999999", [], {}, 0, -0.0, "0.00"])
def test_what_is_no_number_counts_as_zero(value: object) -> None:
    assert descending(value) == descending(0)
    assert descending(1) < descending(value) < descending(-1)
