"""Store URLs, `sqlite:///FILE`, `sqlite://:memory:` or `dynamodb://TABLE?region=REGION&endpoint=URL`, and a store by
its URL: the only module that imports both engines.
"""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import parse_qsl

from store.engine import COMMAND_PATIENCE, Patience, Store
from store.errors import BadInput, shown_address

IN_MEMORY = ":memory:"


@dataclass(frozen=True, slots=True)
class SQLiteUrl:
    """The path of a file, relative to the working directory or absolute, or `:memory:`."""

    path: str

    def __post_init__(self) -> None:
        if not self.path:
            raise BadInput("The store URL has no file; write sqlite:///FILE.")

    @property
    def is_in_memory(self) -> bool:
        """Whether it is gone when it is closed, and only the process that has opened it sees it."""
        return self.path == IN_MEMORY


@dataclass(frozen=True, slots=True)
class DynamoDBUrl:
    """A table; region and credentials come from the usual AWS chain where the region is None.

    `endpoint` is the address of an engine that speaks DynamoDB's API, None for AWS.
    """

    table: str
    region: str | None = None
    endpoint: str | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_.-]{3,255}", self.table):
            shown = shown_address(f"//{self.table}").removeprefix("//")
            raise BadInput(f'"{shown}" is not the name of a table: 3 to 255 letters, digits, _, . and -.')

    @classmethod
    def parse(cls, address: str) -> "DynamoDBUrl":
        """The value of a URL without its scheme; raises BadInput for an option that is unknown or given twice."""
        table, _, query = address.partition("?")
        pairs = parse_qsl(query, keep_blank_values=True)
        options = dict(pairs)
        if len(options) < len(pairs):
            raise BadInput("The URL of the store has an option twice; leave one of them out.")
        if unknown := options.keys() - {"region", "endpoint"}:
            raise BadInput(f"A DynamoDB store has no option {', '.join(sorted(unknown))}; it has region and endpoint.")
        return cls(table, options.get("region") or None, options.get("endpoint") or None)


def parse_store_url(url: str) -> SQLiteUrl | DynamoDBUrl:
    """The value of a URL; raises BadInput where it names no store."""
    scheme, _, address = url.partition("://")
    match scheme:
        case "sqlite":
            return SQLiteUrl(address.removeprefix("/"))
        case "dynamodb":
            return DynamoDBUrl.parse(address)
        case _:
            raise BadInput(
                f'"{shown_address(url)}" is not a store; write sqlite:///FILE or dynamodb://TABLE?region=REGION.'
            )


def open_store(url: str, *, keep_bytes: int = 0, patience: Patience = COMMAND_PATIENCE) -> Store:
    """The store at a URL, to be used as an async context manager; raises BadInput where it names none.

    Of the nodes that it reads, up to `keep_bytes` are cached decoded. `patience` is for a remote engine.
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
