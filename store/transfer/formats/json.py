"""JSON documents: trees of nodes with their children, lists of objects as tables, and GeoJSON."""

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import orjson

from store.errors import BadInput, shorten, shown
from store.model.hierarchy import Hierarchy
from store.transfer.formats.columns import fold, json_text
from store.transfer.formats.lines import json_lines
from store.transfer.formats.source import Doubt, Guess, csv_line, opened
from store.transfer.formats.tables import MAX_DEPTH, Table, TableRow, checked_header, flat
from store.transfer.rows import Rejection

MAX_JSON_BYTES = 200_000_000  # of a document, which is in memory as a whole
CHILDREN = "children"
LINE_ENDINGS = (".geojsonl", ".geojsons", ".ndgeojson")
OTHER_LIST = (
    '{file} is a tree: "{name}" has objects that would be lost. The nodes of a tree are in lists "children", each with '
    'a "key" or "name", and need no --level; a table has --level with a column of each list.'
)
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"(\s*+:)?', re.DOTALL)  # with a colon the name of a value
_NAMED = frozenset(("key", "name"))
_TITLES = frozenset(("name", "title", "label", "text", "caption", "displayname"))  # folded
_OWN = _NAMED | {"path", "level"}


_TableObject = tuple[int, Any, dict[str, object] | None, str | None]  # number, value, row, what is wrong


def read_objects(file: Path) -> list[Any]:
    """The objects of a document: of a list, of the only list in an object, or of an object of nodes by key; else the
    object itself.
    """
    document = read_document(file)
    if isinstance(document, list):
        return document
    if not isinstance(document, dict):
        raise BadInput(f"{file.name} is neither a list of objects nor an object.")
    if _OWN.isdisjoint(document):
        roots = [value for value in document.values() if isinstance(value, list) and is_nodes(value)]
        if len(roots) == 1:
            return roots[0]
        for found in (document.get(CHILDREN), document):
            nodes = by_key(found)
            if nodes and all("level" in one or CHILDREN in one for one in nodes):
                return nodes
    lists = [value for value in document.values() if isinstance(value, list)]
    return lists[0] if len(lists) == 1 and len(document) == 1 else [document]


def is_nodes(objects: list[Any]) -> bool:
    """Whether objects are nodes, with a path, or a key or name and a level or children, and not rows of a table."""
    first = next((one for one in objects if isinstance(one, dict)), {})
    if "path" in first or ("level" in first and not _NAMED.isdisjoint(first)):
        return True
    nodes = (one for one in objects if isinstance(one, dict) and isinstance(one.get(CHILDREN), list | dict))
    return not all(map(_NAMED.isdisjoint, nodes))


def check_nodes(
    hierarchy: Hierarchy, file: Path, objects: Sequence[Any], children: Collection[str] = (CHILDREN,)
) -> None:
    """Raise Doubt for nodes with a list of others that has another name than those of `children`."""
    waiting = [*objects]
    while waiting:
        fields = waiting.pop()
        for name, value in fields.items() if isinstance(fields, dict) else ():
            if name in children and isinstance(value, list | dict):
                waiting += value if isinstance(value, list) else value.values()
            elif (
                isinstance(value, list)
                and any(isinstance(one, dict) and not _NAMED.isdisjoint(one) for one in value)
                and not any(level.attribute(name) for level in hierarchy.levels.values())
            ):
                if children == (CHILDREN,) and (parts := json_tree(objects)):
                    raise Doubt(*other_list(file.name, parts))
                raise Doubt(Guess.SHAPE, OTHER_LIST.format(file=file.name, name=shorten(name)))


