"""`clade tree`: a subtree as text."""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Annotated

import typer

from commands.common import StoreUrl, hierarchy_named, hierarchy_names, served_hierarchies, store_url, with_store
from commands.output import AsJson, by_level, print_json, print_made, printable, say, styled
from resolvers.lists.arguments import ConnectionArguments, NoSelection, Relation, RelationKind
from resolvers.pages import read_all_pages
from resolvers.planner import list_requests
from resolvers.roots import undefined_hierarchies
from resolvers.session.budget import BudgetLimits
from resolvers.session.request import Request
from resolvers.trees import read_roots
from store.connect import opened
from store.engine import ReadUsage, Store
from store.errors import BadInput, BudgetExceeded, CladeError, shorten
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, Path, decode_segment, last_segment, node_key
from store.model.paths import format_path, parse_path
from store.model.records import Record

MAX_NODES = 100_000  # all are held in memory
MAX_NAME_CHARACTERS = 200

Children = dict[Key, list[Record]]

_CHILDREN = Relation(RelationKind.CHILDREN, ConnectionArguments(), NoSelection())
_ROOTS = Relation(RelationKind.ROOTS, ConnectionArguments(), NoSelection(), counts=True)


def tree(
    hierarchy: Annotated[
        str | None,
        typer.Argument(
            help="Name of a hierarchy, such as location; the served ones are listed by default.",
            metavar="HIERARCHY",
            autocompletion=hierarchy_names,
        ),
    ] = None,
    path: Annotated[
        str | None, typer.Argument(help="Path of a node, such as US/NE; all roots by default.", metavar="PATH")
    ] = None,
    depth: Annotated[int, typer.Option(help="Number of levels below it.", min=0, max=32)] = 1,
    as_json: AsJson = False,
    store: StoreUrl = None,
) -> None:
    """Show a node and its descendants, each with its level and the number of its descendants.

    A key that differs from the name stands after it: it is part of the path, and stays when only the name is changed.

    Without a hierarchy, list the served hierarchies with their levels. JSON has a line for each of them, or for each
    node, parents first.

    Example: clade tree location US/NE --depth 2
    """
    if hierarchy is None:
        for name, served in served_hierarchies().items():
            if as_json:
                print_json({"name": name, "levels": [*served.levels]})
                continue
            print_made(f"{styled(name, bold=True)}: {printable(', '.join(served.levels))}")
        return _say_undefined(store)
    definition = hierarchy_named(hierarchy)
    start = None if path is None else parse_path(path)
    try:
        tops, children = with_store(opened(store_url(store)), lambda store: _read(store, definition, start, depth))
    except BudgetExceeded:
        raise BadInput(
            f"The subtree has more than {MAX_NODES:,} nodes; use a smaller --depth or a longer path."
        ) from None
    if not tops:
        _say_undefined(store)
    for top in tops:
        if as_json:
            _print_nodes(definition, top, children)
            continue
        for line in _lines(definition, top, children):
            print_made(line)


def _say_undefined(store: str | None) -> None:
    """Say which hierarchies are stored and not served, such as a renamed one; nothing where there is no store."""
    from graph.hierarchies.registry import undefined_text

    async def find(store: Store) -> list[str]:
        return await undefined_hierarchies(store, served_hierarchies(), ReadUsage())

    with suppress(CladeError):
        for name in with_store(opened(store_url(store)), find):
            say(undefined_text(name), err=True)


async def _read(store: Store, hierarchy: Hierarchy, path: Path | None, depth: int) -> tuple[list[Record], Children]:
    """The top nodes, and the children of each node above the lowest shown level.

    They are read again if a large move committed meanwhile.
    """
    request = Request(store, {hierarchy.name: hierarchy}, BudgetLimits(MAX_NODES, read_units=math.inf))
    while True:
        tops = await _tops(request, hierarchy, path)
        children = await _children(request, tops, depth)
        if await request.state.are_moves_unchanged():
            return tops, children
        request.discard_reads()
        request.budget.reset()


async def _tops(request: Request, hierarchy: Hierarchy, path: Path | None) -> list[Record]:
    if path is None:
        return (await read_roots(request, hierarchy.name, _ROOTS)).records
    return [await node_at(request, hierarchy, path)]


async def node_at(request: Request, hierarchy: Hierarchy, path: Path) -> Record:
    """The node at a path, with its counts. Raises BadInput where there is none."""
    if (record := await request.state.node(node_key(hierarchy.name, path))) is None:
        raise BadInput(f'{hierarchy.name} has no node "{shorten(format_path(path), MAX_NAME_CHARACTERS)}".')
    return record


async def _children(request: Request, parents: Sequence[Record], depth: int) -> Children:
    """The children of these nodes down to `depth` levels; each level is read in one batch."""
    children: Children = {}
    for _ in range(depth):
        pages = await read_all_pages(request, list_requests(parents, _CHILDREN))
        for parent, page in zip(parents, pages, strict=True):
            if isinstance(page, Exception):
                raise page
            children[parent.key] = page.records
        parents = [child for parent in parents for child in children[parent.key]]
    return children


def _print_nodes(hierarchy: Hierarchy, record: Record, children: Children) -> None:
    """Print a node and its descendants as lines of JSON."""
    print_json(
        {
            "path": format_path(record.path),
            "key": record.path[-1],
            "level": hierarchy.any_level(record.level).label,
            "name": record.name,
            "id": record.id.partition(":")[2],  # as in exports
            "descendantCounts": by_level(hierarchy, record.descendant_counts),
        }
    )
    for child in children.get(record.key, []):
        _print_nodes(hierarchy, child, children)


def _lines(
    hierarchy: Hierarchy, record: Record, children: Children, branch: str = "", indent: str = ""
) -> Iterator[str]:
    """The line of a node, which begins with `branch`, and the lines of its descendants, with `indent`."""
    yield branch + _line(hierarchy, record)
    below = children.get(record.key, [])
    for child in below:
        corner, rail = ("└── ", "    ") if child is below[-1] else ("├── ", "│   ")
        yield from _lines(hierarchy, child, children, indent + corner, indent + rail)


def _line(hierarchy: Hierarchy, record: Record) -> str:
    """Name, key if it differs from the name, level, and the number of descendants by level."""
    key = decode_segment(last_segment(record.pk, record.sk))
    words = [styled(shorten(record.name, MAX_NAME_CHARACTERS), bold=True)]
    if key != record.name:
        words.append(printable(shorten(key, MAX_NAME_CHARACTERS)))
    words.append(styled(hierarchy.any_level(record.level).label, fg="cyan"))
    below, levels = record.descendant_counts, hierarchy.levels.values()
    if counts := [f"{count:,} {level.label}" for level in levels if (count := below.get(level.name))]:
        words.append(styled(f"({', '.join(counts)})", dim=True))
    return " ".join(words)
