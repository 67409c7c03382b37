"""Names in languages: fields, mutations, history and grants, on both stores."""

import pytest

from graph.hierarchies.locations import Location
from store.engine import ReadUsage
from store.model.keys import node_key
from tests import invariants
from tests.rights.asking import Server, caller
from tests.systems.asking import Client, plant

ALL = caller("write:location")
CITY = caller("read:location/DE/BY/Muenchen")
NAMES = {"de": "München", "en": "Munich", "zh-Hant": "慕尼黑"}
UPDATE = """mutation($path: Path!, $names: [LocalizedTextInput!], $dry: Boolean! = false, $key: String) {
  updateLocation(input: {node: {path: $path}, names: $names}, dryRun: $dry, idempotencyKey: $key) {
    plan { nodes } node { revision names { language text } } } }"""
ALL_NAMES = "query($path: Path!) { location(path: $path) { name names { language text } revision } }"


@pytest.fixture
async def server(store):
    rows = [
        (["DE"], "COUNTRY", "Germany", {"names": {"de": "Deutschland", "FR-ch": "Allemagne"}}),
        (["DE", "BY"], "STATE", "Bavaria", {"names": {"de": "Bayern"}}),
        (["DE", "BY", "Muenchen"], "CITY", "Muenchen", {"names": NAMES}),
        (["DE", "BY", "Ulm"], "CITY", "Ulm"),
    ]
    await plant(store, Location, rows)
    yield Server(store, Location)
    await invariants.check(store)


async def names(server, path="DE/BY/Muenchen"):
    found = (await server.data(ALL, ALL_NAMES, path=path))["location"]
    return {one["language"]: one["text"] for one in found["names"]}, found["revision"]


async def test_names_cost_no_read(server):
    client = Client(server.store, Location)
    plain = await client.ask('{ location(path: "DE/BY") { name children { nodes { name } } } }')
    query = """query($some: [String!]) { location(path: "DE/BY") { name(languages: ["de"]) n: names { text }
        children { nodes { name(languages: $some) nameLanguage(languages: ["de"]) ...Names names { text } } } } }
        fragment Names on Location { names { t: text language __typename } }"""
    asked = await client.ask(query, some=["de"])
    assert (asked.requests, asked.units) == (plain.requests, plain.units)
    first, second = asked.data["location"]["children"]["nodes"]
    assert (first["name"], second["name"], second["names"]) == ("München", "Ulm", [])
    assert first["names"][0] == {"t": "München", "language": "de", "__typename": "LocalizedText", "text": "München"}


async def test_mutations_set_and_clear_one_language(server):
    async def update(*changes, **options):
        given = [{"language": language, "text": text} for language, text in changes]
        answer = await server.write(ALL, UPDATE, path="DE/BY/Muenchen", names=given, **options)
        assert "errors" not in answer, answer
        return answer["data"]["updateLocation"]

    assert (await update(("it", "Monaco"), dry=True))["plan"]["nodes"] == 1
    assert await names(server) == (NAMES, 1)
    assert (await update(("it", "Monaco"), ("EN", None), key="k"))["node"]["revision"] == 2
    assert (await update(("it", "Monaco"), ("EN", None), key="k"))["node"]["revision"] == 2
    now = {"de": "München", "it": "Monaco", "zh-Hant": "慕尼黑"}
    assert await names(server) == (now, 2)
    assert (await update(("de", "München")))["node"]["revision"] == 2, "nothing changes"
    assert (await update(("en", None)))["node"]["revision"] == 2, "nothing changes"
    cleared = await server.write(ALL, UPDATE, path="DE/BY/Muenchen", names=None)
    assert cleared["data"]["updateLocation"]["node"] == {"revision": 3, "names": []}
    stored = await server.store.get([node_key("location", ("DE", "BY", "Muenchen"))], ReadUsage(), strong=True)
    assert "names" not in stored[0]
    past = await server.data(
        ALL,
        """{ location(path: "DE/BY/Muenchen") { name(languages: ["en"])
        atRevision(n: 2) { name(languages: ["it"]) names { language } }
        history { nodes { name(languages: ["en"]) names { text } } } } }""",
    )
    assert past["location"]["atRevision"] == {
        "name": "Monaco", "names": [{"language": one} for one in sorted(now)],
    }  # fmt: skip
    assert [(one["name"], len(one["names"])) for one in past["location"]["history"]["nodes"]] == [
        ("Muenchen", 0), ("Muenchen", 3), ("Munich", 3),
    ]  # fmt: skip


async def test_names_above_a_grant_are_of_nothing(server):
    ancestors = await server.data(
        CITY, '{ location(path: "DE/BY/Muenchen") { name ancestors { name names { text } } } }'
    )
    assert ancestors["location"]["ancestors"] == []
    hidden = await server.ask(CITY, '{ location(path: "DE/BY/Ulm") { name(languages: ["de"]) } }')
    assert hidden["data"] == {"location": None}
