"""Faults in a short form, with fixed seeds. In a plain run tests/writing has kills and faults of engines."""

import time

import pytest

from tests.outside.faults import PARTS
from tests.outside.processes import missing, place

SEEDS = {"faults/large-move": 3, "faults/kills": 3, "faults/full-disk": 2, "faults/engine": 3}
ONE_KIND = {"faults/full-disk": "sqlite", "faults/files": "sqlite", "faults/engine": "dynamodb"}
TRIED = [
    pytest.param(part, kind, id=f"{part.name}-{kind}")
    for part in PARTS
    for kind in ("sqlite", "dynamodb")
    if ONE_KIND.get(part.name, kind) == kind
]


@pytest.mark.thorough
@pytest.mark.parametrize(("part", "kind"), TRIED)
def test_what_the_docs_say_of_faults_holds(part, kind):
    if reason := missing(kind):
        pytest.skip(reason)
    with place(kind) as found:
        assert part.run(found, SEEDS.get(part.name, 1), time.monotonic() + 10)
