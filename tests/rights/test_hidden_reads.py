"""Hidden nodes cost as much as missing ones: the same reads of the store, and the same answers."""

import json
from itertools import product

import pytest

from graph.hierarchies.locations import Location
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from tests.rights.asking import Server, caller
from tests.stores import ReadRecorder

TREES = [
    ("US", "COUNTRY"), ("US/NE", "STATE"), ("US/NE/Omaha", "CITY"), ("US/NE/Lincoln", "CITY"), ("US/MO", "STATE"),
    ("US/MO/Joplin", "CITY"), ("US/MO/Old", "CITY"), ("US/MO/Gone", "CITY"), ("US/MO/Away", "CITY"),
    ("US/MO/Other", "CITY"), ("FR", "COUNTRY"), ("FR/Paris", "CITY"),
]  # fmt: skip
ALL = caller("write:location")
NE = caller("read:location/US/NE", "write:location/US/NE/Omaha")


def location_id(path: str) -> str:
    return "location:" + path.replace("/", "-")


RENAME = 'mutation { moveLocation(input: {node: {path: "US/MO/Old"}, key: "New"}) { node { id } } }'
RENAME_OTHER = 'mutation { moveLocation(input: {node: {path: "US/MO/Other"}, key: "Another"}) { node { id } } }'
MOVE = 'mutation { moveLocation(input: {node: {path: "US/MO/Away"}, to: {parent: {path: "FR"}}}) { node { id } } }'
DELETE = 'mutation { deleteLocation(input: {node: {path: "US/MO/Gone"}}) { node { id } } }'

PATHS = [
    ("US/MO/Joplin", "US/MO/Nowhere"), ("FR", "XX"), ("US/MO/Gone/below", "US/MO/Nowhere/below"),
    ("US/MO/Old", "US/MO/Nowhere"), ("US/MO/Away", "US/MO/Nowhere"),
]  # fmt: skip
IDS = [(location_id(path), location_id("US/MO/Nowhere")) for path in ("US/MO/Joplin", "FR", "US/MO/Old", "US/MO/Gone")]
SEEN = '{ location(path: "US/NE/Omaha") { id ancestors { path } children { totalCount } } }'

BY_PATH = {
    "location": "query($it: Path!) { location(path: $it) { id } }",
    "level": "query($it: Path!) { city(path: $it) { name ancestors { id } children { totalCount } } }",
    "paths": 'query($it: Path!) { locationsByPath(paths: [$it, "US/MO/Other", "US/MO/Never"]) { id } }',
    "entity": 'query($it: String!) { _entities(representations: [{__typename: "City", path: $it}]) { __typename } }',
    "search": 'query($it: Path!) { searchLocations(text: "om", under: $it) { complete nodes { id } } }',
    "near": """query($it: Path!) {
      locationsNear(latitude: 1, longitude: 1, under: $it) { complete nodes { id } } }""",
    "beside a seen one": 'query($it: Path!) { location(path: $it) { id } seen: location(path: "US/NE/Omaha") { id } }',
    "changes": 'query($it: Path!) { changes(hierarchy: LOCATION, tree: "US", under: $it) { changes { path } } }',
    "update": 'mutation($it: Path!) { updateLocation(input: {node: {path: $it}, name: "n"}) { node { id } } }',
    "rename": 'mutation($it: Path!) { moveLocation(input: {node: {path: $it}, key: "n"}) { node { id } } }',
    "delete": "mutation($it: Path!) { deleteLocation(input: {node: {path: $it}, policy: CASCADE}) { node { id } } }",
    "reorder": "mutation($it: Path!) { moveLocation(input: {node: {path: $it}, position: {last: "
    "true}}) { node { id } } }",
    "move": "mutation($it: Path!) { moveLocation(input: {node: {path: $it}, to: {parent: {path: "
    '"US/NE/Omaha"}}}) { node { id } } }',
    "move there": 'mutation($it: Path!) { moveLocation(input: {node: {path: "US/NE/Omaha"}, to: '
    "{parent: {path: $it}}}) { node { id } } }",
    "place": 'mutation($it: Path!) { moveLocation(input: {node: {path: "US/NE/Omaha"}, position: '
    "{before: {path: $it}}}) { node { id } } }",
    "create": """mutation($it: Path!) {
      createLocation(input: {parent: {path: $it}, key: "n", name: "n", attributes: {postalCode: {}}}) { node {
        id } } }""",
    "dry run": """mutation($it: Path!) {
      deleteLocation(input: {node: {path: $it}, policy: CASCADE}, dryRun: true) { plan { nodes } } }""",
}
BY_ID = {
    "location": "query($it: ID!) { location(id: $it) { name } }",
    "level": "query($it: ID!) { city(id: $it) { name ancestors { id } history { totalCount } } }",
    "node": "query($it: ID!) { node(id: $it) { id } }",
    "nodes": "query($it: ID!) { nodes(ids: [$it, $it]) { id } }",
    "beside a seen one": 'query($it: ID!) { node(id: $it) { id } location(path: "US/NE/Omaha") { id } }',
    "beside another": 'query($it: ID!) { node(id: $it) { id } other: node(id: "location:nowhere") { id } }',
    "entity": 'query($it: ID!) { _entities(representations: [{__typename: "City", id: $it}]) { __typename } }',
    "deleted": "query($it: ID!) { deletedNode(id: $it) { deletedAt } }",
    "create": """mutation($it: ID!) {
      createLocation(input: {parent: {path: "US/NE/Omaha"}, key: "n", name: "n", id: $it, attributes:
        {postalCode: {}}}) {
        node { id } } }""",
    "update once": """mutation($it: ID!) {
      updateLocation(input: {node: {id: $it}, name: "n"}, idempotencyKey: "k") { node { id } } }""",
    "create below": """mutation($it: ID!) { createLocation(input: {parent: {id: $it}, key: "n", name: "",
      attributes: {postalCode: {}}}, idempotencyKey: "once") { node { id } } }""",
    "move": """mutation($it: ID!) {
      moveLocation(input: {node: {id: $it}, to: {parent: {path: "US/NE/Omaha"}}, key: " "})
      { node { id } } }""",
    "move there": """mutation($it: ID!) { moveLocation(input: {node: {path: "US/NE/Omaha"}, to: {parent: {id: $it}},
      key: " ", position: {after: {id: $it}}, expectedRevision: 7}) { node { id } } }""",
    "move beside": """mutation($it: ID!) { moveLocation(input: {node: {path: "US/NE/Omaha"}, key: " ",
      position: {after: {id: $it}}}) { node { id } } }""",
    "delete": "mutation($it: ID!) { deleteLocation(input: {node: {id: $it}, policy: REPARENT}) { node { id } } }",
}


