"""The follower of the change feed: after all changes, stops and faults, the engine has exactly what the trees have."""

import asyncio
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from clade import Settings, create_app
from examples.follow_changes import Clade, Follower, Refused, State, Unavailable
from examples.follow_changes import Typesense as Collection
from store.engine import ReadUsage, Store
from store.model.keys import log_key
from store.model.records import Delete
from tests.serving import serving

KEY = "engine-key"
SECONDS = 60
ALL = """{ locations { nodes { ...N descendants { nodes { ...N } } } } }
fragment N on Location { id path level name population names { text } }"""
CONDITION = re.compile(r"\(id:=\[(?P<ids>.*)\] \|\| ancestors:=\[(?P=ids)\]\) && read:<(?P<read>\d+)")


class Typesense:
    """Stand-in of the engine: the part of its API that writes documents, of one collection.

    `fault` is called for each request and says what goes wrong: "refuse" and "lose" answer 503, before or after the
    request was carried out, "cut" ends the response half-way.
    """

    def __init__(self) -> None:
        self.fields: list[str] = []
        self.documents: dict[str, dict[str, Any]] = {}
        self.requests: list[str] = []
        self.fault: Callable[[], str | None] = lambda: None
        documents = "/collections/places/documents"
        self.app = Starlette(
            routes=[
                Route("/collections", self._serve(self._collections), methods=["GET", "POST"]),
                Route(f"{documents}/import", self._serve(self._import), methods=["POST"]),
                Route(documents, self._serve(self._delete), methods=["DELETE"]),
            ]
        )

    def _serve(self, answer: Callable[[Request, bytes], Response]) -> Callable[[Request], Any]:
        async def serve(request: Request) -> Response:
            body = await request.body()
            self.requests.append(f"{request.method} {request.url.path}")
            if request.headers.get("x-typesense-api-key") != KEY:
                return JSONResponse({"message": "Forbidden - a valid `x-typesense-api-key` header must be sent."}, 401)
            fault = await asyncio.to_thread(self.fault)
            response = Response() if fault == "refuse" else answer(request, body)
            if fault in ("refuse", "lose"):
                return JSONResponse({"message": "Not Ready or Lagging"}, 503)
            return StreamingResponse(half(bytes(response.body))) if fault == "cut" else response

        return serve

    def _collections(self, request: Request, body: bytes) -> Response:
        if request.method == "GET":
            return JSONResponse([{"name": "places"}] if self.fields else [])
        assert not self.fields
        self.fields = [one["name"] for one in json.loads(body)["fields"] if not one.get("optional")]
        return JSONResponse({}, 201)

    def _import(self, request: Request, body: bytes) -> Response:
        assert request.query_params["action"] == "upsert"
        lines: list[dict[str, Any]] = []
        for document in map(json.loads, body.splitlines()):
            missing = [name for name in self.fields if document.get(name) is None]
            lines.append({"success": not missing, "error": f"Field `{missing[0]}` is missing." if missing else ""})
            if not missing:
                self.documents[document["id"]] = document
        return PlainTextResponse("\n".join(json.dumps(line) for line in lines))

    def _delete(self, request: Request, body: bytes) -> Response:
        condition = request.query_params["filter_by"]
        assert len(condition) <= 4_000, "the engine's longest query"
        found = CONDITION.fullmatch(condition)
        assert found, condition
        ids, read = set(re.findall("`([^`]*)`", found["ids"])), int(found["read"])
        for key, one in list(self.documents.items()):
            if ids & {key, *one["ancestors"]} and one["read"] < read:
                del self.documents[key]
        return JSONResponse({})


