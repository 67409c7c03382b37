"""Stores by URL: the only module that imports both engines."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from store.engine.protocol import Store
from store.errors import BadInput


def open_store(url: str, *, keep_bytes: int = 0) -> Store:
    """The store at an address, to be used as an async context manager.

    `sqlite:///clade.db` is a file beside the working directory, `sqlite:////srv/clade.db` an absolute one,
    `sqlite://:memory:` lives as long as it is open. `dynamodb://table?region=eu-west-1&endpoint=http://…` is a table of
    DynamoDB or of what speaks its API; region and credentials come from the usual AWS chain where they are left out.
    Of the nodes that it reads, up to `keep_bytes` are kept decoded.
    """
    scheme, _, rest = url.partition("://")
    match scheme:
        case "sqlite":
            from store.sqlite.store import SQLiteStore

            return SQLiteStore(rest if rest == ":memory:" else rest.removeprefix("/"), keep_bytes=keep_bytes)
        case "dynamodb":
            from store.dynamodb.store import DynamoDBStore

            return DynamoDBStore.at(rest, keep_bytes=keep_bytes)
        case _:
            raise BadInput(f'"{url}" is no store; write sqlite:///FILE or dynamodb://TABLE?region=REGION.')


@asynccontextmanager
async def opened(url: str, *, make: bool = False) -> AsyncIterator[Store]:
    """The store at an address while the block runs; raises as `health` does.

    With `make` an SQLite file is made where there is none; a table of DynamoDB, which costs money, never is.
    """
    async with open_store(url) as store:
        if make and url.startswith("sqlite:"):
            await store.create()
        else:
            await store.health()
        yield store
