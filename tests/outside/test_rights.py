"""Rights in a short form, with fixed seeds: what is hidden changes no byte of a response."""

import pytest

from tests.outside.processes import Engine, place
from tests.outside.rights import RIGHTS
from tests.selection import until

pytestmark = pytest.mark.thorough

KINDS = ["sqlite", "dynamodb"]


def _skip_without_engine(kind):
    if kind == "dynamodb" and Engine.binary() is None:
        pytest.skip("npm's @dynoxide/linux-x64 is missing")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_hidden_changes_no_byte_of_a_response(kind):
    _skip_without_engine(kind)
    with place(kind) as found:
        assert RIGHTS.run(found, 1, until(0, 30))
