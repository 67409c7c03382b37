"""Text files with one row per line, and lines of JSON."""

from codecs import lookup
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import orjson

from store.errors import BadInput, shorten
from store.transfer.formats.source import JSON_REASON, opened
from store.transfer.rows import Rejection

MAX_LINE_BYTES = 10_000_000  # far more than the largest item
MAX_DEPTH = 100  # of objects and lists in a line; DynamoDB stores 32
SHOWN_BYTES = 1_000  # of a longer one
TOO_LONG = f"The line is longer than {MAX_LINE_BYTES:,} bytes."
_WHITE_SPACE = " \t\n\r\x0b\x0c"  # of ASCII


def json_lines(file: Path) -> Iterator[tuple[int, str, Any]]:
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
