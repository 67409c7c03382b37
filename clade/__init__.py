"""Clade: hierarchies as GraphQL out of DynamoDB or SQLite.

Hierarchies are written with `Node`, `attribute` and the types of attributes; `create_app(Settings(…))` makes the ASGI
application that serves them. What is not listed here may change between versions.
"""

from typing import TYPE_CHECKING, Any

from graph.hierarchies.attribute import Date, DateTime, Decimal, Localized, Long, Money, Url, attribute
from graph.hierarchies.node import Node, computed

if TYPE_CHECKING:
    from graph.app import create_app
    from graph.settings import Settings

__all__ = [
    "Date", "DateTime", "Decimal", "Localized", "Long", "Money", "Node", "Settings", "Url", "attribute", "computed",
    "create_app",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load the application and its settings when they are used: modules of hierarchies need neither."""
    match name:
        case "create_app":
            from graph.app import create_app

            return create_app
        case "Settings":
            from graph.settings import Settings

            return Settings
    raise AttributeError(f"module 'clade' has no attribute '{name}'")