async def half(body: bytes) -> AsyncIterator[bytes]:
    """The first half of a body; then the connection is closed."""
    yield body[: len(body) // 2]
    raise ConnectionResetError("cut")


class Places:
    """A server with two countries, and an engine that follows it."""

    def __init__(self, url: str, engine_url: str, engine: Typesense, store: Store, file: Path) -> None:
        self.url, self.engine_url, self.engine, self.store, self.file = url, engine_url, engine, store, file
        self._client = httpx.Client(timeout=SECONDS)
        for path, level in {
            "US": "COUNTRY", "US/NE": "STATE", "US/NE/Omaha": "CITY", "US/NE/Omaha/1": "STORE", "US/NE/Lincoln": "CITY",
            "US/NY": "STATE", "FR": "COUNTRY", "FR/IDF": "STATE", "FR/IDF/Paris": "CITY",
        }.items():  # fmt: skip
            assert self.create(path, level)

    def ask(self, query: str) -> Any:
        return self._client.post(f"{self.url}/graphql", json={"query": query}).json()

    def write(self, field: str, arguments: str) -> bool:
        """Make a mutation; whether it was made."""
        reply = self.ask(f"mutation {{ made: {field}Location(input: {{{arguments}}}) {{ userErrors {{ code }} }} }}")
        return "errors" not in reply and reply["data"]["made"]["userErrors"] == []

    def create(self, path: str, level: str, more: str = "") -> bool:
        """Create a node; whether that was possible."""
        parent, _, key = path.rpartition("/")
        given = f"parent: {{path: {json.dumps(parent)}}}, " if parent else ""
        attributes = f"attributes: {{ {level.lower()}: {{ population: {len(path)} }} }}"
        return self.write("create", f"{given}key: {json.dumps(key)}, name: {json.dumps(key)}, {attributes}{more}")

    def wanted(self) -> dict[str, Any]:
        """The documents that the engine should have by their ids."""
        roots = self.ask(ALL)["data"]["locations"]["nodes"]
        nodes = {node["path"]: node for root in roots for node in (root, *root["descendants"]["nodes"])}
        ids = {path: quote(node["id"], safe=":") for path, node in nodes.items()}
        return {
            ids[path]: {
                "id": ids[path], "name": node["name"], "names": [name["text"] for name in node["names"]],
                "level": node["level"], "path": path, "population": node["population"],
                "ancestors": [ids[path[: found.start()]] for found in re.finditer("/", path)],
            }
            for path, node in nodes.items()
        }  # fmt: skip

    def indexed(self) -> dict[str, Any]:
        """The documents that the engine has, without the time at which they were read."""
        engine = self.engine.documents
        return {key: {name: one[name] for name in one if name != "read"} for key, one in list(engine.items())}

    def follow(self, pauses: tuple[float, ...] = (0.01,) * 3) -> int:
        """Follow with what the file says, as after a start; the number of changes."""
        engine = Collection(self.engine_url, "places", KEY, seconds=SECONDS, pauses=pauses)
        engine.create()
        return Follower(Clade(f"{self.url}/graphql", seconds=SECONDS, pauses=pauses), engine, State(self.file)).follow()

    def settle(self) -> None:
        """Follow until there are no changes; then the engine has what the trees have, and nothing is written to it."""
        while self.follow():
            pass
        assert self.indexed() == self.wanted()
        self.engine.requests.clear()
        assert self.follow() == 0
        assert self.engine.requests == ["GET /collections"]

    def run(self, key: str) -> subprocess.CompletedProcess[str]:
        """Run the program once."""
        command = [sys.executable, "-m", "examples.follow_changes", "--clade", f"{self.url}/graphql"]
        command += ["--engine", self.engine_url, "--state", str(self.file), "--once"]
        environment = {**os.environ, "TYPESENSE_API_KEY": key}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS)


@pytest.fixture
def places(store: Store, store_url: str, tmp_path: Path) -> Iterator[Places]:
    app = create_app(Settings(store=store_url, writes="on", max_nodes=20_000))
    engine = Typesense()
    with serving(app) as url, serving(engine.app) as engine_url:
        yield Places(url, engine_url, engine, store, tmp_path / "places.json")


