"""A server on every Python that the package supports: what it writes to its standard error is its log and nothing else.

A thorough run takes all that are on this machine, and installs the package for each once.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.engines import free_port
from tests.pythons import environment, versions

START_SECONDS = 120.0
STOP_SECONDS = 30.0
REQUESTS = [
    ({"query": "{ locations { nodes { path } } }"}, 200),
    ({"query": "{ locations { nodes { path history { nodes { number } } } } }"}, 200),
    ({"query": 'mutation { createLocation(key: "A", name: "A", level: COUNTRY) { node { path } } }'}, 200),
    ({"query": "{ nothing }"}, 200),
    ({"query": "{"}, 200),
    ({}, 400),
]


@contextlib.contextmanager
def served(folder: Path, said: Path, settings: dict[str, str]) -> Iterator[str]:
    """The URL of a server whose standard error goes to a file; it is stopped as by `docker stop`."""
    port = free_port()
    command = [folder / "clade", "serve", "--host", "127.0.0.1", "--port", str(port)]
    with said.open("wb") as output:
        process = subprocess.Popen(command, env=settings, stdout=subprocess.DEVNULL, stderr=output)
    try:
        url, end = f"http://127.0.0.1:{port}", time.monotonic() + START_SECONDS
        while not _answers(url):
            assert process.poll() is None, said.read_text()
            assert time.monotonic() < end, "The server does not start."
            time.sleep(0.1)
        yield url
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS) in (0, -signal.SIGTERM)
    finally:
        process.kill()
        process.wait()


def _answers(url: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"{url}/healthz").status_code == 200
    return False


@pytest.mark.parametrize("version", versions())
def test_a_server_logs_each_request_as_one_line_and_nothing_else(version: str, tmp_path: Path) -> None:
    folder, said = environment(version), tmp_path / "said.txt"
    settings = os.environ | {"CLADE_STORE": f"sqlite:///{tmp_path / 'clade.db'}", "CLADE_WRITES": "on"}
    told = subprocess.run([folder / "python", "--version"], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.split() == ["Python", version]
    subprocess.run([folder / "clade", "table", "create"], env=settings, check=True, timeout=START_SECONDS)
    with served(folder, said, settings) as url, httpx.Client(base_url=url, timeout=60) as client:
        for body, status in REQUESTS:
            answer = client.post("/graphql", json=body)
            assert answer.status_code == status, answer.text
    lines = [json.loads(line) for line in said.read_text().splitlines()]
    requests = [line for line in lines if line["logger"] == "clade.request" and line["path"] == "/graphql"]
    assert [line["status"] for line in requests] == [status for _, status in REQUESTS]
    assert [line for line in lines if line["level"] not in ("info", "debug")] == []
    assert "Traceback" not in said.read_text()
