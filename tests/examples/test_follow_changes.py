"""The follower of the change feed: after all changes, stops and faults, the engine has exactly what the trees have."""

import itertools
import json
import os
import random
import subprocess
import sys
import time
from urllib.parse import quote

import httpx
import pytest

from clade import Settings, create_app
from examples.follow_changes import Clade, Follower, Refused, State, Unavailable
from examples.follow_changes import Typesense as Collection
from store.engine.usage import ReadUsage
from store.model.items import Delete
from store.model.keys import log_key
from tests.examples.typesense import KEY, Typesense
from tests.serving import serving

SECONDS = 60
SEEDS = 3
ALL = """{ locations { nodes { ...N descendants { nodes { ...N } } } } }
fragment N on Location { id path level name population names { text } }"""
BELOW = {"COUNTRY": ("STATE", "CITY"), "STATE": ("CITY",), "CITY": ("STORE",), "STORE": ()}


class Places:
    """A server with places, and an engine that follows it."""

    def __init__(self, url, engine_url, engine, store, file):
        self.url, self.engine_url, self.engine, self.store, self.file = url, engine_url, engine, store, file
        self._client = httpx.Client(timeout=SECONDS)

    def ask(self, query, **variables):
        return self._client.post(f"{self.url}/graphql", json={"query": query, "variables": variables}).json()

    def write(self, field, arguments, **variables):
        """Make a mutation; whether it was made."""
        types = {"attributes": "LocationAttributes!", "names": "[LocalizedNameInput!]"}
        head = ", ".join(f"${name}: {types[name]}" for name in variables)
        passed = "".join(f", {name}: ${name}" for name in variables)
        operation = f"mutation{f'({head})' if head else ''} {{ {field}({arguments}{passed}) {{ node {{ id }} }} }}"
        answer = self.ask(operation, **variables)
        assert answer.get("errors", [{}])[0].get("extensions", {}).get("code") not in (
            "GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED", "BAD_USER_INPUT",
        ), answer  # fmt: skip
        return "errors" not in answer

    def create(self, path, level, name=None, **arguments):
        """Create a node; whether that was possible."""
        parent, _, key = path.rpartition("/")
        given = f"{f'parent: {json.dumps(parent)}, ' if parent else ''}key: {json.dumps(key)}"
        given += "".join(f", {key}: {json.dumps(value)}" for key, value in arguments.items())
        attributes = {{"POSTAL_CODE": "postalCode"}.get(level, level.lower()): {"population": len(path)}}
        return self.write("createLocation", f"{given}, name: {json.dumps(name or key)}", attributes=attributes)

    def nodes(self):
        """All nodes by their paths."""
        data = self.ask(ALL)["data"]["locations"]["nodes"]
        return {node["path"]: node for root in data for node in (root, *root["descendants"]["nodes"])}

    def documents(self):
        """The documents that the engine should have by their ids."""
        nodes, found = self.nodes(), {}
        for path, node in nodes.items():
            segments = path.split("/")
            above = ["/".join(segments[:length]) for length in range(1, len(segments))]
            found[quote(node["id"], safe=":")] = {
                "id": quote(node["id"], safe=":"),
                "name": node["name"],
                "names": [name["text"] for name in node["names"]],
                "level": node["level"],
                "path": path,
                "ancestors": [quote(nodes[one]["id"], safe=":") for one in above],
                "population": node["population"],
            }
        return found

    def indexed(self):
        """The documents that the engine has, without the time at which they were read."""
        engine = self.engine.documents
        return {key: {name: one[name] for name in one if name != "read"} for key, one in list(engine.items())}

    def follow(self, *, seconds=SECONDS, pauses=(0.01,) * 3):
        """Follow with what the file says, as after a start; the number of changes."""
        engine = Collection(self.engine_url, "places", KEY, seconds=seconds, pauses=pauses)
        engine.create()
        clade = Clade(f"{self.url}/graphql", seconds=SECONDS, pauses=pauses)
        return Follower(clade, engine, State(self.file)).follow()

    def settle(self):
        """Follow until large moves have ended and the engine has what the trees have."""
        end = time.monotonic() + SECONDS
        while (self.follow() or self.indexed() != self.documents()) and time.monotonic() < end:
            time.sleep(0.05)  # while a large move goes on
        assert self.indexed() == self.documents()

    def start(self, *options):
        """The program, started as a process."""
        command = [sys.executable, "-m", "examples.follow_changes", "--clade", f"{self.url}/graphql"]
        command += ["--engine", self.engine_url, "--state", str(self.file), *options]
        environment = {**os.environ, "TYPESENSE_API_KEY": KEY}
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def places(store, store_url, tmp_path):
    app = create_app(Settings(store=store_url, writes="on", max_nodes=20_000))
    engine = Typesense()
    with serving(app) as url, serving(engine.app) as engine_url:
        yield Places(url, engine_url, engine, store, tmp_path / "places.json")
        engine.closed.set()  # else the server would wait for requests that hang


