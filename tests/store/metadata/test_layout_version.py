"""Schema version: written when a table is created, checked when it is opened."""

import contextlib
import sqlite3

import pytest

from store.connect import open_store, opened
from store.dynamodb.client import DynamoDBClient
from store.dynamodb.codec import encode
from store.engine import Store
from store.errors import WrongLayout
from store.metadata.tree_version import LAYOUT
from store.model.records import Put


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


@pytest.mark.both_stores
async def test_the_table_of_another_version_is_refused_by_whatever_opens_it(store: Store, store_url: str) -> None:
    assert (await store.describe())["layout"] == str(LAYOUT)
    await store.commit([Put({"pk": "id#location:x", "sk": "#", "tree": "location#US", "key": "#"})])
    versions: dict[object, str] = {None: "has no layout version"}
    versions |= {one: f"layout {one}.*needs {LAYOUT}; use the version of Clade" for one in (LAYOUT - 1, LAYOUT + 1)}
    if not store_url.startswith("sqlite"):  # which has whole numbers alone
        versions |= {"old": "", 0: "", 1.5: ""}
    for version, said in versions.items():
        await set_layout(store_url, version)
        for verb in (store.health, store.create):
            with pytest.raises(WrongLayout, match=said):
                await verb()
        for make in (False, True):
            with pytest.raises(WrongLayout):
                async with opened(store_url, make=make):
                    pass