EDITS = [
    ("update", 'node: {path: "US"}, name: "States", names: [{language: "de", text: "Staaten"}]'),
    ("move", 'node: {path: "US/NE"}, key: "Nebraska"'),
    ("move", 'node: {path: "US/Nebraska/Omaha"}, to: {parent: {path: "US/NY"}}'),
    ("move", 'node: {path: "US/NY"}, to: {parent: {path: "FR"}}'),
    ("delete", 'node: {path: "FR/NY/Albany"}'),
    ("delete", 'node: {path: "FR/NY/Omaha"}, policy: CASCADE'),
    ("delete", 'node: {path: "FR/IDF"}, policy: REPARENT'),
    ("move", 'node: {path: "US"}, key: "USA"'),
    ("create", 'parent: {path: "USA"}, key: "KS", name: "Kansas", id: "kansas", attributes: {state: {}}'),
    ("create", 'parent: {path: "USA/KS"}, key: "Wichita", name: "Wichita", attributes: {city: {}}'),
    ("move", 'node: {path: "USA/KS"}, to: {parent: {path: "FR"}}'),
    ("delete", 'node: {path: "FR"}, policy: CASCADE'),
    # A node is brought back alone, and then, with what is below it, from another deletion.
    ("create", 'parent: {path: "USA"}, key: "KS", name: "Kansas", id: "kansas", attributes: {state: {}}'),
    ("create", 'parent: {path: "USA/KS"}, key: "Topeka", name: "Topeka", attributes: {city: {}}'),
    ("delete", 'node: {path: "USA/KS"}, policy: CASCADE'),
    ("create", 'key: "FR", name: "France again", attributes: {country: {}}'),
    ("restore", 'id: "location:kansas"'),
]


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (0, 2))])
def test_changes_arrive_in_spite_of_faults_and_stops_while_others_are_made(places: Places, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    # An id that filters and addresses have to quote.
    assert places.create("US/NY/Albany", "CITY", ', id: "a,`b]&&(é"')
    waiting, stops = list(EDITS), 0

    def fault() -> str | None:
        """One request of three goes wrong, and in one of four the tree changes while the follower is at work."""
        if waiting and rng.random() < 0.25:
            assert places.write(*waiting.pop(0))
        return rng.choice(["refuse", "lose", "cut"]) if rng.random() < 0.33 else None

    while waiting:
        assert places.write(*waiting.pop(0))
        places.engine.fault = fault
        for _ in range(2):
            try:
                places.follow(pauses=())
            except Unavailable:
                stops += 1
        places.engine.fault = lambda: None
        if rng.random() < 0.5:
            places.settle()
    places.settle()
    assert stops > 2


@pytest.mark.parametrize("lost", ["changes", "file"])
async def test_a_tree_whose_changes_or_cursors_are_lost_is_read_again(places: Places, lost: str) -> None:
    places.follow()
    saved = json.loads(places.file.read_text())["trees"]["US"]
    assert places.write("delete", 'node: {path: "US/NE/Omaha"}, policy: CASCADE')
    assert places.write("move", 'node: {path: "US/NY"}, to: {parent: {path: "FR"}}')
    if lost == "file":
        places.file.unlink()
    else:
        for key in (log_key("location#US", number) for number in range(1, 100)):
            if (await places.store.get([key], ReadUsage()))[0] is not None:
                await places.store.commit([Delete(key)])
    places.follow()
    assert places.indexed() == places.wanted()
    assert json.loads(places.file.read_text())["trees"]["US"] != saved


def test_a_rejected_document_stops_the_follower_before_the_cursor_is_saved(places: Places) -> None:
    places.follow()
    saved = json.loads(places.file.read_text())["trees"]
    assert places.create("US/NE/Kearney", "CITY")
    places.engine.fields.append("code")
    with pytest.raises(Refused, match="1 of 1 documents were rejected, the first: Field `code` is missing"):
        places.follow()
    assert json.loads(places.file.read_text())["trees"] == saved
    places.engine.fields.remove("code")
    places.follow()
    assert places.indexed() == places.wanted()


def test_the_program_continues_where_it_stopped_or_says_what_is_wrong(places: Places) -> None:
    places.engine.fault = lambda: "lose" if len(places.engine.requests) > 3 else None
    with pytest.raises(Unavailable):
        places.follow(pauses=())
    places.engine.fault = lambda: None
    assert places.indexed() != places.wanted()
    assert places.write("move", 'node: {path: "US/NE"}, to: {parent: {path: "FR"}}')
    refused = places.run("another key")
    assert (refused.returncode, "HTTP status 401" in refused.stderr) == (1, True)
    assert "Traceback" not in refused.stderr
    done = places.run(KEY)
    assert (done.returncode, done.stderr) == (0, "")
    assert places.indexed() == places.wanted()
