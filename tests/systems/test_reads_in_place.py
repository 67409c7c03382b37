"""Fields in place: those of all nodes of a response level are one batch of reads."""

import pytest

from store.engine.protocol import Store
from tests.model import Ground
from tests.systems.asking import Client, Reply, plant

pytestmark = pytest.mark.both_stores

SIZES = (1, 50, 500)
HISTORY = "history(first: 2) { nodes { revision name } }"
REVISION = "atRevision(n: 1) { revision name }"
KEYS = 100  # of one BatchGetItem


async def level(store: Store, size: int, field: str, *, revisions: int) -> Reply:
    """A field of all children of a node, each of which was written so many times."""
    for revision in range(1, revisions + 1):
        children = [((str(size), f"{n:03}"), "AREA", f"{revision} {n}") for n in range(size)]
        await plant(store, Ground, [((str(size),), "AREA"), *children])
    query = f'{{ ground(path: "{size}") {{ children {{ nodes {{ {field} }} }} }} }}'
    reply = await Client(store, Ground).ask(query)
    nodes = reply.data["ground"]["children"]["nodes"]
    first = {"revision": 1, "name": "1 0"}
    newest = [{"revision": n, "name": f"{n} 0"} for n in range(revisions, 0, -1)]
    assert not reply.errors
    assert len(nodes) == size
    assert nodes[0] in ({"atRevision": first}, {"history": {"nodes": newest}})
    return reply


@pytest.mark.parametrize("field", [HISTORY, REVISION])
async def test_the_present_states_of_any_number_of_nodes_take_no_request(store, field):
    plain = await level(store, 2, REVISION, revisions=1)
    found = [await level(store, size, field, revisions=1) for size in SIZES]
    assert [(one.requests, one.rounds) for one in found] == [(plain.requests, plain.rounds)] * len(SIZES)


@pytest.mark.parametrize("field", [HISTORY, REVISION])
async def test_former_states_of_any_number_of_nodes_take_one_round_and_a_request_for_each_hundred(store, field):
    plain = await level(store, 2, REVISION, revisions=1)
    for size in SIZES:
        found = await level(store, size, field, revisions=2)
        assert found.requests == plain.requests + -(-size // KEYS)
        assert found.rounds == plain.rounds + 1
