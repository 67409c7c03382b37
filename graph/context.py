"""What the resolvers of one operation share."""

from typing import Any

from graphql import GraphQLResolveInfo

from graph.selection import Asked, Types
from resolvers.loaders import Loaders
from resolvers.request import Request


class Context:
    """A request, its dataloaders, and what its operation asks for."""

    def __init__(self, request: Request, types: Types) -> None:
        self.request = request
        self.loaders = Loaders(request)
        self._types = types
        self._asked: Asked | None = None

    def asked(self, info: GraphQLResolveInfo[Any]) -> Asked:
        if self._asked is None:
            self._asked = Asked(info, self._types)
        return self._asked

    def reads_report(self) -> dict[str, Any]:
        """`extensions.reads`: requests to the store, rounds of them, items they brought, and DynamoDB read units."""
        reads = self.request.reads
        return {
            "requests": reads.requests,
            "rounds": self.request.rounds,
            "items": reads.items,
            "units": reads.units,
        }
