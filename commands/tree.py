"""`clade tree`: a subtree in the terminal."""

import asyncio
import math
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from commands.importing.command import HierarchyName, StoreUrl, hierarchy_named
from graph.settings import Settings
from resolvers.pages import read_all_pages
from resolvers.planner import list_requests
from resolvers.planning.connection_arguments import ConnectionArguments
from resolvers.planning.relations import NoSelection, Relation, RelationKind
from resolvers.roots import read_roots
from resolvers.session.budget import BudgetLimits
from resolvers.session.request import Request
from store.connect import opened
from store.errors import BadInput, BudgetExceeded
from store.model.hierarchy import Hierarchy
from store.model.keys import (
    Key,
    Path,
    decode_segment,
    last_segment,
    node_key,
)
from store.model.paths import format_path, parse_path
from store.model.records import Record
from store.text import shorten

MAX_NODES = 100_000  # more nobody reads, and all are held at once
CHARACTERS_SHOWN = 200

Family = dict[Key, list[Record]]

_CHILDREN = Relation(RelationKind.CHILDREN, ConnectionArguments(), NoSelection())


def tree(
    hierarchy: HierarchyName,
    path: Annotated[str | None, typer.Argument(help="A node's path; all roots where it is left out.")] = None,
    depth: Annotated[int, typer.Option(help="How many levels below it to show.", min=0, max=32)] = 1,
    store: StoreUrl = None,
) -> None:
    """Show a node and what lies below it, with levels and with the number of nodes below each.

    Example: clade tree location US/NE --depth 2
    """
    kind = hierarchy_named(hierarchy)
    start = None if path is None else parse_path(path)
    try:
        tops, family = asyncio.run(_read(store or Settings().store, kind, start, depth))
    except BudgetExceeded:
        raise BadInput(
            f"These are more than {MAX_NODES:,} nodes; a lesser --depth or a longer path shows fewer."
        ) from None
    for top in tops:
        for line in _lines(kind, top, family):
            typer.echo(line)


async def _read(url: str, hierarchy: Hierarchy, path: Path | None, depth: int) -> tuple[list[Record], Family]:
    """The nodes at the top, and the children of every node above the lowest that is shown.

    They are read anew where a large move has flipped meanwhile.
    """
    async with opened(url) as store:
        request = Request(store, {hierarchy.name: hierarchy}, BudgetLimits(MAX_NODES, read_units=math.inf))
        while True:
            tops = await _tops(request, hierarchy, path)
            family = await _family(request, tops, depth)
            if await request.state.are_moves_unchanged():
                return tops, family
            request.discard_reads()
            request.budget.reset()


async def _tops(request: Request, hierarchy: Hierarchy, path: Path | None) -> list[Record]:
    if path is None:
        return (await read_roots(request, hierarchy.name, ConnectionArguments(), nodes=True, total=False)).records
    return [await _node(request, hierarchy, path)]


async def _node(request: Request, hierarchy: Hierarchy, path: Path) -> Record:
    key = node_key(hierarchy.name, path)
    if (record := await request.state.node(key)) is None:
        raise BadInput(f'{hierarchy.name} has no node "{shorten(format_path(path), CHARACTERS_SHOWN)}".')
    return record


async def _family(request: Request, parents: Sequence[Record], depth: int) -> Family:
    """The children of these nodes, of their children and so on: all of a level are read together."""
    family: Family = {}
    for _ in range(depth):
        pages = await read_all_pages(request, list_requests(parents, _CHILDREN))
        for parent, page in zip(parents, pages, strict=True):
            if isinstance(page, Exception):
                raise page
            family[parent.key] = page.records
        parents = [child for parent in parents for child in family[parent.key]]
    return family


def _lines(kind: Hierarchy, record: Record, family: Family, branch: str = "", indent: str = "") -> Iterator[str]:
    """A node's line behind its `branch`, and those of all below it behind their `indent`."""
    yield branch + _described(kind, record)
    children = family.get(record.key, [])
    for child in children:
        last = child is children[-1]
        yield from _lines(
            kind, child, family, indent + ("└── " if last else "├── "), indent + ("    " if last else "│   ")
        )


def _described(kind: Hierarchy, record: Record) -> str:
    """Name, key where it is another, level, and how many nodes lie below."""
    key = decode_segment(last_segment(record.pk, record.sk))
    words = [typer.style(shorten(record.name, CHARACTERS_SHOWN), bold=True)]
    if key != record.name:
        words.append(shorten(key, CHARACTERS_SHOWN))
    words.append(typer.style(record.level, fg="cyan"))
    if counts := [f"{count:,} {level}" for level in kind.levels if (count := record.below.get(level))]:
        words.append(typer.style(f"({', '.join(counts)})", dim=True))
    return " ".join(words)