def plant(places):
    """Two countries with states, cities and shops."""
    for path, level in {
        "US": "COUNTRY", "US/NE": "STATE", "US/NE/Omaha": "CITY", "US/NE/Omaha/1": "STORE", "US/NE/Lincoln": "CITY",
        "US/NY": "STATE", "FR": "COUNTRY", "FR/IDF": "STATE", "FR/IDF/Paris": "CITY",
    }.items():  # fmt: skip
        assert places.create(path, level)


def test_each_kind_of_change_arrives(places):
    plant(places)
    places.follow()
    assert places.indexed() == places.documents()
    for mutation in (
        lambda: places.create("US/NY/Albany", "CITY", id="a,`b]&&(é"),  # an id that filters and addresses have to quote
        lambda: places.write(
            "updateLocation", 'path: "US", name: "States", names: [{language: "de", text: "Staaten"}]'
        ),
        lambda: places.write("renameLocation", 'path: "US/NE", key: "Nebraska"'),
        lambda: places.write("moveLocation", 'path: "US/Nebraska/Omaha", to: "US/NY"'),
        lambda: places.write("moveLocation", 'path: "US/NY", to: "FR"'),
        lambda: places.write("deleteLocation", 'path: "FR/NY/Albany"'),
        lambda: places.write("deleteLocation", 'path: "FR/NY/Omaha", policy: CASCADE'),
        lambda: places.write("deleteLocation", 'path: "FR/IDF", policy: REPARENT'),
        lambda: places.write("renameLocation", 'path: "US", key: "USA"'),
        lambda: places.write("deleteLocation", 'path: "FR", policy: CASCADE'),
        lambda: places.create("FR", "COUNTRY", "France again"),
    ):
        assert mutation()
        before = places.indexed()
        assert places.follow() or places.indexed() != before  # a new tree is read, and has no changes from before
        assert places.indexed() == places.documents()
        assert places.follow() == 0
    assert places.indexed().keys() == {
        "location:" + one["id"].removeprefix("location:") for one in places.nodes().values()
    }


def test_a_node_that_came_back_has_none_of_its_former_descendants(places):
    plant(places)
    assert places.create("US/KS", "STATE", id="kansas")
    assert places.create("US/KS/Wichita", "CITY")
    places.follow()
    assert places.write("moveLocation", 'path: "US/KS", to: "FR"')
    assert places.write("deleteLocation", 'path: "FR", policy: CASCADE')
    assert places.create("US/KS", "STATE", id="kansas")  # undoes its deletion alone
    places.follow()
    assert places.indexed() == places.documents()


def test_without_changes_nothing_is_written(places):
    plant(places)
    places.follow()
    places.engine.requests.clear()
    places.follow()
    assert places.engine.requests == ["GET /collections"]


def edit(places, rng, number):
    """A random mutation; whether it was possible."""
    nodes = places.nodes()
    path = rng.choice([*nodes, ""]) if nodes else ""
    roll = rng.random()
    if roll < 0.35 or not path:
        levels = BELOW[nodes[path]["level"]] if path else ("COUNTRY",)
        return bool(levels) and places.create(f"{path}/n{number}".removeprefix("/"), rng.choice(levels))
    quoted = json.dumps(path)
    if roll < 0.5:
        return places.write("updateLocation", f'path: {quoted}, name: "name {number}"')
    if roll < 0.65:
        return places.write("renameLocation", f'path: {quoted}, key: "r{rng.randrange(6)}"')
    if roll < 0.85:
        return places.write("moveLocation", f"path: {quoted}, to: {json.dumps(rng.choice(list(nodes)))}")
    return places.write("deleteLocation", f"path: {quoted}, policy: {rng.choice(['CASCADE', 'REPARENT', 'REFUSE'])}")


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (0, *range(2, SEEDS)))]
)
def test_random_changes_arrive_in_spite_of_faults_and_stops(places, seed):
    rng = random.Random(seed)  # noqa: S311
    requests = itertools.count()
    plant(places)
    made, stops, number = 0, 0, 0

    def fault():
        """One request of four goes wrong, and in one of eight the tree changes while the follower is at work."""
        nonlocal number, made
        own = random.Random(f"{seed} {next(requests)}")  # noqa: S311 - threads of a server call this
        if own.random() < 0.12:
            number += 1
            made += edit(places, own, number)
        return own.choice(["refuse", "lose", "cut"]) if own.random() < 0.25 else None

    for _ in range(12):
        for _ in range(rng.randrange(1, 6)):
            number += 1
            made += edit(places, rng, number)
        places.engine.fault = fault
        try:
            places.follow(pauses=())
        except Unavailable:
            stops += 1
        places.engine.fault = lambda: None
        if rng.random() < 0.5:
            places.settle()
    places.settle()
    assert made > 15
    assert stops > 2


