"""JSON lines: one node per line, as exports have them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from store.errors import BadPath
from store.model.paths import parse_path
from store.model.ranks import manual_part
from store.model.records import Record
from store.text import shorten
from store.transfer.formats.lines import Lines, lines
from store.transfer.rows import Part, Rejection, Row

_OWN = frozenset(("path", "level", "name", "id", "rank", "undefined"))


@dataclass(frozen=True)
class JSONLines(Lines):
    """`{"path": ["US", "NE"] or "US/NE", "level": "STATE", "name": …, "id": …}` and the level's own attributes.

    A field left out leaves the node as it is, null removes an attribute. `rank` is the rank of a new node among its
    siblings, `undefined` has attributes that its level does not define.
    """

    def rows(self, file: Path) -> Iterator[Row | Rejection]:
        for number, line in lines(file):
            yield line if isinstance(line, Rejection) else _row(number, line)


def _row(number: int, line: bytes) -> Row | Rejection:
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return Rejection(
            number, f"The line is not valid JSON: {error}." if _is_text(line) else "The line is not valid UTF-8."
        )
    if not isinstance(found, dict):
        return Rejection(number, f"The line is not a JSON object: {shorten(line.decode())}.")
    try:
        path = _path(found.get("path"))
    except BadPath as error:
        return Rejection(number, str(error))
    attributes = {name: value for name, value in found.items() if name not in _OWN}
    field = found.get
    part = Part(str(field("level") or ""), field("name"), field("id"), attributes, field("rank"), field("undefined"))
    return Row(number, path, [part])


def _is_text(line: bytes) -> bool:
    try:
        return bool(line.decode())
    except UnicodeDecodeError:
        return False


def _path(path: object) -> Sequence[object]:
    match path:
        case str():
            return parse_path(path)
        case list():
            return path
        case None:
            raise BadPath('The line has no path; write "path": ["US", "NE"] or "path": "US/NE".')
        case _:
            raise BadPath(f"A path is a list of texts or one text, not {shorten(repr(path))}.")


def line_of(record: Record, attributes: Mapping[str, Any], undefined: Mapping[str, Any] | None) -> bytes:
    """The line of a node with these attributes; `undefined` are those that its level does not define."""
    fields = {
        "path": record.path, "level": record.level, "name": record.name,
        "id": record.id.removeprefix(f"{record.hierarchy}:"), **attributes,
    }  # fmt: skip
    if (rank := manual_part(record.level, record.rank)) is not None:
        fields["rank"] = rank
    if undefined is not None:
        fields["undefined"] = undefined
    return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)
