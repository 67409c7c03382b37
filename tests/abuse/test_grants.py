"""Grants: callers cannot reach hidden nodes by cursors, ids or similar paths."""

import itertools
import json
import logging

import httpx
import pytest

from graph.app import create_app
from graph.hierarchies.locations import Location
from graph.operation.graphql_request import GraphQLRequest
from resolvers.session.read_state import ReadState
from store.api_keys import add_key, new_key
from store.connect import open_store
from store.engine.protocol import Store
from tests.rights.asking import Server, caller, codes
from tests.serving import serving
from tests.systems.asking import plant

PLACES = [
    ("US", "COUNTRY"), ("US/NE", "STATE"), ("US/NE/Omaha", "CITY"), ("US/NE/Lincoln", "CITY"),
    ("US/NE/Kearney", "CITY"),
    ("US/NEVADA", "STATE"), ("US/NEVADA/Reno", "CITY"), ("US/MO", "STATE"), ("FR", "COUNTRY"),
    ("US/NE%2FOmaha", "STATE"), ("US/\u00c9", "STATE"), ("US/\u00c9/a", "CITY"),
]  # fmt: skip
ALL = caller("write:location")
NE = caller("write:location/US/NE")
LIST = """query($path: Path!, $after: String) {
  location(path: $path) { children(after: $after) { edges { cursor node { path } } } } }"""
FIND = "query($id: ID!) { location(id: $id) { path } }"
LOOK = "query($path: Path!) { location(path: $path) { path children { nodes { path } } } }"


@pytest.fixture
async def server(store: Store) -> Server:
    rows = [(tuple(one.replace("%2F", "/") for one in path.split("/")), level) for path, level in PLACES]
    await plant(store, Location, rows)
    return Server(store, Location)


async def test_cursors_of_hidden_lists_reveal_nothing(server):
    cursors = {}
    for path in ("US", "US/NE", "US/NEVADA"):
        found = await server.data(ALL, LIST, path=path)
        for edge in found["location"]["children"]["edges"]:
            cursors[edge["node"]["path"]] = edge["cursor"]
    own = {f"US/NE/{one}" for one in ("Omaha", "Lincoln", "Kearney")}
    for path, cursor in itertools.product(("US/NE", "US/NEVADA"), cursors.values()):
        answer = await server.ask(NE, LIST, path=path, after=cursor)
        if path == "US/NEVADA":
            assert answer == {"data": {"location": None}}
        elif "errors" in answer:
            assert codes(answer) == ["BAD_CURSOR"]
        else:
            assert {edge["node"]["path"] for edge in answer["data"]["location"]["children"]["edges"]} <= own


async def test_ids_of_hidden_nodes_look_like_unknown_ids(server):
    ids = {}
    for path, _ in PLACES:
        ids[path] = (await server.data(ALL, "query($p: Path!) { location(path: $p) { id } }", p=path))["location"]["id"]
    for path, node_id in ids.items():
        answer = await server.ask(NE, FIND, id=node_id)
        seen = path.startswith("US/NE/") or path == "US/NE"
        assert answer == {"data": {"location": {"path": path} if seen else None}}
    for made_up in ("location:nothing", ids["FR"] + "0", ids["FR"].upper(), "category:1"):
        assert await server.ask(NE, FIND, id=made_up) == {"data": {"location": None}}


@pytest.mark.parametrize(
    "path", ["US/NEVADA", "US/NE%2FOmaha", "US/N", "US/NE ", "US/ne", "US/NE%2f", "US/É", "US/NE\u0301"]
)
async def test_paths_similar_to_a_granted_one_are_not_granted(server, path):
    assert await server.ask(NE, LOOK, path=path) == {"data": {"location": None}}


async def test_a_path_is_granted_in_every_unicode_normalization(server):
    for grant, path in itertools.product(("US/\u00c9", "US/E\u0301"), repeat=2):
        found = (await server.data(caller(f"read:location/{grant}"), LOOK, path=path))["location"]
        assert [one["path"] for one in found["children"]["nodes"]] == ["US/\u00c9/a"]


