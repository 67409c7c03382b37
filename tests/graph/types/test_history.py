"""History: revisions of nodes, deleted nodes, and the feed of changes."""

import pytest

from graph.execution.operation import Execution
from graph.operation.context import Context
from resolvers.lists.arguments import CursorKind, encode_cursor
from resolvers.session.budget import BudgetLimits
from resolvers.session.request import Request
from store.engine import ReadUsage
from store.model.keys import log_key
from store.model.records import Delete, Put
from tests import invariants
from tests.answers import answer_to
from tests.schemas import schema_of
from tests.systems.writing import CLASSES, DEFINITIONS, Clients, plant

CREATE = """mutation($p: AssetNodeBy, $k: String!, $a: AssetNodeAttributes!, $id: ID) {
  createAssetNode(input: {parent: $p, key: $k, name: $k, id: $id, attributes: $a}) { node { id } } }"""


@pytest.fixture
async def clients(store):
    made = Clients(store)
    yield made
    await invariants.check(store)


@pytest.fixture
async def audits(clients):
    """Equipment with an audit that was revised twice."""
    for parent, key, attributes in [
        (None, "Equipment_1", {"equipment": {}}),
        ("Equipment_1", "2026-10", {"audit": {"auditor": "Ann", "result": "OPEN"}}),
    ]:
        await clients.ask(CREATE, p=parent and {"path": parent}, k=key, a=attributes)
    for result in ("FAILED", "PASSED"):
        update = (
            f'updateAssetNode(input: {{node: {{path: "Equipment_1/2026-10"}}, attributes: {{ '
            f"audit: {{ result: {result} }} }}}})"
        )
        await clients.ask(f"mutation {{ {update} {{ node {{ id }} }} }}")
    return clients


async def audit(clients, fields):
    """What the audit of the equipment has in these fields."""
    return (await clients.ask(f'{{ audit(path: "Equipment_1/2026-10") {{ {fields} }} }}'))["audit"]


async def test_a_made_up_cursor_is_rejected(audits):
    node_id = (await audit(audits, "id"))["id"]
    changes = 'query($since: String) { changes(hierarchy: ASSET, tree: "Equipment_1", after: $since) { cursor } }'
    history = 'query($since: String) { audit(path: "Equipment_1/2026-10") { history(after: $since) { totalCount } } }'
    for position in ("abc", "-1", "1_0", " 1", "\u0663", "9" * 5_000):
        for query, *of in ((changes, CursorKind.CHANGES, "asset#Equipment_1"), (history, CursorKind.HISTORY, node_id)):
            assert (await audits.refusal(query, since=encode_cursor(*of, position)))[0] == "BAD_CURSOR"


async def test_revisions_are_spent_from_the_budget_of_nodes(audits):
    def context() -> Context:
        return Context(Request(audits.store, DEFINITIONS, BudgetLimits(5)))

    asked = " ".join(f"r{n}: atRevision(n: {n}) {{ revision }}" for n in range(1, 6))
    text = f'{{ audit(path: "Equipment_1/2026-10") {{ {asked} }} }}'
    for query, codes in ((text, {"BUDGET_EXCEEDED"}), (text.replace("r5: atRevision(n: 5) { revision }", ""), set())):
        answer = await answer_to(Execution(*schema_of(*CLASSES), context), query, allow_mutations=False)
        assert {error["extensions"]["code"] for error in answer.body.get("errors", ())} == codes


async def test_a_revision_is_of_the_level_that_the_node_had(audits):
    again = {"p": {"path": "Equipment_1"}, "k": "again", "id": "one"}
    await audits.ask(CREATE, **again, a={"audit": {"auditor": "Ann"}})
    await audits.ask('mutation { deleteAssetNode(input: {node: {path: "Equipment_1/again"}}) { node { id } } }')
    await audits.ask(CREATE, **again, a={"part": {"serialNumber": "7"}})
    found = await audits.ask(
        '{ part(path: "Equipment_1/again") { history { nodes { __typename level'
        " ... on AssetNodeRevision { auditor serialNumber } } } } }"
    )
    assert found["part"]["history"]["nodes"] == [
        {"__typename": "AssetNodeRevision", "level": "PART", "auditor": None, "serialNumber": "7"},
        {"__typename": "AssetNodeRevision", "level": "AUDIT", "auditor": "Ann", "serialNumber": None},
    ]


# -- the feed ----------------------------------------------------------------------------------------------------------

FEED = 'query($since: String, $under: Path) { changes(hierarchy: LOCATION, tree: "US", after: $since, under: $under) { '
FEED += "changes { event path from to revision } cursor hasMore } }"


async def test_a_gap_in_the_log_expires_cursors_before_it_and_is_where_the_feed_begins(clients):
    await plant(clients)
    whole = (await clients.ask(FEED))["changes"]["changes"]
    (gap,) = await clients.store.get([log_key("location#US", 4)], ReadUsage())
    first = encode_cursor(CursorKind.CHANGES, "location#US", "2")
    await clients.store.commit([Delete(log_key("location#US", 4))])
    assert (await clients.refusal(FEED, since=first))[0] == "CURSOR_EXPIRED"
    assert (await clients.refusal(FEED.replace('"US"', '"FR"'), since=first))[0] == "BAD_CURSOR"
    assert (await clients.ask(FEED))["changes"]["changes"] == whole[4:]
    await clients.store.commit([Put(gap)])
