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
from tests.systems.writing import DEFINITIONS, SCHEMA, TYPES, Clients, plant

CREATE = """mutation($p: AssetNodeBy, $k: String!, $a: AssetNodeAttributes!, $id: ID) {
  createAssetNode(input: {parent: $p, key: $k, name: $k, id: $id, attributes: $a}) { node { id } } }"""


@pytest.fixture
async def clients(store):
    made = Clients(store)
    yield made
    await invariants.check(store)


@pytest.fixture
async def audits(clients):
    """Equipment with a part; an audit of each, that of the equipment revised twice."""
    for parent, key, attributes in [
        (None, "Equipment_1", {"equipment": {}}),
        ("Equipment_1", "2026-10", {"audit": {"auditor": "Ann", "result": "OPEN"}}),
        ("Equipment_1", "Motor", {"part": {}}),
        ("Equipment_1/Motor", "2026-11", {"audit": {"auditor": "Cy", "result": "PASSED"}}),
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


async def test_the_latest_audit_is_one_read_and_its_full_history_one_query_more(audits):
    reader = Clients(audits.store)
    latest = await audit(reader, "revision ... on Audit { auditor result }")
    assert latest == {"revision": 3, "auditor": "Ann", "result": "PASSED"}
    assert reader.request.reads.requests == 1
    reader = Clients(audits.store)
    whole = (await audit(reader, "history { totalCount nodes { revision result } }"))["history"]
    found = [(state["revision"], state["result"]) for state in whole["nodes"]]
    assert (whole["totalCount"], found) == (3, [(3, "PASSED"), (2, "FAILED"), (1, "OPEN")])
    assert reader.request.reads.requests == 2


@pytest.mark.parametrize("position", ["abc", "-1", "1_0", " 1", "\u0663", "9" * 5_000])
async def test_a_made_up_cursor_is_rejected(audits, position):
    made_up = encode_cursor(CursorKind.CHANGES, "asset#Equipment_1", position)
    query = 'query($since: String) { changes(hierarchy: ASSET, tree: "Equipment_1", after: $since) { cursor } }'
    assert (await audits.refusal(query, since=made_up))[0] == "BAD_CURSOR"
    made_up = encode_cursor(CursorKind.HISTORY, (await audit(audits, "id"))["id"], position)
    query = 'query($since: String) { audit(path: "Equipment_1/2026-10") { history(after: $since) { totalCount } } }'
    assert (await audits.refusal(query, since=made_up))[0] == "BAD_CURSOR"


async def test_revisions_are_spent_from_the_budget_of_nodes(audits):
    def context() -> Context:
        return Context(Request(audits.store, DEFINITIONS, BudgetLimits(5)))

    asked = " ".join(f"r{n}: atRevision(n: {n}) {{ revision }}" for n in range(1, 6))
    text = f'{{ audit(path: "Equipment_1/2026-10") {{ {asked} }} }}'
    answer = await answer_to(Execution(SCHEMA, TYPES, context), text, allow_mutations=False)
    assert {error["extensions"]["code"] for error in answer.body["errors"]} == {"BUDGET_EXCEEDED"}
    four = text.replace("r5: atRevision(n: 5) { revision }", "")
    assert "errors" not in (await answer_to(Execution(SCHEMA, TYPES, context), four, allow_mutations=False)).body


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
