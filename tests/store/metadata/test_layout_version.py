"""Schema version: written when a table is created, checked when it is opened."""

import contextlib
import sqlite3
import uuid

import pytest

from store.connect import open_store, opened
from store.dynamodb.client import DynamoDBClient
from store.dynamodb.codec import encode
from store.engine import Store
from store.errors import WrongLayout
from store.metadata.tree_version import LAYOUT
from store.model.records import Put
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


@pytest.mark.parametrize("version", [None, LAYOUT - 1, LAYOUT + 1])
async def test_the_table_of_another_version_is_refused_by_whatever_opens_it(
    store: Store, store_url: str, version: int | None
) -> None:
    assert (await store.describe())["layout"] == str(LAYOUT)
    await store.commit([Put({"pk": "id#location:x", "sk": "#", "tree": "location#US", "key": "#"})])
    await set_layout(store_url, version)
    said = "has no layout version" if version is None else f"layout {version}.*needs {LAYOUT}; use the version of Clade"
    for verb in (store.health, store.create):
        with pytest.raises(WrongLayout, match=said):
            await verb()
    for make in (False, True):
        with pytest.raises(WrongLayout):
            async with opened(store_url, make=make):
                pass


async def test_an_invalid_version_is_rejected(engine: Engine) -> None:
    url = engine.address(f"clade-{uuid.uuid4().hex}")
    async with open_store(url) as store:
        await store.create()
        for version in ("old", 0, 1.5):
            await set_layout(url, version)
            with pytest.raises(WrongLayout):
                await store.health()
