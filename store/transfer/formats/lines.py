"""Formats with one row per line: JSON lines, as exports have them, and taxonomies."""

import re
from codecs import lookup
from collections.abc import Collection, Iterator, Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import orjson

from store.errors import BadInput, BadPath, shorten, shown
from store.model.hierarchy import Hierarchy
from store.model.paths import parse_path
from store.model.records import checked_id
from store.transfer.formats.columns import json_text
from store.transfer.formats.source import JSON_REASON, Doubt, Guess, opened
from store.transfer.rows import Part, Rejection, Row, TextRows

MAX_LINE_BYTES = 10_000_000  # far more than the largest item
MAX_DEPTH = 100  # of objects and lists in a line; DynamoDB stores 32
SHOWN_BYTES = 1_000  # of a longer one
TOO_LONG = f"The line is longer than {MAX_LINE_BYTES:,} bytes."
_WHITE_SPACE = " \t\n\r\x0b\x0c"  # of ASCII
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
    for number, text, value in json_values(file):
        if not isinstance(value, dict | Rejection):
            value = Rejection(number, f"The line is not a JSON object: {shorten(text)}.")
        yield number, text, value


def json_values(file: Path) -> Iterator[tuple[int, str, Any]]:
    """Number, text and value of each line, a Rejection where it has none; without the reasons as above."""
    for number, text, problem in text_lines(file):
        value = problem or _json_value(number, text)
        if not (isinstance(value, dict) and len(value) == 1 and JSON_REASON in value):
            yield number, text, value


def read_taxonomy(level: str, file: Path, has_ids: bool | None, encoding: str) -> TextRows:
    """The lines of a file with one `A > B > C` per line, in any order, with ids before them as in `taxonomy_ids`.

    All nodes of a path are of one level, and the id is that of the last one. Lines that begin with # are skipped.
    """
    for number, text, problem in text_lines(file, encoding):
        if not text.startswith("#"):
            node_id = None if has_ids is None else _ID.match(text)
            path = [segment.strip() for segment in _DIVIDER.split(f" {text[node_id.end() if node_id else 0 :]} ")]
            last = Part(level, id=node_id[1] if node_id and has_ids else None)
            yield text, problem or Row(number, path, [*[Part(level)] * (len(path) - 1), last])


def taxonomy_ids(file: Path, encoding: str, taken: Collection[Guess]) -> bool | None:
    """Whether nodes get the ids before the paths of a taxonomy, of which each line has one that no other node has; None
    where there are none. Numbers belong to the keys where each belongs to one first key, and is repeated with it or the
    last keys have numbers, too.

    Raises Doubt, unless the guess is `taken`, where only some lines have an id, or some have the same one, or where ids
    cannot be stored. Raises it as well for indented lines without paths, which are an outline.
    """
    lines = [(row, text) for row, text, problem in text_lines(file, encoding) if not (problem or text.startswith("#"))]
    has_paths = any(" > " in text for _, text in lines)
    if not has_paths and Guess.SHAPE not in taken:
        _refuse_outline(file)
    found = [(row, match[1], text[match.end() :]) for row, text in lines if (match := _ID.match(text))]
    places: dict[str, tuple[int, str]] = {}  # of each id the first row, and its path
    repeated = (
        f"The id {shorten(node_id)} is in rows {places[node_id][0]} and {row} of {file.name}"
        for row, node_id, path in found
        if places.setdefault(node_id, (row, path))[1] != path
    )
    reason = next(repeated, "")
    firsts = {(node_id, path.partition(" > ")[0]) for _, node_id, path in found}
    are_of_first = len(firsts) == len({node_id for node_id, _ in firsts}) == len({key for _, key in firsts})
    last_keys = (path.rpartition(" > ")[2].lstrip() for _, _, path in found if " > " in path)
    are_of_keys = are_of_first and (reason or (has_paths and all(map(_ID.match, last_keys))))
    if not found or (are_of_keys and len(found) == len(lines)):
        return None
    if len(found) < len(lines):
        row, text = next(line for line in lines if not _ID.match(line[1]))
        some = f"Some lines of {file.name} begin with an id, such as {shorten(found[0][1])}"
        reason = f'{some}, but not row {row}, "{shorten(text)}"'
    has_ids = not reason
    if reason:
        reason += ". Give each line an id of its own, or none; now they would belong to the keys."
    for row, node_id, _ in found if has_ids else ():
        try:
            checked_id(node_id)
        except BadInput as error:
            said = f"Row {row} of {file.name}: {error} Write others, such as the last part"
            reason = reason or f"{said}; now ids would be made from the paths."
    if reason and Guess.IDS not in taken:
        raise Doubt(Guess.IDS, reason)
    return not reason if has_ids else None


