"""The dearest forms of arguments, for some seconds: no single request may take more than its bounds."""

import time

from tests.outside.cost import run
from tests.outside.processes import place


def test_no_argument_makes_a_request_dear() -> None:
    with place("sqlite") as found:
        counts = run(found, 3, time.monotonic() + 10)
    assert counts["requests measured"] >= 12
