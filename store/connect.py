"""Stores by URL: the only module that imports both engines."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from store.engine.protocol import COMMAND_PATIENCE, Patience, Store
from store.store_url import DynamoDBUrl, SQLiteUrl, parse_store_url


def open_store(url: str, *, keep_bytes: int = 0, patience: Patience = COMMAND_PATIENCE) -> Store:
    """The store at a URL, to be used as an async context manager; raises BadInput where it names none.

    With `keep_bytes` the nodes that it reads are to be cached, and SQLite caches decoded ones up to so many. `patience`
    is for a remote engine.
    """
    match parse_store_url(url):
        case SQLiteUrl(path):
            from store.sqlite.store import SQLiteStore

            return SQLiteStore(path, keep_bytes=keep_bytes)
        case DynamoDBUrl(table, region, endpoint):
            from store.dynamodb.store import DynamoDBStore

            return DynamoDBStore(table, region=region, endpoint=endpoint, keep_bytes=keep_bytes, patience=patience)


@asynccontextmanager
async def opened(url: str, *, make: bool = False) -> AsyncIterator[Store]:
    """The store at a URL while the block runs; raises as `health` does.

    With `make` an SQLite file is made where there is none; a table of DynamoDB, which costs money, never is.
    """
    async with open_store(url) as store:
        if make and isinstance(parse_store_url(url), SQLiteUrl):
            await store.create()
        else:
            await store.health()
        yield store
