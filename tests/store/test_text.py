"""Formatting for messages: quantities."""

import pytest

from store.text import quantity


@pytest.mark.parametrize(
    ("number", "told"), [(0, "0 nodes"), (1, "1 node"), (2, "2 nodes"), (1_000, "1,000 nodes"), (-1, "-1 nodes")]
)
def test_one_thing_is_one_and_all_others_are_many(number, told):
    assert quantity(number, "node") == told


def test_an_odd_plural_is_said():
    assert [quantity(number, "child", "children") for number in (1, 2)] == ["1 child", "2 children"]
