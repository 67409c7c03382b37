"""JSON documents: trees of nodes with their children, lists of objects as tables, and GeoJSON."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import orjson

from store.errors import BadInput, shown
from store.transfer.formats.columns import MAX_COLUMNS, json_text
from store.transfer.formats.lines import json_lines, row_of
from store.transfer.formats.source import opened
from store.transfer.formats.tables import MAX_DEPTH, Table, TableRow, checked_header, flat
from store.transfer.rows import Rejection, Row, TextRows

MAX_JSON_BYTES = 200_000_000  # of a document, which is in memory as a whole
MAX_JSON_MEMORY = 2_000_000_000  # of its values, which may take thirty times the bytes of its text
DICT_BYTES, LIST_BYTES, VALUE_BYTES = 200, 64, 40  # in memory, about
CHILDREN = "children"
LATITUDE, LONGITUDE, ID = "latitude", "longitude", "id"
LINE_ENDINGS = (".geojsonl", ".geojsons", ".ndgeojson")

_TableObject = tuple[int, Any, dict[str, object] | None, str | None]  # number, value, row, what is wrong


def read_objects(file: Path) -> list[Any]:
    """The objects of a document: of a list, or of the only list in an object; else the object itself."""
    document = _read_document(file)
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


def read_nodes(objects: list[Any]) -> TextRows:
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


def json_table(file: Path, objects: list[Any]) -> Table:
    """The table of objects: columns such as address.city for objects in objects, and a row for each object in a list,
    with all columns of the object around it.
    """

    def rows() -> Iterator[_TableObject]:
        found = (row for one in objects for row in _expanded(one, "", {}, 0))
        for number, row in enumerate(found, start=1):
            yield number, row, *((row, None) if isinstance(row, dict) else (None, "The row is not a JSON object."))

    return _table(file, rows, "objects")


def geojson_table(file: Path, *, is_lines: bool) -> Table:
    """The table of a collection of features, or of a file with a feature in each line.

    The columns are the properties, and `latitude`, `longitude` and `id` of the feature, unless a property has the name.
    Features without a point have neither latitude nor longitude. Raises BadInput.
    """

    def rows() -> Iterator[_TableObject]:
        lines = ((number, feature) for number, _, feature in json_lines(file))
        for number, feature in lines if is_lines else enumerate(_collection(file), start=1):
            yield number, feature, *((None, feature.reason) if isinstance(feature, Rejection) else _row(feature))

    return _table(file, rows, "features")


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


def _read_document(file: Path) -> Any:
    """The value of a document. Raises BadInput where it is too large or no JSON."""
    with opened(file) as source:
        content = source.read(MAX_JSON_BYTES + 1)
    if len(content) > MAX_JSON_BYTES:
        raise BadInput(
            f"{file.name} is a JSON document of more than {MAX_JSON_BYTES:,} bytes; write it as JSON lines (.jsonl)."
        )
    containers = DICT_BYTES * content.count(b"{") + LIST_BYTES * content.count(b"[")
    if 2 * len(content) + containers + VALUE_BYTES * content.count(b",") > MAX_JSON_MEMORY:
        raise BadInput(f"{file.name} is a JSON document of too many values; write it as JSON lines (.jsonl).")
    try:
        return orjson.loads(content.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        raise BadInput(f"{file.name} is not valid JSON: {error}.") from error


def _table(file: Path, rows: Callable[[], Iterator[_TableObject]], content: str) -> Table:
    """The table of rows by column name; the columns are all names, each once. Raises BadInput at the first too many."""
    columns: dict[str, None] = {}
    for _, _, row, _ in rows():
        columns |= dict.fromkeys(row or ())
        if len(columns) > MAX_COLUMNS:
            checked_header(file, list(columns))
    if not columns:
        raise BadInput(f"{file.name} has no {content}.")
    header = list(columns)

    def table_rows() -> Iterator[TableRow]:
        for number, value, row, reason in rows():
            if row is not None:
                yield number, [row.get(name) for name in header], reason, None
            else:  # there are no cells, so the reason has the value
                yield number, [None] * len(header), f"{reason} It is {json_text(value)}.", None

    return Table(header, table_rows)


def _expanded(fields: Any, prefix: str, above: dict[str, object], depth: int) -> Iterator[Any]:
    """The rows of an object by column, with the columns of those around it; what is no object as it is."""
    if not isinstance(fields, dict):
        yield fields
        return
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
            yield from _expanded(value, f"{name}.", own, depth + 1)


def _collection(file: Path) -> list[Any]:
    document = _read_document(file)
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
        row.setdefault(ID, feature["id"])
    if not isinstance(geometry, dict) or geometry.get("type") != "Point":
        return (row, None) if row else (None, "The feature has no properties.")
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
