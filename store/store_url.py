"""Store URL: `sqlite:///FILE`, `sqlite://:memory:` or `dynamodb://TABLE?region=REGION&endpoint=URL`, as one value."""

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl

from store.errors import BadInput

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
            raise BadInput(f'"{self.table}" is not the name of a table: 3 to 255 letters, digits, _, . and -.')

    @classmethod
    def parse(cls, address: str) -> "DynamoDBUrl":
        """The value of a URL without its scheme; raises BadInput for an unknown option."""
        table, _, query = address.partition("?")
        options = dict(parse_qsl(query, keep_blank_values=True))
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
            raise BadInput(f'"{url}" is not a store; write sqlite:///FILE or dynamodb://TABLE?region=REGION.')
