"""Smoke test of every Python: what is installed imports, serves and writes, and its standard error is its log alone.

`scripts/test --python 3.13` takes one; a thorough run takes all that are on this machine. For another Python than the
running one the wheel is built and installed into `.cache/pythons`.
"""

import json
import os
import signal
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.processes import Server
from tests.pythons import environment, versions

START_SECONDS = 120.0
PLACES = [
    {"path": ["US"], "level": "COUNTRY", "name": "United States", "names": {"de": "Vereinigte Staaten"}},
    {"path": ["US", "NE"], "level": "STATE", "name": "Nebraska"},
    {"path": ["US", "NE", "Omaha"], "level": "CITY", "name": "Omaha", "latitude": 41.26, "longitude": -95.94},
]
ANSWERED = [
    '{ location(path: "US/NE/Omaha") { id name(languages: ["de"]) ancestors { path } parent { childCount } } }',
    '{ location(path: "US") { descendants(orderBy: [{field: NAME}]) { nodes { path } } } }',
    '{ searchLocations(text: "oma") { nodes { path } } }',
    "{ locations(level: CITY, where: {near: {latitude: 41, longitude: -96, kilometers: 100}}) { nodes { path } } }",
    'mutation { moveLocation(input: {node: {path: "US"}, key: "USA"}) { node { path } } }',
    '{ changes(hierarchy: LOCATION, tree: "USA") { changes { event path } } locations { nodes { path } } }',
    "{ __schema { queryType { name } } }",
]
REFUSED = ["{ nothing }", "{"]


@pytest.mark.parametrize("version", versions())
def test_a_python_imports_serves_and_writes_and_says_no_more_than_its_log(version: str, tmp_path: Path) -> None:
    folder = environment(version)
    settings = os.environ | {"CLADE_STORE": f"sqlite:///{tmp_path / 'clade.db'}", "CLADE_WRITES": "on"}
    told = subprocess.run([folder / "python", "--version"], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.split() == ["Python", version]
    places = tmp_path / "places.jsonl"
    places.write_text("".join(json.dumps(place) + "\n" for place in PLACES))
    importing = [folder / "clade", "import", "location", places]
    made = subprocess.run(importing, env=settings, capture_output=True, text=True, timeout=START_SECONDS)
    assert (made.returncode, made.stderr) == (0, ""), made
    server = Server(clade=folder / "clade", environment=settings)
    server.stdout = subprocess.DEVNULL
    with server, httpx.Client(base_url=server.url, timeout=60) as client:
        for query in (*ANSWERED, *REFUSED):
            answer = client.post("/graphql", json={"query": query})
            assert (answer.status_code, "errors" in answer.json()) == (200, query in REFUSED), answer.text
        assert client.post("/graphql", json={}).status_code == 400
        server.send(signal.SIGTERM)  # as `docker stop` does
        assert server.wait() in (0, -signal.SIGTERM)
    lines = [json.loads(line) for line in server.said().splitlines()]
    requests = [line for line in lines if line["logger"] == "clade.request" and line["path"] == "/graphql"]
    assert [line["status"] for line in requests] == [200] * len((*ANSWERED, *REFUSED)) + [400]
    # A request that is only slow is a warning as well.
    quiet = [line for line in lines if line["level"] in ("info", "debug") or line.get("status", 500) < 500]
    assert [line for line in lines if line not in quiet] == []
    assert "Traceback" not in server.said()
