"""A server that writes and listens on this machine alone answers nobody who came by another name."""

import httpx
import pytest

from graph.app import served_app
from graph.loopback import is_loopback
from tests.serving import serving


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8000", "127.0.0.1", "127.0.0.1:8000", "127.9.9.9", "[::1]", "[::1]:8"]
)
def test_names_of_this_machine_are_loopback(host):
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "evil.example:8000", "127.0.0.1.evil.example", "10.0.0.1", "[::2]", "::", "localhost.evil"],
)
def test_other_names_are_not(host):
    assert not is_loopback(host)


@pytest.mark.parametrize(("writes", "status"), [("on", 403), ("off", 200)])
def test_only_a_server_that_writes_looks_at_the_name_it_was_asked_by(demo_store, monkeypatch, writes, status):
    monkeypatch.setenv("CLADE_STORE", demo_store)
    monkeypatch.setenv("CLADE_WRITES", writes)
    with serving(served_app()) as url:
        question = {"query": "{ __typename }"}
        assert httpx.post(f"{url}/graphql", json=question).status_code == 200
        answer = httpx.post(f"{url}/graphql", json=question, headers={"host": "evil.example"})
        assert answer.status_code == status
        if status == 403:
            assert answer.json()["errors"][0]["extensions"] == {"code": "FORBIDDEN"}
            assert answer.headers["x-content-type-options"] == "nosniff"
