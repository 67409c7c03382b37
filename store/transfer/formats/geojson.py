"""GeoJSON: features as rows, with their properties as columns and points as latitude and longitude."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from store.errors import BadInput
from store.text import shown
from store.transfer.formats.json_file import read_document
from store.transfer.formats.lines import json_lines
from store.transfer.formats.table import Table, TableRow, flat, found_columns, unreadable
from store.transfer.rows import Rejection

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
