"""Formats with one row per line: JSON lines, as exports have them, and taxonomies."""

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from store.errors import BadInput, BadPath, shorten, shown
from store.model.hierarchy import Hierarchy
from store.model.paths import parse_path
from store.transfer.formats.source import JSON_REASON, opened
from store.transfer.rows import Part, Rejection, Row, TextRows

MAX_LINE_BYTES = 10_000_000  # far more than the largest item
MAX_DEPTH = 100  # of objects and lists in a line; DynamoDB stores 32
SHOWN_BYTES = 1_000  # of a longer one
TOO_LONG = f"The line is longer than {MAX_LINE_BYTES:,} bytes."
_BOM = b"\xef\xbb\xbf"
_OWN = frozenset(("path", "level", "name", "id", "rank", "undefined"))
_ID = re.compile(r"(\d+)\s+-\s+")
_DIVIDER = re.compile(r"(?<=\s)>(?=\s)")


def read_jsonl(file: Path) -> TextRows:
    """The lines of a file with one JSON object per line, each with its row (see `row_of`)."""
    for number, text, fields in json_lines(file):
        yield text, fields if isinstance(fields, Rejection) else row_of(number, fields)


def json_lines(file: Path) -> Iterator[tuple[int, str, dict[str, Any] | Rejection]]:
    """Number, text and object of each line, without the reasons in a file of rejected rows."""
    for number, text, problem in text_lines(file):
        fields = problem or _json_object(number, text)
        if isinstance(fields, Rejection) or JSON_REASON not in fields or len(fields) > 1:
            yield number, text, fields


def read_taxonomy(level: str, file: Path) -> TextRows:
    """The lines of a file with one `A > B > C` per line, with or without an id before it, in any order.

    All nodes of a path are of one level, and the id is that of the last one. Lines that begin with # are skipped.
    """
    for number, text, problem in text_lines(file):
        if not text.startswith("#"):
            node_id = _ID.match(text)
            path = [segment.strip() for segment in _DIVIDER.split(f" {text[node_id.end() if node_id else 0 :]} ")]
            parts = [*[Part(level)] * (len(path) - 1), Part(level, id=node_id and node_id[1])]
            yield text, problem or Row(number, path, parts)


def taxonomy_level(hierarchy: Hierarchy) -> str:
    """The level of the nodes of a taxonomy: one that may be a root and is allowed under itself. Raises BadInput."""
    for level in hierarchy.levels.values():
        if level.may_be_root and level.name in level.under:
            return level.name
    raise BadInput(
        f"A taxonomy needs a level that may be a root and is allowed under itself; {hierarchy.name} has none: "
        "use csv or jsonl."
    )


def row_of(number: int, fields: Mapping[str, Any]) -> Row | Rejection:
    """The row of `{"path": ["US", "NE"] or "US/NE", "level": "STATE", "name": …, "id": …}` and the level's attributes.

    A field left out leaves the node as it is, null removes an attribute. `names` has names in other languages, such as
    `{"de": "München"}`, where a language that is left out stays and null removes one. `rank` is the rank of a new node
    among its siblings, `undefined` has attributes that its level does not define.
    """
    path = fields.get("path")
    if path is None:
        return Rejection(number, 'The line has no path; write "path": ["US", "NE"] or "path": "US/NE".')
    if not isinstance(path, (str, list, tuple)):
        return Rejection(number, f"A path is a list of texts or one text, not {shown(path)}.")
    try:
        segments = (
            parse_path(path) if isinstance(path, str) else [key if type(key) is str else _key(key) for key in path]
        )
    except BadPath as error:
        return Rejection(number, str(error))
    attributes = {name: value for name, value in fields.items() if name not in _OWN}
    field = fields.get
    part = Part(str(field("level") or ""), field("name"), field("id"), attributes, field("rank"), field("undefined"))
    return Row(number, segments, [part])


def is_key(value: object) -> bool:
    """Whether a value of JSON is the key of a node: a text, or a whole number that is read exactly."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def _key(value: object) -> str:
    """The key that a value of JSON is. Raises BadPath."""
    if not is_key(value):
        raise BadPath(f"A key is a text or a whole number of at most 64 bits, not {shown(value)}; write a text.")
    return str(value)


def _json_object(number: int, text: str) -> dict[str, Any] | Rejection:
    try:
        fields = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return Rejection(number, f"The line is not valid JSON: {error.msg} (column {error.colno}).")
    if not isinstance(fields, dict):
        return Rejection(number, f"The line is not a JSON object: {shorten(text)}.")
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_deep(fields):
        return Rejection(number, f"The line is nested more than {MAX_DEPTH} times.")
    return fields


def _is_deep(value: object) -> bool:
    """Whether objects and lists are nested more than `MAX_DEPTH` times."""
    layer: list[object] = [value]
    for _ in range(MAX_DEPTH):
        lists = [list(one.values()) if isinstance(one, dict) else one for one in layer if isinstance(one, dict | list)]
        layer = [inner for one in lists for inner in one]
    return any(isinstance(one, dict | list) for one in layer)


def text_lines(file: Path) -> Iterator[tuple[int, str, Rejection | None]]:
    """Number and text of each line that is not blank; of one that is too long, the beginning alone.

    Lines are split as bytes, so that one that is not valid UTF-8 does not affect others. Raises BadInput for UTF-16.
    """
    with opened(file) as source:
        for number, line in enumerate(iter(lambda: source.readline(MAX_LINE_BYTES + 1), b""), start=1):
            reason = None
            if number == 1 and line.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
                raise BadInput(f"{file.name} is UTF-16; write it as UTF-8.")
            if len(line) > MAX_LINE_BYTES:
                reason, rest = TOO_LONG, line
                while rest and not rest.endswith(b"\n"):
                    rest = source.readline(MAX_LINE_BYTES)
            content = line[:SHOWN_BYTES] if reason else line
            content = (content.removeprefix(_BOM) if number == 1 else content).strip()
            try:
                text = content.decode()
            except UnicodeDecodeError:
                text, reason = content.decode(errors="surrogateescape"), reason or "The line is not valid UTF-8."
            if text or reason:
                yield number, text, Rejection(number, reason) if reason else None