def _refuse_outline(file: Path) -> None:
    """Raise Doubt for a file in which a line is indented below one that is not, or has more # before it."""
    top = b""
    with opened(file) as source:
        for number, line in enumerate(iter(lambda: source.readline(MAX_LINE_BYTES), b""), start=1):
            is_deeper = line.startswith((b" ", b"\t")) or (top.startswith(b"# ") and line.startswith(b"## "))
            if top and is_deeper and line.strip():
                raise Doubt(
                    Guess.SHAPE,
                    f"{file.name} is an outline: row {number} is indented, or has a mark of its depth, and each line "
                    "would be a root, or a comment; --tree-by indent imports this tree.",
                    ("--tree-by", "indent"),
                )
            top = top or (line if line.strip() and not is_deeper and not line.startswith(b"##") else b"")


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
                path = [*map(key_of, path)]
    except BadPath as error:
        return Rejection(number, str(error))
    attributes = {name: value for name, value in fields.items() if name not in _OWN}
    field = fields.get
    part = Part(str(field("level") or ""), field("name"), field("id"), attributes, field("rank"), field("undefined"))
    return Row(number, path, [part], (), None, False, is_exact)


def line_of(row: Row) -> str:
    """The line of JSON of a row with one part, which `row_of` reads."""
    part = row.parts[0]
    fields = {"path": row.path, "level": part.level, "name": part.name, "id": part.id}
    return json_text({**{name: value for name, value in fields.items() if value is not None}, **part.attributes})


def key_of(value: object) -> str:
    """The key that a value of JSON is: a text, or a whole number that is read exactly. Raises BadPath."""
    if type(value) not in (str, int):
        raise BadPath(f"A key is a text or a whole number of at most 64 bits, not {shown(value)}; write a text.")
    return str(value)


def _json_value(number: int, text: str) -> Any:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return Rejection(number, f"The line is not valid JSON: {error.msg} (column {error.colno}).")
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_deep(value):
        return Rejection(number, f"The line is nested more than {MAX_DEPTH} times.")
    return value


def _is_deep(value: object, depth: int = 0) -> bool:
    """Whether objects and lists are nested more than `MAX_DEPTH` times."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return depth == MAX_DEPTH or any(_is_deep(one, depth + 1) for one in inner)
    return False


def text_lines(
    file: Path, encoding: str = "utf-8", *, indented: bool = False
) -> Iterator[tuple[int, str, Rejection | None]]:
    """Number and text of each line that is not blank; of one that is too long, the beginning alone. Blanks at its ends
    are left out, but not those before the text of one that is `indented`.

    A line that is not valid does not affect others, and has surrogates. Raises BadInput for UTF-16 where that is not
    the `encoding`, and for what is not in one of several bytes.
    """
    codec = lookup(encoding).name
    errors = "surrogatepass" if codec.startswith(("utf-16", "utf-32")) else "surrogateescape"
    with opened(file) as source:
        read_line = TextIOWrapper(source, encoding, errors, newline="\n").readline
        try:
            for number, line in enumerate(iter(lambda: read_line(MAX_LINE_BYTES + 1), ""), start=1):
                reason, rest = None, line
                if number == 1 and line.startswith(("\udcff\udcfe", "\udcfe\udcff")):
                    raise BadInput(f"{file.name} is UTF-16; write it as UTF-8.")
                if len(line) > MAX_LINE_BYTES:
                    reason = TOO_LONG
                    while rest and not rest.endswith("\n"):
                        rest = read_line(MAX_LINE_BYTES)
                    line = line[:SHOWN_BYTES]
                line = line.removeprefix("\ufeff") if number == 1 else line
                text = line.rstrip(_WHITE_SPACE) if indented else line.strip(_WHITE_SPACE)
                try:
                    text.encode()
                except UnicodeEncodeError:
                    reason = reason or f"The line is not valid {'UTF-8' if codec.startswith('utf-8') else encoding}."
                if text or reason:
                    yield number, text, Rejection(number, reason) if reason else None
        except UnicodeError as error:
            said = getattr(error, "reason", str(error))  # a missing byte order mark has none
            raise BadInput(f"{file.name} is no {encoding}: {said}; --encoding names another encoding.") from error
