"""The application over a schema of a few fields, for tests of HTTP itself."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import httpx
import strawberry
from starlette.types import ASGIApp
from strawberry.scalars import JSON

from graph.auth.authentication import Authenticator
from graph.execution.operation import Execution
from graph.hierarchies.attribute import Long
from graph.hierarchies.examples import Example
from graph.operation.limits import DocumentLimits
from graph.server.asgi_app import build_app
from graph.server.events import EventStreams
from graph.server.lifecycle import GracefulShutdown
from graph.server.sending import ConcurrencyLimiter
from graph.settings import Settings
from graph.types.fields import SCALARS
from resolvers.access.callers import ApiKeyAuthenticator, Caller
from resolvers.changes import ChangeFollower
from resolvers.session.budget import Budget
from store.errors import BadPath, Unavailable
from tests.serving import serving

MAX_BODY_BYTES = 40_000
BEGUN: list[str] = []
"""The slow fields that have begun."""


@strawberry.type
class Box:
    name: str = "box"

    @strawberry.field
    def inner(self) -> "Box":
        return Box()


@strawberry.type
class Query:
    @strawberry.field(description="Says hello, some times.")
    async def hello(self, times: int = 1, name: str = "world") -> str:
        return " ".join([f"Hello {name}!"] * times)

    @strawberry.field
    def long(self, value: Long) -> Long:
        return value

    @strawberry.field
    def longs(self, values: list[Long]) -> list[Long]:
        return values

    @strawberry.field
    def box(self) -> Box:
        return Box()

    @strawberry.field
    def refused(self) -> str | None:
        raise BadPath('"US//NE" has an empty segment.')

    @strawberry.field
    def broken(self) -> str | None:
        raise KeyError("a secret of the server")

    @strawberry.field
    def broken_without_null(self) -> str:
        raise KeyError("a secret of the server")

    @strawberry.field
    async def slow(self) -> str:
        BEGUN.append("slow")
        await asyncio.sleep(0.3)
        return "at last"

    @strawberry.field
    def unwritable(self) -> JSON:
        return object()


@strawberry.type
class Mutation:
    @strawberry.mutation
    def change(self) -> int:
        return 1


class Reads:
    """The part of a request that an execution calls: there is nothing that reads, or is hidden from anybody."""

    grants = None
    validating_partitions: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.budget = Budget()

    def act_for(self, caller: Caller) -> None: ...

    def stop(self) -> None: ...

    def trace_reads(self) -> None: ...

    @property
    def state(self) -> Self:
        return self

    async def are_moves_unchanged(self) -> bool:
        return True


class Context:
    def __init__(self) -> None:
        self.request = Reads()

    def snapshot_if_torn(self) -> None:
        """There is nothing that anybody writes."""

    def calls_report(self) -> dict[str, object]:
        calls = [
            {"operation": "BatchGetItem", "index": "table", "keys": ['pk = "box" AND sk = "#"'] * 2, "moreKeys": 3}
            | {"consistentRead": True, "items": 5, "units": 0.5, "round": 1},
            {"operation": "Query", "index": "by_parent", "keyCondition": 'parent = "box#"', "limit": 21}
            | {"consistentRead": False, "items": 2, "units": 0.5, "round": 1},
        ]
        return {"fromCache": {"pages": 4, "records": 9}, "calls": calls, "moreCalls": 8}

    def reads_report(self) -> dict[str, object]:
        return {"requests": 2, "rounds": 1, "items": 7, "units": 1}


class SmallStore:
    """As much of a store as the application itself asks for."""

    def __init__(self) -> None:
        self.is_open = False
        self.down = False

    async def health(self) -> None:
        if self.down:
            raise Unavailable("The table does not answer.")

    async def __aenter__(self) -> Self:
        self.is_open = True
        return self

    async def __aexit__(self, *_: Any) -> None:
        self.is_open = False


schema = strawberry.Schema(Query, Mutation, scalar_overrides=SCALARS)


async def no_examples() -> list[Example]:
    return []


def small_app(
    store: Any,
    limits: DocumentLimits = DocumentLimits(),
    settings: dict[str, Any] | None = None,
    execution: Execution | None = None,
    **parts: Any,
) -> ASGIApp:
    usual = {
        "examples": no_examples,
        "limiter": ConcurrencyLimiter(100),
        "drain": GracefulShutdown(),
        "authenticator": Authenticator(ApiKeyAuthenticator(store)),
    } | parts
    whole = Settings(max_body_bytes=MAX_BODY_BYTES, **settings or {})
    execution = execution or Execution(schema, {}, Context, limits=limits)
    streams = EventStreams(execution, ChangeFollower(store), usual["limiter"], usual["drain"])
    return build_app(whole, store, execution, streams=streams, **usual)


@contextmanager
def asking(store: SmallStore | None = None, *parts: Any, **more: Any) -> Iterator[httpx.Client]:
    """A client of a server of the small application, until the block ends."""
    with serving(small_app(store or SmallStore(), *parts, **more)) as url, httpx.Client(base_url=url) as client:
        yield client
