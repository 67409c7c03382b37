"""Requests that find no open connection to DynamoDB, as the first after some seconds does."""

import asyncio
import uuid

import httpx
import pytest

from graph.app import create_app
from graph.settings import Settings
from store.connect import open_store
from tests.abuse.test_two_servers import CLADES
from tests.engines import Engine
from tests.serving import serving

FIELDS = [
    'location(path: "US") { name }',
    'node(id: "location:none") { id }',
    "locations { totalCount }",
    'searchLocations(text: "omaha") { complete }',
    "locations(level: CITY, where: {near: {latitude: 41, longitude: -96, kilometers: 9}}) { totalCount }",
    "changes(hierarchy: LOCATION) { cursor }",
    "moves(hierarchy: LOCATION) { id }",
    'move(id: "0000000000ab") { id }',
    'deletedNode(id: "location:none") { path }',
]


def test_any_field_may_be_the_one_that_opens_a_connection(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    url = engine.address(f"idle-{uuid.uuid4().hex}")

    async def create() -> None:
        async with open_store(url) as store:
            await store.create()

    asyncio.run(create())
    monkeypatch.setattr("store.dynamodb.http.KEEP_SECONDS", 0.0)
    with serving(create_app(Settings(store=url)).asgi, **CLADES) as server:
        answers = {field: httpx.post(f"{server}/graphql", json={"query": f"{{ {field} }}"}).json() for field in FIELDS}
    assert {field: answer["errors"] for field, answer in answers.items() if "errors" in answer} == {}
