"""A server that writes, asked without HTTP: operations of two hierarchies over one store."""

import json
from typing import Any

from examples.asset import AssetNode
from graph.execution.operation import Execution
from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from graph.operation.context import Context
from resolvers.access.grants import Grants
from resolvers.session.cache import PageCache, TreeVersionCache
from resolvers.session.request import Request
from store.engine import Store
from store.writing.writer import Writer
from tests.answers import answer_to
from tests.schemas import schema_of
from tests.user_errors import take_user_errors, with_user_errors

CLASSES = [Location, CategoryNode, AssetNode]
DEFINITIONS = {cls.name: cls.definition() for cls in CLASSES}


class Clients:
    """Asks as clients do; each operation is a request of its own, and SQLite's answers are kept between them."""

    def __init__(self, store: Store, *, writes: bool = True, grants: Grants | None = None) -> None:
        self.store, self._grants = store, grants
        self._writer = Writer(store) if writes else None
        self._kept = PageCache(10_000_000, TreeVersionCache(0.0))
        self._execution = Execution(*schema_of(*CLASSES), self._context)
        self.request = Request(store, DEFINITIONS)

    def _context(self) -> Context:
        self.request = Request(self.store, DEFINITIONS, page_cache=self._kept, writer=self._writer, grants=self._grants)
        return Context(self.request)

    async def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """The data of an answer without errors and user errors."""
        data, faults = await self._told(query, variables)
        assert faults == [], faults
        return data

    async def faults(self, query: str, **variables: Any) -> list[dict[str, Any]]:
        """The user errors of a mutation, which has no other errors."""
        return (await self._told(query, variables))[1]

    async def _told(self, query: str, variables: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The data of an answer without errors, and its user errors."""
        answer = await answer_to(self._execution, with_user_errors(query), variables, allow_mutations=True)
        assert "errors" not in answer.body, answer.body["errors"]
        data: dict[str, Any] = json.loads(answer.content())["data"]
        return data, take_user_errors(data)

    async def codes(self, query: str, **variables: Any) -> set[str]:
        """The codes of the errors and user errors of an answer."""
        answer = await answer_to(self._execution, with_user_errors(query), variables, allow_mutations=True)
        faults = take_user_errors(json.loads(answer.content()).get("data"))
        return {error["extensions"]["code"] for error in answer.body.get("errors", [])} | {
            one["code"] for one in faults
        }

    async def errors(self, query: str, **variables: Any) -> list[dict[str, Any]]:
        """The errors of an answer."""
        answer = await answer_to(self._execution, query, variables, allow_mutations=True)
        return list(answer.body.get("errors", []))

    async def refusal(self, query: str, **variables: Any) -> tuple[str, str]:
        """The code and the sentence of an answer's only error or user error."""
        answer = await answer_to(self._execution, with_user_errors(query), variables, allow_mutations=True)
        errors = [error["extensions"] | error for error in answer.body.get("errors", [])]
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
