"""What is asked, of Clade and in the words of other servers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from bench.places import Place

DESCENDANTS = 1_000
FIRST_CITIES = 20
MENU_LEVELS = 7  # of the taxonomy


@dataclass(frozen=True)
class Question:
    """One kind of request: what it is called, its text for Clade, and for servers that list without connections."""

    name: str
    what: str
    query: str
    peer_query: str | None = None


BREADCRUMB = Question(
    "Q1",
    "breadcrumb by path",
    "query Q1($path: Path!) { location(path: $path) { id name level population ancestors { id name level } } }",
    "query Q1($id: ID!) { location(id: $id) { id name level population ancestors { id name level } } }",
)
CHILDREN = Question(
    "Q2",
    "children of a country",
    "query Q2($path: Path!) { location(path: $path) { id name children { nodes { id name population } } } }",
    "query Q2($id: ID!) { location(id: $id) { id name children { id name population } } }",
)
NESTED = Question(
    "Q3",
    "country, regions, first 20 cities of each",
    "query Q3($path: Path!) { location(path: $path) { id name population children { nodes { id name population "
    f"children(first: {FIRST_CITIES}) {{ nodes {{ id name population }} }} }} }} }} }}",
    "query Q3($id: ID!) { location(id: $id) { id name population children { id name population "
    f"children(first: {FIRST_CITIES}) {{ id name population }} }} }} }}",
)
FLAT = Question(
    "Q4",
    "1,000 descendants, flat",
    f"query Q4($path: Path!) {{ location(path: $path) {{ id descendants(first: {DESCENDANTS}) "
    "{ nodes { id name level population code } } } }",
    f"query Q4($id: ID!) {{ location(id: $id) {{ id descendants(first: {DESCENDANTS}) "
    "{ id name level population code } } }",
)


def _menu(levels: int) -> str:
    return f"nodes {{ name path {f'children {{ {_menu(levels - 1)} }}' if levels > 1 else ''} }}"


MENU = Question("Q5", "the whole taxonomy, nested", f"query Q5 {{ categories {{ {_menu(MENU_LEVELS)} }} }}")
PLACES = (BREADCRUMB, CHILDREN, NESTED, FLAT)


def written(path: Sequence[str]) -> str:
    """A path as clients write it."""
    return "/".join(segment.replace("%", "%25").replace("/", "%2F") for segment in path)


def clade_id(place: Place) -> str:
    return f"location:{place.id}"


def peer_id(place: Place) -> str:
    return "#".join(place.path)


def body(question: Question, place: Place | None, *, is_peer: bool) -> bytes:
    """A request's body, in one line."""
    query = question.peer_query if is_peer else question.query
    variables = {} if place is None else {"id": peer_id(place)} if is_peer else {"path": written(place.path)}
    return orjson.dumps({"query": query, "variables": variables})


def plain(told: Any) -> Any:
    """An answer without the objects that Relay's connections put around their nodes."""
    if isinstance(told, dict):
        return plain(told["nodes"]) if told.keys() == {"nodes"} else {key: plain(one) for key, one in told.items()}
    return [plain(one) for one in told] if isinstance(told, list) else told
