"""Shared parts of commands: arguments and options, a call with the store, and the handling of Ctrl-C."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from store.errors import BadInput, Uncertain
from store.text import shorten, suggestion

if TYPE_CHECKING:  # the help of a command does without the store
    from store.engine.protocol import Store
    from store.model.hierarchy import Hierarchy

EXIT_INTERRUPTED = 130

S = TypeVar("S", bound="Store")
T = TypeVar("T")

StoreUrl = Annotated[
    str | None,
    typer.Option("--store", help="Store URL instead of CLADE_STORE, such as sqlite:///clade.db.", metavar="URL"),
]


def _names(incomplete: str) -> list[str]:
    """The served hierarchies whose names begin so, for the completion of a shell."""
    return [name for name in served_hierarchies() if name.startswith(incomplete)]


HierarchyName = Annotated[
    str,
    typer.Argument(
        help="Name of a hierarchy, such as location; clade tree lists them.",
        metavar="HIERARCHY",
        autocompletion=_names,
    ),
]
OptionalHierarchy = Annotated[
    str | None,
    typer.Argument(
        help="Name of a hierarchy, such as location; all served ones by default.",
        metavar="HIERARCHY",
        autocompletion=_names,
    ),
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

    import asyncio  # which the help of a command does without

    return asyncio.run(run())


@contextmanager
def interruptible(message: Callable[[], str]) -> Iterator[None]:
    """End the command on Ctrl-C within the block; `message` says how far it came and how to continue.

    It is printed as well where the store was lost while it made a change.
    """
    try:
        yield
    except Uncertain:
        typer.echo(message(), err=True)
        raise
    except KeyboardInterrupt:
        typer.echo(message(), err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
