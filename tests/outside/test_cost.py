"""The dearest forms of arguments, for some seconds: no single request may take more than its bounds."""

import pytest

from tests.outside.cost import run
from tests.outside.processes import place
from tests.selection import until

pytestmark = pytest.mark.thorough


def test_no_argument_makes_a_request_dear() -> None:
    with place("sqlite") as found:
        counts = run(found, 3, until(10, 10))
    assert counts["requests measured"] >= 12