@pytest.mark.thorough
def test_a_large_move_arrives_when_it_has_ended(places):
    plant(places)
    for number in range(60):
        assert places.create(f"US/NE/city{number}", "CITY")
    places.follow()
    places.write("renameLocation", 'path: "US/NE", key: "Nebraska"')
    end = time.monotonic() + SECONDS
    while "US/Nebraska/city59" not in places.nodes() and time.monotonic() < end:
        places.follow()
    places.settle()
    assert "US/Nebraska/city59" in {one["path"] for one in places.indexed().values()}


async def test_a_tree_whose_changes_have_expired_is_read_again(places):
    plant(places)
    places.follow()
    assert places.write("deleteLocation", 'path: "US/NE/Omaha", policy: CASCADE')
    assert places.write("moveLocation", 'path: "US/NY", to: "FR"')
    saved = json.loads(places.file.read_text())
    items = [log_key("location#US", number) for number in range(1, 100)]
    found = [item for item in await places.store.get(items, ReadUsage()) if item is not None]
    gone = [
        key for key, item in zip(items, await places.store.get(items, ReadUsage()), strict=True) if item is not None
    ]
    assert len(gone) == len(found) > 2
    for key in gone:
        await places.store.commit([Delete(key)])
    places.follow()
    assert places.indexed() == places.documents()
    assert json.loads(places.file.read_text())["trees"]["US"] != saved["trees"]["US"]


def test_a_lost_file_is_a_new_start_and_leaves_nothing_behind(places):
    plant(places)
    places.follow()
    assert places.write("deleteLocation", 'path: "US/NE/Omaha", policy: CASCADE')
    places.file.unlink()
    places.follow()
    assert places.indexed() == places.documents()


def test_a_silent_engine_is_asked_again(places):
    plant(places)
    places.follow()
    assert places.create("US/NE/Kearney", "CITY")
    silent = "POST /collections/places/documents/import"
    faults = iter(["hang", "hang"])
    places.engine.fault = lambda: next(faults, None) if places.engine.requests[-1] == silent else None
    places.follow(seconds=1)
    assert places.indexed() == places.documents()
    assert places.engine.requests[-3:] == [silent] * 3


def test_a_rejected_document_or_key_stops_the_follower_before_the_cursor_is_saved(places):
    plant(places)
    places.follow()
    saved = json.loads(places.file.read_text())["trees"]
    assert places.create("US/NE/Kearney", "CITY")
    places.engine.fields["places"]["code"] = {"name": "code", "type": "string"}
    with pytest.raises(Refused, match=r"1 of 1 documents were rejected, the first: Field `code` has been declared"):
        places.follow()
    assert json.loads(places.file.read_text())["trees"] == saved
    with pytest.raises(Refused, match="HTTP status 401"):
        Collection(places.engine_url, "places", "another key", pauses=()).create()
    del places.engine.fields["places"]["code"]
    places.follow()
    assert places.indexed() == places.documents()


@pytest.mark.thorough
def test_the_program_goes_on_where_it_was_killed(places):
    plant(places)
    held = []

    def hold():
        held.append(None)
        places.engine.closed.wait(0.2 if len(held) < 4 else None if len(held) == 4 else 0)

    places.engine.fault = hold
    with places.start() as first:
        end = time.monotonic() + SECONDS
        while len(held) < 4 and time.monotonic() < end:
            assert first.poll() is None, first.communicate()
            time.sleep(0.02)
        first.kill()
    assert places.indexed() != places.documents()
    assert places.write("moveLocation", 'path: "US/NE", to: "FR"')
    with places.start("--once") as second:
        said, errors = second.communicate(timeout=SECONDS)
    assert (second.returncode, errors) == (0, ""), said
    assert places.indexed() == places.documents()


def test_the_program_says_what_is_wrong(places):
    environment = {**os.environ, "TYPESENSE_API_KEY": "another key"}
    command = [sys.executable, "-m", "examples.follow_changes", "--clade", f"{places.url}/graphql"]
    command += ["--engine", places.engine_url, "--state", str(places.file), "--once"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 1
    assert "HTTP status 401" in done.stderr
    assert "Traceback" not in done.stderr