async def test_a_rejection_does_not_reveal_whether_a_node_exists(server):
    """Each mutation in each of its forms, on a hidden path and on one where nothing is."""
    forms = {
        "updateLocation": ['name: "x"', 'name: "x", expectedRevision: 1', "attributes: { city: { population: 1 } }"],
        "renameLocation": ['key: "x"', 'key: "Reno"', 'key: "x", dryRun: true'],
        "moveLocation": ['to: "US/NE"', "to: null", 'to: "US/MO"', 'to: "US/NE", idempotencyKey: "k"'],
        "reorderLocation": ["first: true", 'after: "US/NE"', 'before: "US/MO"'],
        "deleteLocation": ["policy: CASCADE", "policy: REPARENT", "policy: REFUSE, dryRun: true"],
    }
    for name, variants in forms.items():
        for arguments in variants:
            mutation = f"mutation($path: Path!) {{ {name}(path: $path, {arguments}) {{ node {{ id }} }} }}"
            hidden = await server.write(NE, mutation, path="US/NEVADA")
            absent = await server.write(NE, mutation, path="US/NOWHER")
            assert str(hidden).replace("NEVADA", "NOWHER") == str(absent)
            assert codes(hidden) == ["NOT_FOUND"]


async def test_a_cached_response_is_not_served_to_callers_with_fewer_grants(server):
    query = '{ locations { nodes { path } } location(path: "US/NEVADA") { name children { nodes { name } } } }'
    for _ in range(3):
        assert (await server.data(ALL, query))["location"]["children"]["nodes"] == [{"name": "Reno"}]
        assert (await server.data(NE, query))["location"] is None
        assert (await server.data(caller("read:location/US/NEVADA"), query))["location"]["name"] == "NEVADA"


async def test_no_credential_is_in_responses_or_logs(tmp_path, monkeypatch, caplog):
    address = f"sqlite:///{tmp_path / 'clade.db'}"
    key, text = new_key("shop", ["read:location"], None)
    async with open_store(address) as store:
        await store.create()
        await add_key(store, key)
    secret = "a secret of thirty-two bytes or more, for tests"
    for name, value in {"STORE": address, "READS": "granted", "JWT_SECRET": secret}.items():
        monkeypatch.setenv(f"CLADE_{name}", value)
    shown = ""
    with caplog.at_level(logging.DEBUG), serving(create_app()) as url:
        async with httpx.AsyncClient(base_url=url) as client:
            for credential in (text, text[:-1] + "_", text.replace("clade_", "clade_x"), "head.body.tail", secret):
                headers = {"authorization": f"Bearer {credential}", "clade-reads": "1"}
                answer = await client.post(
                    "/graphql", json={"query": "{ locations { nodes { id } } }"}, headers=headers
                )
                shown += answer.text + str(answer.headers)
    shown += caplog.text + "".join(str(record.__dict__) for record in caplog.records if "http" not in record.name)
    for part in (text.split("_", 2)[2], text[:-1], secret, "head.body.tail", key.hash):
        assert part not in shown


async def test_partly_visible_siblings_are_read_once_for_many_lists(server, monkeypatch):
    looked = []
    read = ReadState.nodes

    async def nodes(self, keys, *, current=False):
        keys = list(keys)
        if not current:  # else it is the lookup of the path
            looked.append([key.sk for key in keys])
        return await read(self, keys, current=current)

    monkeypatch.setattr(ReadState, "nodes", nodes)
    query = '{ location(path: "US/NE") { descendants { nodes { path parent { children { nodes { path } } } } } } }'
    some = caller("read:location/US/NE/Omaha", "read:location/US/NE/Kearney", "read:location/US/NE/Lincoln")
    answer = await server.planned.answer(GraphQLRequest(query), caller=some, allow_mutations=False)
    found = json.loads(answer.content())["data"]["location"]["descendants"]["nodes"]
    assert [len(one["parent"]["children"]["nodes"]) for one in found] == [3, 3, 3]
    family = ["#NE#Kearney#", "#NE#Lincoln#", "#NE#Omaha#"]
    parents = ["#NE#"] * 3
    assert [sorted(keys) for keys in looked] == [family, parents, family], "for the descendants, and for all lists"
