"""Parts of several commands: arguments and options, a call with the store, and the end by Ctrl-C."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Annotated, TypeVar

import typer

from graph.hierarchies.registry import hierarchies
from store.engine.protocol import Store
from store.errors import BadInput
from store.model.hierarchy import Hierarchy
from store.text import shorten, suggestion

EXIT_INTERRUPTED = 130

S = TypeVar("S", bound=Store)
T = TypeVar("T")

StoreUrl = Annotated[
    str | None,
    typer.Option("--store", help="Store URL instead of CLADE_STORE, such as sqlite:///clade.db.", metavar="URL"),
]
HierarchyName = Annotated[str, typer.Argument(help="Name of a hierarchy, such as location.", metavar="HIERARCHY")]
OptionalHierarchy = Annotated[
    str | None,
    typer.Argument(help="Name of a hierarchy, such as location; all served ones by default.", metavar="HIERARCHY"),
]


def hierarchy_named(name: str) -> Hierarchy:
    """The served hierarchy of this name. Raises BadInput."""
    served = hierarchies()
    if name not in served:
        near = suggestion(name, served)
        raise BadInput(f'Unknown hierarchy "{shorten(name)}"; CLADE_HIERARCHIES has {", ".join(served)}.{near}')
    return served[name]


def with_store(opening: AbstractAsyncContextManager[S], work: Callable[[S], Awaitable[T]]) -> T:
    """The result of `work` with a store, which is open meanwhile."""

    async def run() -> T:
        async with opening as store:
            return await work(store)

    return asyncio.run(run())


@contextmanager
def interruptible(message: Callable[[], str]) -> Iterator[None]:
    """End the command on Ctrl-C within the block; `message` says how far it came and how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(message(), err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
