"""Responses of callers with grants: whose a cached one is, and what the cursors of others lead to."""

import pytest

from graph.execution import run
from graph.hierarchies.locations import Location
from resolvers.access.callers import Caller
from store.engine import ReadUsage, Store
from store.metadata.moves import Move, MoveState
from store.metadata.tree_version import TreeVersion
from store.model.keys import node_key, tree_version_key
from store.model.records import Put
from tests.model import AT
from tests.rights.asking import Server, caller, codes
from tests.systems.asking import plant

TREES = [("US", "COUNTRY"), ("US/NE", "STATE"), ("US/NE/Omaha", "CITY"), ("US/IA", "STATE"), ("FR", "COUNTRY")]
NEBRASKA = caller("read:location/US/NE")
QUERY = '{ location(path: "US/NE") { name children { nodes { path } } } }'


@pytest.fixture
async def server(store: Store) -> Server:
    await plant(store, Location, [(tuple(path.split("/")), level) for path, level in TREES])
    return Server(store, Location)


@pytest.mark.both_stores
async def test_callers_with_the_same_grants_share_a_response_and_get_no_reads_and_tags_with_it(server):
    first, response = await server.how(NEBRASKA, QUERY)
    for who in (NEBRASKA, caller("write:location/US/NE", "read:location/US/NE/Omaha", name="else")):
        is_cached = server.store.version() is not None
        expected = ("cached" if is_cached else "compiled", response)
        assert await server.how(who, QUERY, report_reads=2, cache_tags=True) == expected
    assert first == "compiled"


@pytest.mark.parametrize("grants", [["location/US"], ["location/US/NE", "location/FR"], ["location/US/NE/Omaha"], []])
async def test_callers_with_other_grants_share_none(server, grants):
    await server.how(NEBRASKA, QUERY)
    await server.how(Caller(), QUERY)
    how, response = await server.how(caller(*[f"read:{one}" for one in grants]), QUERY)
    assert how == "compiled"
    assert (b'"path"' in response) is (len(grants) > 0 and "Omaha" not in grants[0])


async def test_what_depends_on_more_of_a_caller_is_cached_for_nobody(server, monkeypatch):
    """As a field would whose resolver asks for the name of the caller."""
    find = run.find_nodes

    async def find_for_one(request, lookups):
        found = await find(request, lookups)
        return found if request.caller.name == "somebody" else [None] * len(found)

    monkeypatch.setattr(run, "find_nodes", find_for_one)
    for who, is_seen in ((NEBRASKA, True), (caller("read:location/US/NE", name="else"), False), (NEBRASKA, True)):
        how, response = await server.how(who, QUERY)
        assert (how, b'"path"' in response) == ("compiled", is_seen)


async def test_nothing_is_cached_while_a_move_runs_in_what_was_read(server):
    """Of a tree that is not read the caller must not notice one."""
    source, target = node_key("location", ("US", "NE", "Omaha")), node_key("location", ("US", "IA", "Omaha"))
    move = Move(
        id="ab" * 12, from_pk=source.pk, from_sk=source.sk, to_pk=target.pk, to_sk=target.sk, top_id="location:x",
        state=MoveState.COPYING, nodes=1, written=1, epoch=1, lease=1e12, started_at=AT,
    )  # fmt: skip
    (item,) = await server.store.get([tree_version_key(source.pk)], ReadUsage(), strong=True)
    running = TreeVersion.of(source.pk, item).incremented({}, moves=(move.running,))
    await server.store.commit([Put(move.item()), running])
    elsewhere = caller("read:location/US/NE/Lincoln", "read:location/FR")
    assert [(await server.how(NEBRASKA, QUERY))[0] for _ in range(2)] == ["compiled"] * 2
    if server.store.version() is not None:
        assert [(await server.how(elsewhere, QUERY))[0] for _ in range(2)] == ["compiled", "cached"]


async def test_cursors_of_hidden_lists_are_of_no_other_list(server):
    query = """query($path: Path!, $after: String) {
      location(path: $path) { children(after: $after) { edges { cursor node { path } } } } }"""
    for path in ("US", "US/NE"):
        for edge in (await server.data(caller("read:location"), query, path=path))["location"]["children"]["edges"]:
            answer = await server.ask(NEBRASKA, query, path="US/NE", after=edge["cursor"])
            assert codes(answer) == (["BAD_CURSOR"] if path == "US" else [])
            assert await server.ask(NEBRASKA, query, path="US/IA", after=edge["cursor"]) == {"data": {"location": None}}
