"""Schema version: written when a table is created, checked when it is opened."""

import contextlib
import sqlite3
import uuid

import pytest

from store.connect import open_store, opened
from store.dynamodb.client import DynamoDBClient
from store.dynamodb.codec import encode
from store.engine.protocol import Store
from store.errors import WrongLayout
from store.metadata.layout_version import LAYOUT
from store.model.items import Put
from tests.engines import Engine


async def set_layout(url: str, version: object) -> None:
    """Have a table tell this version, or none."""
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite":
        with contextlib.closing(sqlite3.connect(rest[1:])) as file:
            file.execute(f"PRAGMA user_version = {version or 0}")
        return
    async with open_store(url) as store:
        where = {"TableName": store.table}  # type: ignore[attr-defined]
        aws: DynamoDBClient = store.client  # type: ignore[attr-defined]
        if version is None:
            await aws.call("DeleteItem", **where, Key=encode({"pk": "!", "sk": "layout"}))
        else:
            await aws.call("PutItem", **where, Item=encode({"pk": "!", "sk": "layout", "version": version}))  # type: ignore[dict-item]


async def test_a_new_table_has_the_layout_of_this_version(store: Store, store_url: str) -> None:
    assert (await store.describe())["layout"] == str(LAYOUT)
    async with opened(store_url):
        pass


async def test_a_table_without_a_version_is_refused(store: Store, store_url: str) -> None:
    await store.commit([Put({"pk": "id#location:x", "sk": "#", "tree": "location#US", "key": "#"})])
    await set_layout(store_url, None)
    for verb in (store.health, store.create):
        with pytest.raises(WrongLayout, match="has no layout version"):
            await verb()


@pytest.mark.parametrize("version", [LAYOUT - 1, LAYOUT + 1, 2**31 - 1])
async def test_the_table_of_another_version_is_refused_by_whatever_opens_it(
    store: Store, store_url: str, version: int
) -> None:
    await set_layout(store_url, version)
    for verb in (store.health, store.create):
        with pytest.raises(WrongLayout, match=f"layout {version}.*needs {LAYOUT}; use the version of Clade"):
            await verb()
    with pytest.raises(WrongLayout):
        async with opened(store_url):
            pass
    with pytest.raises(WrongLayout):
        async with opened(store_url, make=True):
            pass


@pytest.mark.parametrize("version", ["old", 0, -1, 1.5, [1]])
async def test_an_invalid_version_is_rejected(engine: Engine, version: object) -> None:
    url = engine.address(f"clade-{uuid.uuid4().hex}")
    async with open_store(url) as store:
        await store.create()
        await set_layout(url, version)
        with pytest.raises(WrongLayout):
            await store.health()
