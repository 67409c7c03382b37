"""A server that writes, asked without HTTP: operations of two hierarchies over one store, with and without plans."""

import json
from typing import Any

from clade.examples.asset import AssetNode
from graph.compiler.plan_cache import PlanCache
from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from graph.operation.context import Context
from graph.operation.graphql_core import core_schema
from graph.schema import build_schema
from resolvers.session.cache import PageCache, TreeVersionCache
from resolvers.session.request import Request
from store.engine.protocol import Store
from store.writer.writer import Writer
from tests.graphql_core import body_of, executing
from tests.user_errors import take_user_errors, with_user_errors

CLASSES = [Location, CategoryNode, AssetNode]
SCHEMA, TYPES = build_schema(CLASSES)
DEFINITIONS = {cls.name: cls.definition() for cls in CLASSES}


class Clients:
    """Asks as clients do; each operation is a request of its own, and SQLite's answers are kept between them."""

    def __init__(self, store: Store, *, writes: bool = True, planned: bool = True) -> None:
        self.store = store
        self.writer = Writer(store) if writes else None
        self._kept = PageCache(10_000_000, TreeVersionCache(0.0))
        plans = PlanCache(core_schema(SCHEMA), TYPES, keep=100) if planned else None
        self._execution = executing(SCHEMA, self._context, plans=plans)
        self.request = Request(store, DEFINITIONS)

    def _context(self) -> Context:
        self.request = Request(self.store, DEFINITIONS, page_cache=self._kept, writer=self.writer)
        return Context(self.request, TYPES)

    async def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """The data of an answer without errors and user errors."""
        answer = await self._execution.execute(with_user_errors(query), variables, allow_mutations=True)
        assert "errors" not in body_of(answer), body_of(answer)["errors"]
        data: dict[str, Any] = json.loads(answer.content())["data"]
        assert (faults := take_user_errors(data)) == [], faults
        return data

    async def codes(self, query: str, **variables: Any) -> set[str]:
        """The codes of the errors and user errors of an answer."""
        answer = await self._execution.execute(with_user_errors(query), variables, allow_mutations=True)
        body = body_of(answer)
        told = take_user_errors(body.get("data") or {})
        return {error["extensions"]["code"] for error in body.get("errors", [])} | {one["code"] for one in told}

    async def faults(self, query: str, **variables: Any) -> list[dict[str, Any]]:
        """The user errors of a mutation, which has no other errors."""
        answer = await self._execution.execute(with_user_errors(query), variables, allow_mutations=True)
        assert "errors" not in body_of(answer), body_of(answer)["errors"]
        return take_user_errors(json.loads(answer.content())["data"])

    async def refusal(self, query: str, **variables: Any) -> tuple[str, str]:
        """The code and the sentence of an answer's only error or user error."""
        answer = await self._execution.execute(with_user_errors(query), variables, allow_mutations=True)
        errors = [error["extensions"] | error for error in body_of(answer).get("errors", [])]
        (error,) = errors or take_user_errors(json.loads(answer.content())["data"])
        return error["code"], error["message"]


async def plant(clients: Clients) -> None:
    """A country, two states, three cities, one of which has a part."""
    for parent, key, attributes in [
        (None, "US", {"country": {"iso3": "USA"}}),
        ("US", "NE", {"state": {"population": 1_900_000}}),
        ("US", "MO", {"state": {}}),
        ("US/NE", "Omaha", {"city": {"timezone": "America/Chicago"}}),
        ("US/NE", "Lincoln", {"city": {}}),
        ("US/MO", "St. Louis", {"city": {}}),
        ("US/NE/Omaha", "68118", {"postalCode": {}}),
    ]:
        await clients.ask(
            "mutation($parent: LocationBy, $key: String!, $attributes: LocationAttributes!) {"
            " createLocation(input: {parent: $parent, key: $key, name: $key, attributes: $attributes})"
            " { node { id } } }",
            parent=parent and {"path": parent},
            key=key,
            attributes=attributes,
        )
