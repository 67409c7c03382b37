"""Rights in a short form, with fixed seeds: what is hidden changes no byte of a response."""

import pytest

from tests.outside.processes import missing, place
from tests.outside.rights import RIGHTS
from tests.selection import until


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("dynamodb", marks=pytest.mark.thorough)])
def test_what_is_hidden_changes_no_byte_of_a_response(kind):
    if reason := missing(kind):
        pytest.skip(reason)
    with place(kind) as found:
        assert RIGHTS.run(found, 4, until(0, 16))
