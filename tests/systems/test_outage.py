"""The engine goes and comes back under a running server: what needed it says so, and nothing has to be restarted."""

import asyncio

import httpx
import pytest

from graph.app import create_app
from store.connect import open_store
from tests.graph.execution.test_response_cache import plant
from tests.serving import await_ready, serving

QUERY = {"query": '{ __typename area(path: "a") { key children { nodes { key } } } }'}


@pytest.fixture
def engine(lasting_engine):
    with lasting_engine:
        yield lasting_engine


def test_an_outage_is_told_and_ends_without_a_restart(engine, monkeypatch):
    url = engine.address("clade")
    monkeypatch.setenv("CLADE_STORE", url)
    monkeypatch.setenv("CLADE_HIERARCHIES", "tests.model")
    asyncio.run(make(url))
    with serving(create_app()) as base, httpx.Client(base_url=base, timeout=60) as client:
        assert client.get("/readyz").status_code == 200
        fine = client.post("/graphql", json=QUERY).json()
        assert fine["data"]["area"]["children"]["nodes"] == [{"key": "b"}]

        engine.stop()
        assert client.get("/healthz").status_code == 200
        ready = client.get("/readyz")
        assert (ready.status_code, "127.0.0.1" in ready.text) == (503, False)
        broken = client.post("/graphql", json=QUERY).json()
        assert broken["data"] == {"__typename": "Query", "area": None}
        assert [error["extensions"]["code"] for error in broken["errors"]] == ["UNAVAILABLE"]
        assert "127.0.0.1" not in broken["errors"][0]["message"]

        engine.start()
        await_ready(f"{base}/readyz")
        assert client.post("/graphql", json=QUERY).json() == fine


async def make(url):
    async with open_store(url) as store:
        await store.create()
        await plant(store, "a", "a/b")


def test_a_table_that_is_not_there_is_told_too(engine, monkeypatch):
    monkeypatch.setenv("CLADE_STORE", engine.address("missing"))
    monkeypatch.setenv("CLADE_HIERARCHIES", "tests.model")
    with serving(create_app()) as base, httpx.Client(base_url=base, timeout=60) as client:
        assert client.get("/readyz").status_code == 503
        body = client.post("/graphql", json=QUERY).json()
        assert [error["extensions"]["code"] for error in body["errors"]] == ["UNAVAILABLE"]
        assert "missing" not in body["errors"][0]["message"]
