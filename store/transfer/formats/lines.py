"""Formats with one row per line: JSON lines, as exports have them, and taxonomies."""

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, lookup
from collections.abc import Callable, Collection, Iterator, Mapping
from enum import Enum, auto
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any

import orjson

from store.errors import BadInput, BadPath, shorten, shown
from store.model.hierarchy import Hierarchy
from store.model.paths import parse_path
from store.model.records import checked_id
from store.transfer.formats.source import JSON_REASON, Doubt, Guess, opened
from store.transfer.rows import Part, Rejection, Row, TextRows

MAX_LINE_BYTES = 10_000_000  # far more than the largest item
MAX_DEPTH = 100  # of objects and lists in a line; DynamoDB stores 32
SHOWN_BYTES = 1_000  # of a longer one
TOO_LONG = f"The line is longer than {MAX_LINE_BYTES:,} bytes."
_BOM = b"\xef\xbb\xbf"
FIXED = ("path", "level", "name", "id")  # the first fields of a line of an export
_OWN = frozenset(("path", "level", "name", "id", "rank", "undefined"))
_ID = re.compile(r"(?=\S*(?:\d|://))(\S+)(?:\s*\t\s*|\s+[-:|]\s+)")  # a text with a digit, or a URI
_DIVIDER = re.compile(r"(?<=\s)>(?=\s)")


def read_jsonl(file: Path) -> TextRows:
    """The lines of a file with one JSON object per line, each with its row (see `row_of`)."""
    for number, text, fields in json_lines(file):
        if isinstance(fields, Rejection):
            yield text, fields
        else:
            is_exported = tuple(fields)[: len(FIXED)] == FIXED and isinstance(fields["path"], list)
            yield text, row_of(number, fields, is_exact=is_exported)


def json_lines(file: Path) -> Iterator[tuple[int, str, dict[str, Any] | Rejection]]:
    """Number, text and object of each line, without the reasons in a file of rejected rows."""
    for number, text, problem in text_lines(file):
        fields = problem or _json_object(number, text)
        if isinstance(fields, Rejection) or JSON_REASON not in fields or len(fields) > 1:
            yield number, text, fields


class Ids(Enum):
    """What stands before the paths of a taxonomy: nothing, ids, or ids that cannot be stored and are left out."""

    NONE = auto()
    KEPT = auto()
    LEFT_OUT = auto()


def read_taxonomy(level: str, file: Path, ids: Ids, encoding: str = "utf-8") -> TextRows:
    """The lines of a file with one `A > B > C` per line, with or without an id before it, in any order.

    All nodes of a path are of one level, and the id is that of the last one. Lines that begin with # are skipped.
    """
    for number, text, problem in text_lines(file, encoding):
        if not text.startswith("#"):
            node_id = _ID.match(text) if ids is not Ids.NONE else None
            path = [segment.strip() for segment in _DIVIDER.split(f" {text[node_id.end() if node_id else 0 :]} ")]
            last = Part(level, id=node_id[1] if node_id and ids is Ids.KEPT else None)
            yield text, problem or Row(number, path, [*[Part(level)] * (len(path) - 1), last])


def taxonomy_ids(file: Path, encoding: str, taken: Collection[Guess]) -> Ids:
    """What stands before the paths of a taxonomy: ids, where each line has one that no other node has. Numbers belong
    to the keys where each belongs to one first key, and is repeated with it or the last keys have numbers, too.

    Raises Doubt, unless the guess is `taken`, where only some lines have an id, or some have the same one, or where ids
    cannot be stored. Raises it as well for indented lines without paths, which are an outline.
    """
    places: dict[str, tuple[int, str]] = {}  # of each id the first row, and its path
    numbers: dict[str, str] = {}  # the ids by the first keys of their paths
    lacking = repeated = invalid = ""
    has_paths, are_numbered, are_of_first = False, True, True
    for row, text, problem in text_lines(file, encoding):
        if problem or text.startswith("#"):
            continue
        has_paths = has_paths or " > " in text
        match = _ID.match(text)
        if match is None:
            lacking = lacking or f'row {row}, "{shorten(text)}"'
            continue
        node_id, path = match[1], text[match.end() :]
        key, _, rest = path.partition(" > ")
        are_numbered = are_numbered and (not rest or _ID.match(rest.rpartition(" > ")[2].lstrip()) is not None)
        first, other = places.setdefault(node_id, (row, path))
        are_of_first = are_of_first and numbers.setdefault(key, node_id) == node_id and other.partition(" > ")[0] == key
        if other != path:
            repeated = repeated or f"The id {shorten(node_id)} is in rows {first} and {row} of {file.name}"
        if not invalid:
            try:
                checked_id(node_id)
            except BadInput as error:
                invalid = f"Row {row} of {file.name}: {error}"
    if not has_paths and Guess.SHAPE not in taken:
        _refuse_outline(file)
    if not places or (not lacking and are_of_first and (repeated or (has_paths and are_numbered))):
        return Ids.NONE
    reason = repeated
    if lacking:
        reason = f"Some lines of {file.name} begin with an id, such as {shorten(next(iter(places)))}, but not {lacking}"
    if reason:
        reason = f"{reason}. Give each line an id of its own, or none; now they would belong to the keys."
    elif invalid:
        reason = f"{invalid} Write others, such as the last part; now ids would be made from the paths."
    if reason and Guess.IDS not in taken:
        raise Doubt(Guess.IDS, reason)
    return Ids.NONE if lacking or repeated else Ids.LEFT_OUT if invalid else Ids.KEPT


