"""Grants: callers cannot reach hidden nodes by cursors, ids or similar paths."""

import itertools
import logging

import httpx
import pytest

from graph.app import create_app
from graph.hierarchies.locations import Location
from store.api_keys import add_key, new_key
from store.connect import open_store
from store.engine import Store
from tests.rights.asking import Server, caller, codes
from tests.serving import serving
from tests.systems.asking import plant

PLACES = [
    ("US", "COUNTRY"), ("US/NE", "STATE"), ("US/NE/Omaha", "CITY"), ("US/NE/Lincoln", "CITY"),
    ("US/NE/Kearney", "CITY"),
    ("US/NEVADA", "STATE"), ("US/NEVADA/Reno", "CITY"), ("US/MO", "STATE"), ("FR", "COUNTRY"),
    ("US/NE%2FOmaha", "STATE"),
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
