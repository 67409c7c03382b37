"""The application over a schema of a few fields, for tests of HTTP itself."""

import asyncio
from typing import Any, Self

import strawberry
from starlette.types import ASGIApp
from strawberry.scalars import JSON

from graph.auth.authentication import Authenticator
from graph.compiler.plan_cache import PlanCache
from graph.execution.operation import Execution
from graph.hierarchies.example_queries import Example
from graph.operation import context as operation_context
from graph.operation.document_limits import DocumentLimits
from graph.operation.graphql_core import core_schema
from graph.server.admission import ConcurrencyLimiter
from graph.server.asgi_app import build_app
from graph.server.event_stream import EventStreams
from graph.server.lifecycle import GracefulShutdown
from graph.settings import Settings
from resolvers.access.api_key_auth import ApiKeyAuthenticator
from resolvers.past.change_follower import ChangeFollower
from resolvers.session.request import Request
from store.errors import BadPath, Unavailable

MAX_BODY_BYTES = 40_000


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

    @strawberry.mutation
    def unwritable(self) -> JSON:
        return object()


class Context(operation_context.Context):
    """The context of a request that reads nothing, with reads to report all the same."""

    def __init__(self) -> None:
        super().__init__(Request(SmallStore(), {}), {})

    def calls_report(self) -> dict[str, Any]:
        calls = [
            {"operation": "BatchGetItem", "index": "table", "keys": ['pk = "box" AND sk = "#"'] * 2, "moreKeys": 3}
            | {"consistentRead": True, "items": 5, "units": 0.5, "round": 1},
            {"operation": "Query", "index": "by_parent", "keyCondition": 'parent = "box#"', "limit": 21}
            | {"consistentRead": False, "items": 2, "units": 0.5, "round": 1},
        ]
        return {"fromCache": {"pages": 4, "records": 9}, "calls": calls, "moreCalls": 8}

    def reads_report(self) -> dict[str, Any]:
        return {"requests": 2, "rounds": 1, "items": 7, "units": 1}


class SmallStore:
    """As much of a store as the application itself asks for."""

    def __init__(self) -> None:
        self.is_open = False
        self.down = False

    is_remote = True

    def token(self) -> None:
        """It has none, as DynamoDB."""

    async def health(self) -> None:
        if self.down:
            raise Unavailable("The table does not answer.")

    async def __aenter__(self) -> Self:
        self.is_open = True
        return self

    async def __aexit__(self, *_: Any) -> None:
        self.is_open = False


schema = strawberry.Schema(Query, Mutation)


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
    execution = execution or Execution(schema, Context, PlanCache(core_schema(schema), {}), limits=limits)
    streams = EventStreams(execution, ChangeFollower(store), usual["limiter"], usual["drain"])
    return build_app(whole, store, execution, streams=streams, **usual)
