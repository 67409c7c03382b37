"""Hidden nodes cost as much as missing ones: the same reads of the store, and the same time.

Times are compared on SQLite alone, where a read takes next to none; an engine's own times tell what it found.
"""

import asyncio
import http.client
import json
import math
import random
import time
from collections.abc import Iterator, Sequence
from itertools import chain, product
from statistics import median
from urllib.parse import urlsplit

import pytest

from graph.hierarchies.locations import Location
from store.api_keys import add_key, new_key
from store.connect import open_store
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from tests import servers
from tests.recorded_reads import ReadRecorder
from tests.rights.asking import Server, caller

TREES = [
    ("US", "COUNTRY"), ("US/NE", "STATE"), ("US/NE/Omaha", "CITY"), ("US/NE/Lincoln", "CITY"), ("US/MO", "STATE"),
    ("US/MO/Joplin", "CITY"), ("US/MO/Old", "CITY"), ("US/MO/Gone", "CITY"), ("US/MO/Away", "CITY"),
    ("US/MO/Other", "CITY"), ("FR", "COUNTRY"), ("FR/Paris", "CITY"),
]  # fmt: skip
ALL = caller("write:location")
NE = caller("read:location/US/NE", "write:location/US/NE/Omaha")


def location_id(path: str) -> str:
    return "location:" + path.replace("/", "-")


async def plant(store, rows):
    """Load nodes whose ids are made of their paths, so that ids of no nodes can look the same."""
    wanted, outcome = ImportPlan(Location.definition()), LoadResult()
    for number, (path, level) in enumerate(rows, start=1):
        wanted.take(Row(number, path.split("/"), [Part(level, None, path.replace("/", "-"))]))
    await load(store, wanted, outcome)
    assert not outcome.rejections


# -- reads -------------------------------------------------------------------------------------------------------------

