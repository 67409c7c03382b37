"""Stock server: Strawberry's own application over Clade's schema, store and batch functions, without compiled plans."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp
from strawberry.asgi import GraphQL

from graph.hierarchies.registry import served
from graph.operation.context import Context
from graph.schema import build_schema
from graph.settings import Settings
from resolvers.session.budget import BudgetLimits
from resolvers.session.cache import PageCache
from resolvers.session.request import Request
from store.connect import open_store


def app() -> ASGIApp:
    settings = Settings()
    classes = served(settings.hierarchies)
    definitions = {cls.name: cls.definition() for cls in classes}
    schema, types = build_schema(classes)
    store = open_store(settings.store, keep_bytes=settings.keep_bytes)
    page_cache = PageCache(settings.keep_bytes)

    class Stock(GraphQL[Any, Any]):
        async def get_context(self, request: Any, response: Any) -> Any:
            reads = Request(store, definitions, BudgetLimits(settings.max_nodes), page_cache=page_cache)
            return Context(reads, types)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with store:
            yield

    return Starlette(routes=[Route("/graphql", Stock(schema))], lifespan=lifespan)
