"""JSON documents, lines of JSON and GeoJSON: their values as they are in the file, and their objects as a table."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

import orjson

from store.errors import BadInput, shown
from store.transfer.formats.cells import json_text
from store.transfer.formats.encodings import SAMPLE_BYTES, certain_encoding
from store.transfer.formats.lines import json_lines
from store.transfer.formats.source import opened
from store.transfer.formats.table import MAX_DEPTH, Table, TableRow, flat
from store.transfer.rows import Rejection

MAX_JSON_BYTES = 200_000_000  # of a document, which is in memory as a whole
CHILDREN = "children"
LINE_ENDINGS = (".geojsonl", ".geojsons", ".ndgeojson")
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"(\s*+:)?', re.DOTALL)  # with a colon the name of a value
NAMED = frozenset(("key", "name"))  # fields of a node
_OWN = NAMED | {"path", "level"}
_LINKS = ({"type", "id"}, {"sys"})  # fields of what only names another object, in JSON:API and Contentful

_TableObject = tuple[int, Any, dict[str, object] | None, str | None]  # number, value, row, what is wrong


def json_table(file: Path) -> Table:
    """The table of a document: columns such as address.city for objects in objects, and a row for each object in a
    list, with all columns of the object around it.
    """
    lists: dict[str, bool] = {}

    @cache
    def document() -> Any:
        return read_document(file)

    def values() -> Iterator[tuple[int, str, Any]]:
        for number, one in enumerate(objects_of(document(), file.name), start=1):
            yield number, json_text(one), one

    def rows() -> Iterator[_TableObject]:
        objects = objects_of(document(), file.name)
        found = (row for one in objects for row in _expanded(one, "", {}, 0, lists))
        for number, row in enumerate(found, start=1):
            yield number, row, *((row, None) if isinstance(row, dict) else (None, "The row is not a JSON object."))

    table = _table(file, rows, "objects")
    table.values, table.document, table.lists = values, document, lists
    return table


def lines_table(file: Path) -> Table:
    """The table of a file with an object in each line; columns such as address.city are of objects in objects."""

    table = _table(file, lambda: _lines(file, lambda fields: (flat(fields), None)), "objects")
    table.values = lambda: json_lines(file)
    return table


def geojson_table(file: Path, *, is_lines: bool) -> Table:
    """The table of a collection of features, or of a file with a feature in each line.

    The columns are the properties, and `latitude`, `longitude` and `id` of the feature, unless a property has the name.
    Features without a point have neither latitude nor longitude. Raises BadInput.
    """

    def rows() -> Iterator[_TableObject]:
        if is_lines:
            return _lines(file, _row)
        return ((number, one, *_row(one)) for number, one in enumerate(_collection(file), start=1))

    return _table(file, rows, "features")


def _lines(file: Path, row: Callable[[Any], tuple[dict[str, object] | None, str | None]]) -> Iterator[_TableObject]:
    """The rows of lines of JSON, each made of its value."""
    for number, text, value in json_lines(file):
        if isinstance(value, Rejection):
            yield number, text, None, value.reason
        else:
            yield number, value, *row(value)


def objects_of(document: Any, name: str) -> list[Any]:
    """The objects of a document: of a list, of the only list in an object, or of an object of nodes by key; else the
    object itself. Raises BadInput for a document that is neither, with the name of its file.
    """
    if isinstance(document, list):
        return document
    if not isinstance(document, dict):
        raise BadInput(f"{name} is neither a list of objects nor an object.")
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
    if "path" in first or ("level" in first and not NAMED.isdisjoint(first)):
        return True
    nodes = (one for one in objects if isinstance(one, dict) and isinstance(one.get(CHILDREN), list | dict))
    return not all(map(NAMED.isdisjoint, nodes))


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
        if encoding := certain_encoding(content[:SAMPLE_BYTES]):
            content = content.decode(encoding).removeprefix("\ufeff").encode()
        document = orjson.loads(content)
    except ValueError as error:
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
    """The table of rows by column name; the columns are all names, each once."""

    def columns() -> list[str]:
        found: dict[str, None] = {}
        for _, _, row, _ in rows():
            found |= dict.fromkeys(row or ())
        if not found:
            raise BadInput(f"{file.name} has no {content}.")
        return [*found]

    def table_rows() -> Iterator[TableRow]:
        header = table.header
        for number, value, row, reason in rows():
            if row is None:  # there are no cells, so the reason has the value
                row, reason = {}, f"{reason} It is {json_text(value)}."
            yield number, [row.get(name) for name in header], reason, None, ""

    table = Table(file.name, columns, table_rows)
    return table


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
        if isinstance(value, list) and any(isinstance(one, dict) and one.keys() not in _LINKS for one in value):
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