def json_tree(objects: Sequence[Any]) -> list[str]:
    """How a tree in lists of other names is written, such as `children=groups|items` and `name=title`; empty without.

    Its nodes have names; where some lists are in others of their names, only these are of children.
    """
    above: dict[str, set[str]] = {}  # of each list of nodes the lists that it is in
    titles: dict[str, None] = {}
    waiting: list[tuple[str, frozenset[str], Any]] = [("", frozenset(), one) for one in objects]
    while waiting:
        own, lists, node = waiting.pop()
        fields = node if isinstance(node, dict) else {}
        if found := [name for name in fields if fold(name) in _TITLES]:
            titles |= dict.fromkeys(found)
            above.setdefault(own, set()).update(lists)
        for name, value in fields.items():
            if isinstance(value, list):
                waiting += [(name, lists | {own}, one) for one in value]
    nested = [name for name in above if name in above[name]] or [name for name in above if name and above[name]]
    if not nested:
        return []
    return [f"children={'|'.join(nested)}", *([] if "name" in titles else [f"name={next(iter(titles))}"])]


def other_list(file: str, parts: Sequence[str]) -> tuple[Guess, str, Sequence[str]]:
    """The doubt of a file whose tree is in lists of other names."""
    options = ["--tree-by", csv_line(parts)]
    seen = f"{file} is a tree whose nodes are in other lists than children"
    return Guess.SHAPE, f"{seen}; {shlex.join(options)} imports this tree.", options


def json_table(file: Path, objects: list[Any]) -> tuple[Table, dict[str, bool]]:
    """The table of objects: columns such as address.city for objects in objects, and a row for each object in a list,
    with all columns of the object around it. With it the columns of these lists, and whether a list is one of
    `children`, or in another of its name.
    """
    lists: dict[str, bool] = {}

    def rows() -> Iterator[_TableObject]:
        found = (row for one in objects for row in _expanded(one, "", {}, 0, lists))
        for number, row in enumerate(found, start=1):
            yield number, row, *((row, None) if isinstance(row, dict) else (None, "The row is not a JSON object."))

    return _table(file, rows, "objects"), lists


def check_lists(file: Path, lists: Mapping[str, bool], columns: Iterable[str]) -> None:
    """Raise Doubt for a tree of which a table would lose nodes: a list has none of the `columns` of levels."""
    homes = {max((one for one in lists if column.startswith(f"{one}.")), key=len, default="") for column in columns}
    for name, is_nested in lists.items():
        if is_nested and name not in homes:
            raise Doubt(Guess.SHAPE, OTHER_LIST.format(file=file.name, name=shorten(name)))


def geojson_table(file: Path, *, is_lines: bool) -> Table:
    """The table of a collection of features, or of a file with a feature in each line.

    The columns are the properties, and `latitude`, `longitude` and `id` of the feature, unless a property has the name.
    Features without a point have neither latitude nor longitude. Raises BadInput.
    """

    def rows() -> Iterator[_TableObject]:
        if not is_lines:
            for number, feature in enumerate(_collection(file), start=1):
                yield number, feature, *_row(feature)
            return
        for number, text, feature in json_lines(file):
            if isinstance(feature, Rejection):
                yield number, text, None, feature.reason
            else:
                yield number, feature, *_row(feature)

    return _table(file, rows, "features")


def lines_table(file: Path) -> Table:
    """The table of a file with an object in each line; columns such as address.city are of objects in objects."""

    def rows() -> Iterator[_TableObject]:
        for number, text, fields in json_lines(file):
            if isinstance(fields, Rejection):
                yield number, text, None, fields.reason
            else:
                yield number, fields, flat(fields), None

    return _table(file, rows, "objects")


def by_key(value: Any, name: str = "key") -> list[dict[str, Any]]:
    """The nodes of an object that has only objects, by their keys, which get this name in them."""
    if not isinstance(value, dict) or not all(isinstance(fields, dict) for fields in value.values()):
        return []
    return [{name: key, **fields} for key, fields in value.items()]


