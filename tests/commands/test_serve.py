"""`clade serve`: what it prints, and errors before it listens."""

import re
import socket
import subprocess

import httpx
import pytest
from typer.testing import CliRunner

from commands.main import app_of
from tests.conftest import CLADE
from tests.processes import Process, status_of
from tests.servers import served
from tests.waiting import eventually

OMAHA = '{ city(path: "US/NE/Omaha") { name } }'


@pytest.fixture
def said(tmp_path):
    """What a server said so far."""
    return (tmp_path / "said.txt").read_text


def test_the_store_the_address_and_example_queries_are_printed(tmp_path, demo_store, said):
    with served(tmp_path, demo_store) as (url, _):
        assert said().startswith(f"Explorer: {url}/\n\nClade serves {demo_store} at {url}/graphql\n")
        shown = [line.strip() for line in said().splitlines() if line.startswith("  {")]
        assert len(shown) == 4
        for query in shown:
            answer = httpx.post(f"{url}/graphql", json={"query": query}).json()
            assert "errors" not in answer
            assert all(answer["data"].values())


@pytest.mark.thorough
def test_an_unavailable_store_is_a_warning_and_is_used_later(tmp_path, said):
    store = f"sqlite:///{tmp_path / 'later.db'}"
    with served(tmp_path, store) as (url, _):
        create = f"create it with: clade table create --store {store}"
        assert f'later.db"; {create}\nUntil the store is available, queries return errors.\n' in said()
        assert httpx.get(f"{url}/readyz").status_code == 503
        answer = httpx.post(f"{url}/graphql", json={"query": OMAHA}).json()
        assert answer["errors"][0]["extensions"]["code"] == "UNAVAILABLE"

        subprocess.run([CLADE, "table", "create", "--store", store], check=True, stdout=subprocess.DEVNULL, timeout=60)
        eventually(lambda: status_of(f"{url}/readyz") == 200)
        assert httpx.post(f"{url}/graphql", json={"query": OMAHA}).json() == {"data": {"city": None}}


def test_a_used_port_is_an_error_of_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = CliRunner().invoke(app_of(["serve"]), ["serve", "--port", str(port)])
    sentence = "is not available (address already in use); use another --port or --host."
    assert (refused.output, str(refused.exception)) == ("", f"127.0.0.1:{port} {sentence}")


@pytest.mark.thorough
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_printed_address_of_any_free_port_is_that_of_the_server(tmp_path, host):
    command = [CLADE, "serve", "--host", host, "--port", "0", "--store", f"sqlite:///{tmp_path}/clade.db"]
    with Process(*command) as process:
        (url,) = eventually(lambda: re.findall(r"Explorer: (\S+)/\n", process.said()))
        eventually(lambda: status_of(f"{url}/healthz"))
        assert httpx.get(f"{url}/healthz").text == "ok"


@pytest.mark.thorough
def test_open_writing_on_a_public_address_is_changed_to_granted_with_a_warning(tmp_path, said):
    store = f"sqlite:///{tmp_path}/clade.db"
    sentence = "0.0.0.0 is not a loopback address, so CLADE_WRITES=on is changed to granted."
    with served(tmp_path, store, "--host", "0.0.0.0", CLADE_WRITES="on"):  # noqa: S104
        assert sentence in said()
    with served(tmp_path, store, CLADE_WRITES="on"):
        assert "granted" not in said()
