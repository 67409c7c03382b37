"""Parts in a short form, with fixed seeds: of a thorough run; a plain one has `tests/writing` and `tests/rights`."""

import pytest

from tests.outside.cost import PART as COST
from tests.outside.exports import EXPORTS
from tests.outside.faults import PARTS
from tests.outside.processes import missing, place
from tests.outside.rights import RIGHTS
from tests.selection import until

SEEDS = {"faults/large-move": 3, "faults/kills": 3, "faults/full-disk": 2, "faults/engine": 3, "cost": 3, "rights": 4}
SECONDS = {"rights": (0, 16), "exports": (0, 20), "cost": (10, 40)}
ONE_KIND = {"faults/full-disk": "sqlite", "faults/files": "sqlite", "faults/engine": "dynamodb", "cost": "sqlite"}
TRIED = [
    pytest.param(part, kind, id=f"{part.name}-{kind}", marks=pytest.mark.thorough)
    for part in (RIGHTS, COST, EXPORTS, *PARTS)
    for kind in ("sqlite", "dynamodb")
    if ONE_KIND.get(part.name, kind) == kind
]


@pytest.mark.parametrize(("part", "kind"), TRIED)
def test_what_the_docs_promise_holds(part, kind):
    if reason := missing(kind):
        pytest.skip(reason)
    with place(kind) as found:
        assert part.run(found, SEEDS.get(part.name, 1), until(*SECONDS.get(part.name, (10, 10))))