def _refuse_outline(file: Path) -> None:
    """Raise Doubt for a file in which a line is indented below one that is not."""
    below = False
    with opened(file) as source:
        for number, line in enumerate(iter(lambda: source.readline(MAX_LINE_BYTES), b""), start=1):
            if below and line.startswith((b" ", b"\t")) and line.strip():
                raise Doubt(
                    Guess.SHAPE,
                    f"{file.name} is an outline: row {number} is indented, and each line is imported as a root; write "
                    "its whole path in each line, such as Tools > Saws.",
                )
            below = below or bool(line.strip() and not line.startswith((b" ", b"\t", b"#")))


def taxonomy_level(hierarchy: Hierarchy) -> str:
    """The level of the nodes of a taxonomy: one that may be a root and is allowed under itself. Raises BadInput."""
    for level in hierarchy.levels.values():
        if level.may_be_root and level.name in level.under:
            return level.name
    raise BadInput(
        f"A taxonomy needs a level that may be a root and is allowed under itself; {hierarchy.name} has none: "
        "use csv or jsonl."
    )


def row_of(number: int, fields: Mapping[str, Any], *, is_exact: bool = False) -> Row | Rejection:
    """The row of `{"path": ["US", "NE"] or "US/NE", "level": "STATE", "name": …, "id": …}` and the level's attributes.

    A field left out leaves the node as it is, null removes an attribute. `names` has names in other languages, such as
    `{"de": "München"}`, where a language that is left out stays and null removes one. `rank` is the rank of a new node
    among its siblings, `undefined` has attributes that its level does not define. See `Row` for `is_exact`.
    """
    path = fields.get("path")
    if path is None:
        return Rejection(number, 'The line has no path; write "path": ["US", "NE"] or "path": "US/NE".')
    if not isinstance(path, (str, list, tuple)):
        return Rejection(number, f"A path is a list of texts or one text, not {shown(path)}.")
    try:
        if isinstance(path, str):
            path = parse_path(path)
        else:
            try:
                "".join(path)  # the fastest way to see that all keys are texts
            except TypeError:
                path = [*map(_key, path)]
    except BadPath as error:
        return Rejection(number, str(error))
    attributes = {name: value for name, value in fields.items() if name not in _OWN}
    field = fields.get
    part = Part(str(field("level") or ""), field("name"), field("id"), attributes, field("rank"), field("undefined"))
    return Row(number, path, [part], (), None, False, is_exact)


def _key(value: object) -> str:
    """The key that a value of JSON is: a text, or a whole number that is read exactly. Raises BadPath."""
    if type(value) not in (str, int):
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


def text_lines(file: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str, Rejection | None]]:
    """Number and text of each line that is not blank; of one that is too long, the beginning alone.

    Lines are split as bytes, so that one that is not valid does not affect others. Raises BadInput for UTF-16 where
    that is not the `encoding`.
    """
    is_utf8 = lookup(encoding).name in ("utf-8", "utf-8-sig")
    with opened(file) as source:
        read_line = source.readline if is_utf8 else _utf8_lines(file, source, encoding)
        for number, line in enumerate(iter(lambda: read_line(MAX_LINE_BYTES + 1), b""), start=1):
            reason = None
            if is_utf8 and number == 1 and line.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
                raise BadInput(f"{file.name} is UTF-16; write it as UTF-8.")
            if len(line) > MAX_LINE_BYTES:
                reason, rest = TOO_LONG, line
                while rest and not rest.endswith(b"\n"):
                    rest = read_line(MAX_LINE_BYTES)
            content = line[:SHOWN_BYTES] if reason else line
            content = (content.removeprefix(_BOM) if number == 1 else content).strip()
            try:
                text = content.decode()
            except UnicodeDecodeError:
                name = "UTF-8" if is_utf8 else encoding
                text, reason = content.decode(errors="surrogateescape"), reason or f"The line is not valid {name}."
            if text or reason:
                yield number, text, Rejection(number, reason) if reason else None


def _utf8_lines(file: Path, source: IO[bytes], encoding: str) -> Callable[[int], bytes]:
    """A function to the next line in UTF-8 of a file in another encoding; invalid bytes are invalid there, too."""
    errors = "surrogatepass" if lookup(encoding).name.startswith(("utf-16", "utf-32")) else "surrogateescape"
    text = TextIOWrapper(source, encoding, errors, newline="\n")

    def read_line(size: int) -> bytes:
        try:
            return text.readline(size).encode("utf-8", errors)
        except UnicodeError as error:
            reason = getattr(error, "reason", error)  # a missing byte order mark has none
            raise BadInput(f"{file.name} is no {encoding}: {reason}; --encoding names another encoding.") from error

    return read_line
