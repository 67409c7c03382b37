"""Exports, imports and copies of extreme values in a short form, with fixed seeds."""

import pytest

from tests.outside.exports import EXPORTS
from tests.outside.processes import missing, place
from tests.selection import until

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("kind", ["sqlite", "dynamodb"])
def test_what_is_exported_comes_back(kind):
    if reason := missing(kind):
        pytest.skip(reason)
    with place(kind) as found:
        assert EXPORTS.run(found, 1, until(0, 20))
