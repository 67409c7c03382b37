"""`clade serve`: what it prints, and errors before it listens."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator

import httpx
import pytest

from tests.conftest import CLADE
from tests.ports import free_port
from tests.serving import await_ready

START_SECONDS = 60
OMAHA = '{ city(path: "US/NE/Omaha") { name } }'


@contextlib.contextmanager
def serving(folder, store: str, *options: str) -> Iterator[tuple[str, object]]:
    """A server as a process of its own, ended as Ctrl-C does: its address, and how to learn what it said so far."""
    port = free_port()
    said = folder / "said.txt"
    with said.open("w") as output:
        process = subprocess.Popen(
            [CLADE, "serve", "--port", str(port), *options],
            env={**os.environ, "CLADE_STORE": store},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        end = time.monotonic() + START_SECONDS
        while not answers(f"http://127.0.0.1:{port}/healthz"):
            assert process.poll() is None, said.read_text()
            assert time.monotonic() < end, "The server does not start."
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}", said.read_text
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(START_SECONDS)
    assert "Traceback" not in said.read_text()


def answers(url: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(url).status_code == 200
    return False


def test_the_store_the_address_and_example_queries_are_printed(tmp_path, demo_store):
    with serving(tmp_path, demo_store) as (url, said):
        assert said().startswith(f"Explorer: {url}/\n\nClade serves {demo_store} at {url}/graphql\n")
        shown = [line.strip() for line in said().splitlines() if line.startswith("  {")]
        assert len(shown) == 4
        for query in shown:
            answer = httpx.post(f"{url}/graphql", json={"query": query}).json()
            assert "errors" not in answer
            assert all(answer["data"].values())


@pytest.mark.thorough
def test_an_unavailable_store_is_a_warning_and_is_used_later(tmp_path):
    store = f"sqlite:///{tmp_path / 'later.db'}"
    with serving(tmp_path, store) as (url, said):
        create = f"create it with: clade table create --store {store}"
        assert f'later.db"; {create}\nUntil the store is available, queries return errors.\n' in said()
        assert httpx.get(f"{url}/readyz").status_code == 503
        answer = httpx.post(f"{url}/graphql", json={"query": OMAHA}).json()
        assert answer["errors"][0]["extensions"]["code"] == "UNAVAILABLE"

        subprocess.run([CLADE, "table", "create", "--store", store], check=True, stdout=subprocess.DEVNULL, timeout=60)
        await_ready(f"{url}/readyz")
        assert httpx.post(f"{url}/graphql", json={"query": OMAHA}).json() == {"data": {"city": None}}


def test_a_used_port_is_an_error_of_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = subprocess.run([CLADE, "serve", "--port", str(port)], capture_output=True, text=True, timeout=60)
    sentence = "is not available (address already in use); use another --port or --host."
    assert (ended.returncode, ended.stderr) == (1, f"clade: 127.0.0.1:{port} {sentence}\n")
    assert ended.stdout == ""


def test_more_workers_than_the_machine_can_start_are_refused():
    ended = subprocess.run([CLADE, "serve", "--workers", "1000000"], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert re.fullmatch(
        r"clade: --workers 1,000,000 is too many for \d+ processors?; use at most \d+, best .*\n", ended.stderr
    )


@pytest.mark.thorough
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_printed_address_of_any_free_port_is_that_of_the_server(tmp_path, host):
    command = [CLADE, "serve", "--host", host, "--port", "0", "--store", f"sqlite:///{tmp_path}/clade.db"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            (url,) = re.findall(r"Explorer: (\S+)/", process.stdout.readline())
            await_ready(f"{url}/healthz", process)
            assert httpx.get(f"{url}/healthz").text == "ok"
        finally:
            process.kill()


@pytest.mark.thorough
def test_open_writing_on_a_public_address_is_changed_to_granted_with_a_warning(tmp_path, monkeypatch):
    monkeypatch.setenv("CLADE_WRITES", "on")
    store = f"sqlite:///{tmp_path}/clade.db"
    sentence = "0.0.0.0 is not a loopback address, so CLADE_WRITES=on is changed to granted."
    with serving(tmp_path, store, "--host", "0.0.0.0") as (_, said):  # noqa: S104
        assert sentence in said()
    with serving(tmp_path, store) as (_, said):
        assert "granted" not in said()
