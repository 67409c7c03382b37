"""Dataloaders: repeated keys, failing keys, empty batches."""

import asyncio

import pytest

from resolvers.dataloaders import Loaders
from resolvers.planner import list_request
from resolvers.planning.relations import ConnectionArguments, NoSelection, Relation, RelationKind
from resolvers.session.request import Request
from store.engine.protocol import Store
from store.errors import BadCursor
from tests.model import Ground, Model
from tests.recorded_reads import ReadRecorder

pytestmark = pytest.mark.both_stores

MODEL = Model("ground", {("r",): "AREA", ("r", "a"): "AREA", ("r", "a", "p"): "PLOT", ("r", "b"): "AREA"})
ROOT = MODEL.nodes["r",]


@pytest.fixture
async def loaders(store: Store) -> Loaders:
    await MODEL.plant(store)
    return Loaders(Request(ReadRecorder(store), {"ground": Ground.definition()}))


def relation(kind: RelationKind = RelationKind.CHILDREN, **window: object) -> Relation:
    return Relation(kind, ConnectionArguments(**window), NoSelection())  # type: ignore[arg-type]


async def test_a_list_loaded_twice_is_read_once_and_spent_twice(loaders):
    wanted = relation()
    left = loaders.request.budget.nodes_left
    first, second = await asyncio.gather(
        loaders.page.load(list_request(ROOT, wanted)), loaders.page.load(list_request(ROOT, wanted))
    )
    later = await loaders.page.load(list_request(ROOT, wanted))
    assert first.records == second.records == later.records
    assert len(loaders.request.store.spans) == 1
    assert loaders.request.budget.nodes_left == left - 3 * len(first.records)


async def test_an_error_fails_only_its_list_of_a_batch(loaders):
    good, bad = relation(), relation(after="no cursor of this list")
    pages = await asyncio.gather(
        *[loaders.page.load(list_request(ROOT, one)) for one in (good, bad)], return_exceptions=True
    )
    assert [record.path for record in pages[0].records] == [("r", "a"), ("r", "b")]
    assert isinstance(pages[1], BadCursor)


async def test_equal_arguments_in_two_fields_are_one_read(loaders):
    one, other = await asyncio.gather(*[loaders.page.load(list_request(ROOT, relation(first=1))) for _ in range(2)])
    assert one.records == other.records
    assert len(loaders.request.store.spans) == 1


async def test_an_empty_batch_reads_nothing(loaders):
    assert await loaders.page.load_many([]) == []
    assert await loaders.node.load_many([]) == []
    assert (loaders.request.store.spans, loaders.request.store.keys) == ([], [])


async def test_ancestors_of_many_nodes_are_one_read_of_each_key(loaders):
    up = relation(RelationKind.ANCESTORS)
    leaves = [MODEL.nodes["r", "a", "p"], MODEL.nodes["r", "a"], MODEL.nodes["r", "b"], ROOT]
    found = await loaders.ancestors.load_many([(leaf, up) for leaf in leaves])
    assert [[one.path for one in line] for line in found] == [[("r",), ("r", "a")], [("r",)], [("r",)], []]
    assert not loaders.request.store.repeated
