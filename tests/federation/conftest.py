"""Clade on a socket with the places of these tests, and a gateway in front of it."""

import asyncio
import gzip
import json
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graph.app import create_app
from graph.hierarchies.registry import hierarchies
from tests.engines import Engine
from tests.federation.places import PLACES, Place, plant
from tests.processes import Process
from tests.serving import serving
from tests.waiting import eventually

HERE = Path(__file__).parent
NODE = shutil.which("node")

needs_npm = pytest.mark.skipif(
    not NODE or not all((HERE / "node_modules" / name).exists() for name in ("@apollo/gateway", "@graphql-hive")),
    reason="node or what tests/federation/package.json names is missing",
)


@dataclass(frozen=True)
class Operation:
    """One request: its document, its variables, `extensions.reads` of its answer, and the coding of its body."""

    query: str
    variables: dict[str, Any]
    reads: dict[str, Any]
    coding: bytes

    @property
    def representations(self) -> list[list[dict[str, Any]]]:
        """The representations of each of its `_entities`."""
        return [value for value in self.variables.values() if isinstance(value, list)]


@dataclass
class Recorder:
    """Asks for the reads of every operation and keeps them; everything else passes as it is."""

    app: ASGIApp
    operations: list[Operation] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        sent, answered = bytearray(), bytearray()

        async def receiving() -> Message:
            message = await receive()
            sent.extend(message.get("body", b""))
            return message

        async def sending(message: Message) -> None:
            answered.extend(message.get("body", b""))
            if message["type"] == "http.response.body" and not message.get("more_body"):
                coding = dict(scope["headers"]).get(b"content-encoding", b"")
                self._keep(decoded(sent), decoded(answered), coding)  # before the client has the response
            await send(message)

        await self.app({**scope, "headers": [*scope["headers"], (b"clade-reads", b"1")]}, receiving, sending)

    def _keep(self, parameters: dict[str, Any], answer: dict[str, Any], coding: bytes) -> None:
        reads = answer.get("extensions", {}).get("reads", {})
        self.operations.append(Operation(parameters["query"], parameters.get("variables") or {}, reads, coding))


def decoded(body: bytearray) -> Any:
    """The JSON of a body that may be compressed."""
    return json.loads(gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body)


@dataclass
class Served:
    """A GraphQL server: where it is, and what Clade was asked in its name."""

    url: str
    recorder: Recorder

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """The whole answer; what Clade was asked before is forgotten."""
        self.recorder.operations.clear()
        answer = httpx.post(self.url, json={"query": query, "variables": variables}, timeout=60)
        found: dict[str, Any] = answer.json()
        return found


@contextmanager
def clade_over(store_url: str, places: Iterable[Place], **settings: str) -> Iterator[Served]:
    """Clade over a table of its own that holds these places, as the settings make it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"STORE": store_url, **settings}.items():
            patch.setenv(f"CLADE_{name}", value)
        asyncio.run(plant(store_url, hierarchies(), places))
        recorder = Recorder(create_app())
    with serving(recorder) as url:
        yield Served(f"{url}/graphql", recorder)


@pytest.fixture(scope="module", params=["sqlite", "dynamodb"])
def store_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a store without a table."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path_factory.mktemp('federation') / 'clade.db'}"
    engine: Engine = request.getfixturevalue("engine")
    return engine.address(f"clade-{uuid.uuid4().hex}")


@pytest.fixture(scope="module")
def clade(store_url: str) -> Iterator[Served]:
    # Without a cache reads are counted as they come.
    with clade_over(store_url, PLACES, CACHE_MB="0") as served:
        yield served


@contextmanager
def gateway_before(clade: Served, tmp_path: Path, **neighbours: Any) -> Iterator[Served]:
    """A gateway before Clade and neighbours, each with its data: `shops=[…]`."""
    data = tmp_path / "neighbours.json"
    data.write_text(json.dumps(neighbours))
    command = ["node", str(HERE / "gateway.mjs"), clade.url, "--data", str(data), *neighbours]
    with running(command) as printed:
        assert "errors" not in printed, printed
        yield Served(printed["url"], clade.recorder)


@contextmanager
def running(command: list[str]) -> Iterator[dict[str, Any]]:
    """What a process prints as one line of JSON when it is ready; it is ended when the block ends."""
    with Process(*command) as process:

        def printed() -> list[str]:
            assert process.is_alive, process.said()
            return [line for line in process.said().splitlines(keepends=True) if line.startswith("{") and "\n" in line]

        yield json.loads(eventually(printed)[0])