@pytest.fixture
async def planted(store):
    """A store with nodes whose ids are made of their paths, so that ids of no nodes look the same, after some edits."""
    wanted, outcome = ImportPlan(Location.definition()), LoadResult()
    for number, (path, level) in enumerate(TREES, start=1):
        wanted.take(Row(number, path.split("/"), [Part(level, None, path.replace("/", "-"))]))
    await load(store, wanted, outcome)
    assert not outcome.rejections
    server = Server(store, Location)
    for mutation in (RENAME, RENAME_OTHER, MOVE, DELETE):
        assert "errors" not in await server.write(ALL, mutation)
    return store


async def asked(store, query, it, before):
    """What a new server reads of the store, and answers, each time that a caller asks something twice, and once more
    where the response may be cached; `before` is what somebody asks first who may see everything, when all that the
    caller may see is known already.
    """
    witness = ReadRecorder(store)
    server = Server(witness, Location)
    if before is not None:
        await server.write(NE, SEEN)
        await server.write(ALL, before, it=it)
    told = []
    for blanks in ("", " ") if query.startswith("mutation") else ("", " ", " "):
        witness.keys, witness.spans, witness.counts = [], [], []
        answer = json.dumps(await server.write(NE, query + blanks, it=it)).replace(it, "IT")
        told.append((len(witness.keys), len(witness.spans), len(witness.counts), answer))
    return told


async def differences(store, queries, pairs):
    """The asks whose reads or answers tell what is hidden, as names of queries with what is hidden."""
    told, of_absent = {}, {}
    for (name, query), (hidden, absent), before in product(queries.items(), pairs, (None, queries["location"])):
        if before and query.startswith("mutation"):  # what is kept is not for those who write
            continue
        if (asks := (name, absent, before)) not in of_absent:
            of_absent[asks] = await asked(store, query, absent, before)
        found = await asked(store, query, hidden, before)
        if found != of_absent[asks]:
            told[name, hidden, "asked before" if before else "not asked before"] = found, of_absent[asks]
    return told


async def test_a_hidden_path_costs_the_reads_of_a_missing_one(planted):
    assert await differences(planted, BY_PATH, PATHS) == {}


async def test_a_hidden_id_costs_the_reads_of_an_unknown_one(planted):
    assert await differences(planted, BY_ID, IDS) == {}


@pytest.mark.parametrize("units", [1, 2, 3, 4])
async def test_a_hidden_path_meets_each_limit_where_a_missing_one_does(planted, units):
    """Also where the same former node has two of the paths, and its record is read once."""
    for query in (BY_PATH["location"], BY_PATH["paths"], BY_PATH["search"]):
        told = {}
        for it in ("US/MO/Nowhere", *[hidden for hidden, _ in PATHS]):
            server = Server(planted, Location, read_units=units)
            told[it] = json.dumps(await server.write(NE, query, it=it)).replace(it, "IT")
        assert len(set(told.values())) == 1, (units, query, told)