RENAME = 'mutation { renameLocation(path: "US/MO/Old", key: "New") { node { id } } }'
RENAME_OTHER = 'mutation { renameLocation(path: "US/MO/Other", key: "Another") { node { id } } }'
MOVE = 'mutation { moveLocation(path: "US/MO/Away", to: "FR") { node { id } } }'
DELETE = 'mutation { deleteLocation(path: "US/MO/Gone") { node { id } } }'

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
    "update": 'mutation($it: Path!) { updateLocation(path: $it, name: "n") { node { id } } }',
    "rename": 'mutation($it: Path!) { renameLocation(path: $it, key: "n") { node { id } } }',
    "delete": "mutation($it: Path!) { deleteLocation(path: $it, policy: CASCADE) { node { id } } }",
    "reorder": "mutation($it: Path!) { reorderLocation(path: $it, last: true) { node { id } } }",
    "move": 'mutation($it: Path!) { moveLocation(path: $it, to: "US/NE/Omaha") { node { id } } }',
    "move there": 'mutation($it: Path!) { moveLocation(path: "US/NE/Omaha", to: $it) { node { id } } }',
    "place": 'mutation($it: Path!) { reorderLocation(path: "US/NE/Omaha", before: $it) { node { id } } }',
    "create": """mutation($it: Path!) {
      createLocation(parent: $it, key: "n", name: "n", attributes: {postalCode: {}}) { node { id } } }""",
    "dry run": """mutation($it: Path!) {
      deleteLocation(path: $it, policy: CASCADE, dryRun: true) { plan { nodes } } }""",
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
      createLocation(parent: "US/NE/Omaha", key: "n", name: "n", id: $it, attributes: {postalCode: {}}) {
        node { id } } }""",
}


@pytest.fixture
async def planted(store):
    await plant(store, TREES)
    server = Server(store, Location)
    for mutation in (RENAME, RENAME_OTHER, MOVE, DELETE):
        assert "errors" not in await server.write(ALL, mutation)
    return store


async def asked(store, query, it, before):
    """What a new server reads of the store, and answers, each time that a caller asks something twice; `before` is
    what somebody asks first who may see everything, when all that the caller may see is known already.
    """
    witness = ReadRecorder(store)
    server = Server(witness, Location)
    if before is not None:
        await server.write(NE, SEEN)
        await server.write(ALL, before, it=it)
    told = []
    for _ in range(2):
        witness.keys, witness.spans, witness.counts = [], [], []
        answer = json.dumps(await server.write(NE, query, it=it)).replace(it, "IT")
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


# -- times -------------------------------------------------------------------------------------------------------------

ASKS = 1_000  # of each kind
STRICT = 0.001  # the share of runs in which a difference as large is seen where there is none; twice in a row fails
LEAST = 0.05  # of the time: less is what it takes to decode the record of an id, where there is one
FEW = 10  # ids that are asked time and again


class Client:
    """One connection to a server, over which a caller asks for nodes, each time the same way."""

    def __init__(self, url: str, credential: str, query: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
        self._headers = {"authorization": f"Bearer {credential}", "content-type": "application/json"}
        self._query = query

    def seconds(self, it: str) -> float:
        """How long the answer takes, which is that there is nothing."""
        body = json.dumps({"query": self._query, "variables": {"it": it}})
        began = time.perf_counter()
        self._connection.request("POST", "/graphql", body, self._headers)
        answer = self._connection.getresponse().read()
        took = time.perf_counter() - began
        assert json.loads(answer) == {"data": {"location": None}}
        return took


def likeness(some: Sequence[float], others: Sequence[float]) -> float:
    """The share of runs in which two samples of the same differ in ranks as much as these (Mann and Whitney's U)."""
    ranked = sorted(chain(((value, True) for value in some), ((value, False) for value in others)))
    ranks = sum(rank for rank, (_, is_some) in enumerate(ranked, start=1) if is_some)
    n, m = len(some), len(others)
    u = ranks - n * (n + 1) / 2
    deviation = abs(u - n * m / 2) / math.sqrt(n * m * (n + m + 1) / 12)
    return math.erfc(deviation / math.sqrt(2))


def compare(client: Client, hidden: Iterator[str], absent: Iterator[str], seed: int) -> tuple[float, float, float]:
    """The likeness of the times of two kinds of asks, in turns and in no order, and the median of each in µs."""
    order, times = random.Random(seed), ([], [])  # noqa: S311 - no secret
    for pair in zip(range(ASKS), hidden, absent, strict=False):
        for kind in order.sample((0, 1), 2):
            times[kind].append(client.seconds(pair[1 + kind]))
    return likeness(*times), *[median(one) * 1e6 for one in times]


def differs(share: float, some: float, others: float) -> bool:
    """Whether two kinds of asks can be told apart, by their likeness and their medians."""
    return share < STRICT and abs(some - others) > LEAST * min(some, others)


def test_the_comparison_of_samples_finds_small_differences():
    numbers = random.Random(1)  # noqa: S311 - no secret
    noise = [[numbers.expovariate(1.0) for _ in range(ASKS)] for _ in range(40)]
    alike = [likeness(noise[number], noise[number + 1]) for number in range(0, 40, 2)]
    assert min(alike) > STRICT
    assert 0.2 < median(alike) < 0.8
    assert likeness(noise[0], [value + 0.2 for value in noise[1]]) < STRICT
    assert likeness([1.0, 2.0, 3.0], [1.5, 2.5, 3.5]) == pytest.approx(0.5127, abs=1e-4)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The address of a server that grants reads, with many hidden nodes, and the credential of a caller."""
    folder = tmp_path_factory.mktemp("times")
    url = f"sqlite:///{folder / 'clade.db'}"
    key, credential = new_key("shop", ["read:location/US/NE"], None)
    rows = [("US", "COUNTRY"), ("US/NE", "STATE"), ("FR", "COUNTRY")]

    async def fill():
        async with open_store(url) as store:
            await store.create()
            await plant(store, [*rows, *[(path, "CITY") for path in hidden_paths(2 * ASKS)]])
            await add_key(store, key)

    with asyncio.Runner() as runner:
        runner.run(fill())
        server = servers.Server(folder, "server", store=url, reads="granted", log_level="warning")
        runner.run(server.start())
        try:
            yield server.url, credential
        finally:
            runner.run(server.close())


def hidden_paths(count: int) -> Iterator[str]:
    return (f"FR/{number:05}" for number in range(count))


def absent_paths(count: int) -> Iterator[str]:
    return (f"XX/{number:05}" for number in range(count))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("by", "again"),
    [
        ("id", False),
        ("id", True),
        ("path", False),
    ],
)
def test_a_hidden_node_takes_the_time_of_a_missing_one(served, by, again):
    """Each is asked for once, or few of them time and again."""
    kind, told = ("ID!", location_id) if by == "id" else ("Path!", str)
    client = Client(*served, f"query($it: {kind}) {{ location({by}: $it) {{ name }} }}")
    compare(client, iter([told("nowhere")] * 100), iter([told("nowhere")] * 100), 0)  # all of the server is awake
    found = []
    for attempt in range(2):
        chosen = slice(attempt * ASKS, attempt * ASKS + (FEW if again else ASKS))
        kinds = [list(paths(2 * ASKS))[chosen] for paths in (hidden_paths, absent_paths)]
        asks = [map(told, one * (ASKS // len(one))) for one in kinds]
        found.append(compare(client, *asks, attempt))
        if not differs(*found[-1]):
            return
    pytest.fail(f"the times differ: likeness and medians in µs are {found}")
