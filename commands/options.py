"""Shared parts of commands: arguments and options, and a call with the store."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from commands import interrupt
from store.errors import BadInput, shorten, suggestion

if TYPE_CHECKING:  # the help of a command does without the store
    from store.engine import Store
    from store.model.hierarchy import Hierarchy

S = TypeVar("S", bound="Store")
T = TypeVar("T")

StoreUrl = Annotated[
    str | None,
    typer.Option("--store", help="Store URL instead of CLADE_STORE, such as sqlite:///clade.db.", metavar="URL"),
]
HierarchyName = Annotated[
    str,
    typer.Argument(help="Name of a hierarchy, such as location; clade tree lists them.", metavar="HIERARCHY"),
]
OptionalHierarchy = Annotated[
    str | None,
    typer.Argument(help="Name of a hierarchy, such as location; all served ones by default.", metavar="HIERARCHY"),
]


def store_url(given: str | None) -> str:
    """The URL that --store gives, else CLADE_STORE."""
    from graph.settings import Settings  # with pydantic, which the help of a command does without

    return given or Settings().store


def served_hierarchies() -> "dict[str, Hierarchy]":
    """The served hierarchies by name. Raises BadInput."""
    from graph.hierarchies.registry import hierarchies  # with pydantic and the modules of the hierarchies

    return hierarchies()


def hierarchy_named(name: str) -> "Hierarchy":
    """The served hierarchy of this name. Raises BadInput."""
    served = served_hierarchies()
    if name not in served:
        near = suggestion(name, served)
        raise BadInput(f'Unknown hierarchy "{shorten(name)}"; CLADE_HIERARCHIES has {", ".join(served)}.{near}')
    return served[name]


def with_store(opening: AbstractAsyncContextManager[S], work: Callable[[S], Awaitable[T]]) -> T:
    """The result of `work` with a store, which is open meanwhile."""

    async def run() -> T:
        async with opening as store:
            return await work(store)

    return interrupt.run(run())
