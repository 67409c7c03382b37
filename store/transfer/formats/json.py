"""JSON documents: lists of rows, objects in objects as rows of a table, and trees of nodes with their children.

GeoJSON: features as rows, with their properties as columns and points as latitude and longitude.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import orjson

from store.errors import BadInput, shown
from store.transfer.formats.columns import json_text
from store.transfer.formats.lines import json_lines, row_of
from store.transfer.formats.source import opened
from store.transfer.formats.tables import MAX_DEPTH, Table, TableRow, flat, found_columns, unreadable
from store.transfer.rows import Rejection, Row

MAX_JSON_BYTES = 200_000_000  # of a document, which is in memory as a whole
MAX_JSON_MEMORY = 2_000_000_000
DICT_BYTES, LIST_BYTES, VALUE_BYTES = 200, 64, 40
CHILDREN = "children"


def read_document(file: Path) -> Any:
    """The value of a document. Raises BadInput where it is too large or no JSON."""
    with opened(file) as source:
        content = source.read(MAX_JSON_BYTES + 1)
    if len(content) > MAX_JSON_BYTES:
        raise BadInput(
            f"{file.name} is a JSON document of more than {MAX_JSON_BYTES:,} bytes; write it as JSON lines (.jsonl)."
        )
    if _memory(content) > MAX_JSON_MEMORY:
        raise BadInput(f"{file.name} is a JSON document of too many values; write it as JSON lines (.jsonl).")
    try:
        return orjson.loads(content.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        raise BadInput(f"{file.name} is not valid JSON: {error}.") from error


def _memory(content: bytes) -> int:
    """About the bytes of the values of a document in memory, which may be thirty times those of its text."""
    containers = DICT_BYTES * content.count(b"{") + LIST_BYTES * content.count(b"[")
    return 2 * len(content) + containers + VALUE_BYTES * content.count(b",")


def read_objects(file: Path) -> list[Any]:
    """The objects of a document: of a list, or of the only list in an object; else the object itself."""
    document = read_document(file)
    if isinstance(document, list):
        return document
    if not isinstance(document, dict):
        raise BadInput(f"{file.name} is neither a list of objects nor an object.")
    lists = [value for value in document.values() if isinstance(value, list)]
    return lists[0] if len(lists) == 1 and len(document) == 1 else [document]


def is_nodes(objects: list[Any]) -> bool:
    """Whether objects are nodes, with a path or with a level and children, and not rows of a table."""
    first = next((one for one in objects if isinstance(one, dict)), {})
    return "path" in first or ("level" in first and ("key" in first or "name" in first))


def read_nodes(objects: list[Any]) -> Iterator[tuple[str, Row | Rejection]]:
    """The nodes of `{"key": "US", "level": "COUNTRY", "name": …, "children": […]}` as rows of JSON lines.

    The key is the name where it is left out. A node may have a `path` instead, as in JSON lines.
    """
    number = 0
    waiting: list[tuple[list[str], Any]] = [([], one) for one in reversed(objects)]
    while waiting:
        above, fields = waiting.pop()
        number += 1
        row, own = _node(number, above, fields)
        yield json_text(own), row
        if isinstance(row, Row) and isinstance(fields.get(CHILDREN), list):
            path = [str(segment) for segment in row.path]
            waiting += [(path, child) for child in reversed(fields[CHILDREN])]


def _node(number: int, above: list[str], fields: Any) -> tuple[Row | Rejection, Any]:
    if not isinstance(fields, dict):
        return Rejection(number, f"The node below {'/'.join(above) or 'the root'} is not a JSON object."), fields
    own = {name: value for name, value in fields.items() if name not in (CHILDREN, "key")}
    if not isinstance(fields.get(CHILDREN, []), list | None):
        return Rejection(number, f'"{CHILDREN}" is a list of nodes.'), own
    if "path" not in own:
        key = fields.get("key", fields.get("name"))
        if not isinstance(key, str):
            return Rejection(number, f"The node below {'/'.join(above) or 'the root'} has no key and no name."), own
        own = {"path": [*above, key], **own}
    return row_of(number, own), own


def json_table(file: Path, objects: list[Any]) -> Table:
    """The table of objects: columns such as address.city for objects in objects, and a row for each object in a list,
    with all columns of the object around it.
    """
    header = found_columns(file, (row for row in _all_rows(objects) if isinstance(row, dict)))
    if not header:
        raise BadInput(f"{file.name} has no objects.")
    return Table(header, lambda: _cells(objects, header))


def _cells(objects: list[Any], header: list[str]) -> Iterator[TableRow]:
    for number, row in enumerate(_all_rows(objects), start=1):
        if isinstance(row, dict):
            yield number, [row.get(name) for name in header], None
        else:
            yield unreadable(number, row, header, "The row is not a JSON object.")


def _all_rows(objects: list[Any]) -> Iterator[Any]:
    """The rows by column; what is no object as it is."""
    for one in objects:
        yield from _expanded(one, "", {}, 0) if isinstance(one, dict) else (one,)


def _expanded(fields: dict[str, Any], prefix: str, above: dict[str, object], depth: int) -> Iterator[Any]:
    if depth > MAX_DEPTH:
        raise BadInput(f"Lists of objects are nested more than {MAX_DEPTH} times.")
    own, inner = dict(above), []
    for name, value in flat(fields, prefix).items():
        if isinstance(value, list) and any(isinstance(one, dict) for one in value):
            inner.append((name, value))
        else:
            own[name] = value
    if not inner:
        yield own
    for name, values in inner:
        for value in values:
            yield from _expanded(value, f"{name}.", own, depth + 1) if isinstance(value, dict) else (value,)


LATITUDE, LONGITUDE, ID = "latitude", "longitude", "id"
LINE_ENDINGS = (".geojsonl", ".geojsons", ".ndgeojson")


def geojson_table(file: Path, *, is_lines: bool) -> Table:
    """The table of a collection of features, or of a file with a feature in each line.

    The columns `latitude`, `longitude` and `id` are those of the feature, unless a property has the name. Features
    without a point have neither latitude nor longitude. Raises BadInput.
    """
    header = found_columns(file, (row for _, _, row, _ in _features(file, is_lines=is_lines)))
    if not header:
        raise BadInput(f"{file.name} has no features.")
    return Table(header, lambda: _rows(file, header, is_lines=is_lines))


def _rows(file: Path, header: list[str], *, is_lines: bool) -> Iterator[TableRow]:
    for number, feature, row, reason in _features(file, is_lines=is_lines):
        if row:
            yield number, [row.get(name) for name in header], reason
        else:
            yield unreadable(number, feature, header, reason or "The feature has no properties.")


def _features(file: Path, *, is_lines: bool) -> Iterator[tuple[int, Any, dict[str, object], str | None]]:
    """Number, value, row and problem of each feature."""
    lines = ((number, feature) for number, _, feature in json_lines(file))
    for number, feature in lines if is_lines else enumerate(_collection(file), start=1):
        row, reason = ({}, feature.reason) if isinstance(feature, Rejection) else _row(feature)
        yield number, feature, row, reason


def _collection(file: Path) -> list[Any]:
    document = read_document(file)
    if isinstance(document, dict) and isinstance(document.get("features"), list):
        return cast(list[Any], document["features"])
    if isinstance(document, dict) and document.get("type") == "Feature":
        return [document]
    raise BadInput(f"{file.name} is not GeoJSON: it is neither a feature nor a list of features.")


def _row(feature: Any) -> tuple[dict[str, object], str | None]:
    """The row of a feature, and what is wrong with it."""
    if not isinstance(feature, dict) or feature.get("type") != "Feature":
        return {}, "The row is not a GeoJSON feature."
    properties, geometry = feature.get("properties") or {}, feature.get("geometry")
    if not isinstance(properties, dict):
        return {}, "The properties of the feature are not an object."
    row: dict[str, object] = flat(properties)
    if feature.get("id") is not None:
        row.setdefault(ID, feature["id"])
    if not isinstance(geometry, dict) or geometry.get("type") != "Point":
        return row, None
    found = geometry.get("coordinates")
    longitude, latitude = [*found, None, None][:2] if isinstance(found, list) else (found, None)
    row = {LATITUDE: latitude, LONGITUDE: longitude, **row}
    if _is_between(longitude, 180) and _is_between(latitude, 90):
        return row, None
    return row, (
        f'Columns "{LATITUDE}", "{LONGITUDE}": {shown(found)} is not a longitude from -180 to 180 and latitude '
        "from -90 to 90."
    )


def _is_between(value: Any, bound: int) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -bound <= value <= bound
