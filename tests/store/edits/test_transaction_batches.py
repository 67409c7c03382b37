"""Changes cut into transactions by count and bytes."""

import pytest

from store.edits.transaction import Step, in_transactions
from store.model.items import MAX_BATCH_BYTES, Delete
from store.model.keys import Key


def step(name: str, changes: int = 1, size: int = 1) -> Step[str]:
    return Step(name, [Delete(Key(name, str(number))) for number in range(changes)], size)


HALF = MAX_BATCH_BYTES // 2


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], []),
        ([step("a"), step("b"), step("c"), step("d")], ["abc", "d"]),
        ([step("a", 2), step("b", 2), step("c")], ["a", "bc"]),
        ([step("a", size=HALF), step("b", size=HALF), step("c", size=HALF)], ["ab", "c"]),
        ([step("a"), step("b", size=3 * HALF), step("c")], ["a", "b", "c"]),
        ([step("a", 0), step("b", 3), step("c", 0)], ["abc"]),
        ([step("a", 0)], ["a"]),
    ],
)
def test_a_transaction_has_as_many_steps_as_fit(steps: list[Step[str]], expected: list[str]) -> None:
    batches = list(in_transactions(steps, 3))
    assert ["".join(names) for _, names in batches] == expected
    assert [change for changes, _ in batches for change in changes] == [one for s in steps for one in s.changes]
