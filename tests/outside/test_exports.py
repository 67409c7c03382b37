"""Exports, imports and copies of extreme values in a short form, with fixed seeds."""

import pytest

from tests.outside.exports import EXPORTS
from tests.outside.processes import Engine, place
from tests.selection import until

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("kind", ["sqlite", "dynamodb"])
def test_what_is_exported_comes_back(kind):
    if kind == "dynamodb" and Engine.binary() is None:
        pytest.skip("npm's @dynoxide/linux-x64 is missing")
    with place(kind) as found:
        assert EXPORTS.run(found, 1, until(0, 10))
