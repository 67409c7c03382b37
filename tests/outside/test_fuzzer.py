"""The fuzzer for some seconds: documents of fixed seeds over both data sets."""

import pytest

from tests.outside.fuzzer.fuzzing import run
from tests.outside.fuzzer.oracle import node_command
from tests.outside.processes import missing, place
from tests.selection import until

pytestmark = pytest.mark.skipif(node_command() is None, reason="needs Node.js and tests/node_modules")


LONG = [
    pytest.param(kind, seed, marks=pytest.mark.thorough)
    for kind, seed in [("sqlite", 1), ("dynamodb", 2), ("dynamodb", 3)]
]


@pytest.mark.parametrize(("kind", "seed"), [("sqlite", 0), *LONG])
def test_random_documents_get_the_answers_of_graphql_js(kind: str, seed: int) -> None:
    if reason := missing(kind):
        pytest.skip(reason)
    with place(kind) as found:
        counts = run(found, seed, until(0, 30))
    assert counts["documents"] >= 50
    assert counts["fields compared"] > 100
