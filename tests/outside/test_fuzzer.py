"""The fuzzer for some seconds: documents of fixed seeds over its data sets."""

import pytest

from tests.outside.fuzzer.fuzzing import run
from tests.outside.fuzzer.oracle import node_command
from tests.outside.processes import missing, place
from tests.selection import examples, until

pytestmark = pytest.mark.skipif(node_command() is None, reason="needs Node.js and tests/node_modules")


LONG = [
    pytest.param(kind, seed, marks=pytest.mark.thorough)
    for kind, seed in [("sqlite", 0), ("sqlite", 1), ("sqlite", 2), ("dynamodb", 4), ("dynamodb", 5), ("dynamodb", 7)]
]


@pytest.mark.parametrize(("kind", "seed"), [("sqlite", 5), *LONG])
def test_random_documents_get_the_answers_of_graphql_js(kind: str, seed: int) -> None:
    if reason := missing(kind):
        pytest.skip(reason)
    with place(kind) as found:
        counts = run(found, seed, until(0, 30), examples(14, 50))
    assert counts["documents"] >= 12
    assert counts["fields compared"] > 100
    assert counts["errors compared"] > 3
    assert counts["responses repeated"] > 10