def read_document(file: Path) -> Any:
    """The value of a document. Raises BadInput where it is too large or no JSON."""
    with opened(file) as source:
        content = source.read(MAX_JSON_BYTES + 1)
    if len(content) > MAX_JSON_BYTES:
        raise BadInput(
            f"{file.name} is a JSON document of more than {MAX_JSON_BYTES:,} bytes; write it as JSON lines (.jsonl)."
        )
    try:
        document = orjson.loads(content.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        raise BadInput(f"{file.name} is not valid JSON: {error}.") from error
    # The parser takes the last value of a name that an object has twice.
    if sum(1 for text in _TEXT.finditer(content) if text[1]) != _names_in(document):
        raise BadInput(
            f"{file.name} has objects with the same name twice, of which one value would be lost; write each name once."
        )
    return document


def _names_in(document: Any) -> int:
    """The number of all names in objects."""
    found, waiting = 0, [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            found += len(value)
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return found


def _table(file: Path, rows: Callable[[], Iterator[_TableObject]], content: str) -> Table:
    """The table of rows by column name; the columns are all names, each once. Raises BadInput."""
    columns: dict[str, None] = {}
    for _, _, row, _ in rows():
        columns |= dict.fromkeys(row or ())
    if not columns:
        raise BadInput(f"{file.name} has no {content}.")
    header = checked_header(file, list(columns))

    def table_rows() -> Iterator[TableRow]:
        for number, value, row, reason in rows():
            if row is None:  # there are no cells, so the reason has the value
                row, reason = {}, f"{reason} It is {json_text(value)}."
            yield number, [row.get(name) for name in header], reason, None

    return Table(header, table_rows)


def _expanded(fields: Any, prefix: str, above: dict[str, object], depth: int, lists: dict[str, bool]) -> Iterator[Any]:
    """The rows of an object by column, with the columns of those around it; what is no object as it is.

    `lists` gets the columns of lists of objects, and whether one nests in itself.
    """
    if not isinstance(fields, dict):
        yield fields
        return
    if depth > MAX_DEPTH:
        raise BadInput(f"Lists of objects are nested more than {MAX_DEPTH} times.")
    own, inner = dict(above), []
    for name, value in flat(fields, prefix).items():
        if isinstance(value, list) and any(isinstance(one, dict) for one in value):
            inner.append((name, value))
            if name not in lists:
                last = name.removeprefix(prefix)
                lists[name] = last == CHILDREN or f".{last}." in f".{prefix}"
        else:
            own[name] = value
    if not inner:
        yield own
    for name, values in inner:
        for value in values:
            yield from _expanded(value, f"{name}.", own, depth + 1, lists)


def _collection(file: Path) -> list[Any]:
    document = read_document(file)
    if isinstance(document, dict) and isinstance(document.get("features"), list):
        return cast(list[Any], document["features"])
    if isinstance(document, dict) and document.get("type") == "Feature":
        return [document]
    raise BadInput(f"{file.name} is not GeoJSON: it is neither a feature nor a list of features.")


def _row(feature: Any) -> tuple[dict[str, object] | None, str | None]:
    """The row of a feature, and what is wrong with it."""
    if not isinstance(feature, dict) or feature.get("type") != "Feature":
        return None, "The row is not a GeoJSON feature."
    properties, geometry = feature.get("properties") or {}, feature.get("geometry")
    if not isinstance(properties, dict):
        return None, "The properties of the feature are not an object."
    row: dict[str, object] = flat(properties)
    if feature.get("id") is not None:
        row.setdefault("id", feature["id"])
    if not isinstance(geometry, dict) or geometry.get("type") != "Point":
        return (row, None) if row else (None, "The feature has no properties.")
    found = geometry.get("coordinates")
    numbers: list[Any] = [*found, None, None] if isinstance(found, list) else [found, None]
    longitude, latitude = numbers[:2]
    row = {"latitude": latitude, "longitude": longitude, **row}
    if all(type(one) in (int, float) and abs(one) <= bound for one, bound in ((longitude, 180), (latitude, 90))):
        return row, None
    return row, (
        f'Columns "latitude", "longitude": {shown(found)} is not a longitude from -180 to 180 and latitude from -90 '
        "to 90."
    )
