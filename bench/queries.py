"""Queries of the benchmark, for Clade and for servers with another schema."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from bench.places import Place

DESCENDANTS = 1_000
FIRST_CITIES = 20
MENU_LEVELS = 7  # of the taxonomy


@dataclass(frozen=True)
class Query:
    """One kind of request: its text for Clade, and its text for servers that list without connections."""

    name: str
    what: str
    text: str
    peer_text: str | None = None


BREADCRUMB = Query(
    "Q1",
    "breadcrumb by path",
    "query Q1($path: Path!) { location(path: $path) { id name level population ancestors { id name level } } }",
    "query Q1($id: ID!) { location(id: $id) { id name level population ancestors { id name level } } }",
)
CHILDREN = Query(
    "Q2",
    "children of a country",
    "query Q2($path: Path!) { location(path: $path) { id name children { nodes { id name population } } } }",
    "query Q2($id: ID!) { location(id: $id) { id name children { id name population } } }",
)
NESTED = Query(
    "Q3",
    "country, regions, first 20 cities of each",
    "query Q3($path: Path!) { location(path: $path) { id name population children { nodes { id name population "
    f"children(first: {FIRST_CITIES}) {{ nodes {{ id name population }} }} }} }} }} }}",
    "query Q3($id: ID!) { location(id: $id) { id name population children { id name population "
    f"children(first: {FIRST_CITIES}) {{ id name population }} }} }} }}",
)
FLAT = Query(
    "Q4",
    "1,000 descendants, flat",
    f"query Q4($path: Path!) {{ location(path: $path) {{ id descendants(first: {DESCENDANTS}) "
    "{ nodes { id name level population code } } } }",
    f"query Q4($id: ID!) {{ location(id: $id) {{ id descendants(first: {DESCENDANTS}) "
    "{ id name level population code } } }",
)


def _menu(levels: int) -> str:
    return f"nodes {{ name path {f'children {{ {_menu(levels - 1)} }}' if levels > 1 else ''} }}"


MENU = Query("Q5", "the whole taxonomy, nested", f"query Q5 {{ categories {{ {_menu(MENU_LEVELS)} }} }}")
PLACES = (BREADCRUMB, CHILDREN, NESTED, FLAT)


def written(path: Sequence[str]) -> str:
    """A path as clients write it."""
    return "/".join(segment.replace("%", "%25").replace("/", "%2F") for segment in path)


def clade_id(place: Place) -> str:
    return f"location:{place.id}"


def peer_id(place: Place) -> str:
    return "#".join(place.path)


def body(query: Query, place: Place | None, *, is_peer: bool) -> bytes:
    """The body of a request, in one line."""
    text = query.peer_text if is_peer else query.text
    variables = {} if place is None else {"id": peer_id(place)} if is_peer else {"path": written(place.path)}
    return orjson.dumps({"query": text, "variables": variables})


def plain(value: Any) -> Any:
    """A response with each connection replaced by the list of its nodes."""
    if isinstance(value, dict):
        return plain(value["nodes"]) if value.keys() == {"nodes"} else {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value
