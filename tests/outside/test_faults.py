"""Faults in a short form, with fixed seeds."""

import pytest

from tests.outside.faults import PARTS
from tests.outside.processes import Engine, place
from tests.selection import until

SEEDS = {"faults/large-move": 3, "faults/kills": 3, "faults/full-disk": 2, "faults/engine": 3}
ONE_KIND = {"faults/full-disk": "sqlite", "faults/files": "sqlite", "faults/engine": "dynamodb"}
SHORT = ("faults/kills", "sqlite")
TRIED = [
    pytest.param(part, kind, id=f"{part.name}-{kind}", marks=[] if (part.name, kind) == SHORT else pytest.mark.thorough)
    for part in PARTS
    for kind in ("sqlite", "dynamodb")
    if ONE_KIND.get(part.name, kind) == kind
]


@pytest.mark.parametrize(("part", "kind"), TRIED)
def test_what_the_docs_say_of_faults_holds(part, kind):
    if kind == "dynamodb" and Engine.binary() is None:
        pytest.skip("npm's @dynoxide/linux-x64 is missing")
    with place(kind) as found:
        assert part.run(found, SEEDS.get(part.name, 1), until(0, 5))
