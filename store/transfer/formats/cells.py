"""Cells of tables: their texts, as a person sees them, and the texts that mean no value or are numbers."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import NamedTuple

import orjson

from store.errors import BadInput, shorten

MAX_NAMED_COLUMNS = 40  # in a message
EXAMPLES = ("1,234.56", "1.234,56", "1 234,56", "1'234.56")  # of number formats
_SPACES = re.compile("[\u00a0\u2009\u202f]")  # narrow and no-break spaces, as programs write them between thousands


@dataclass(frozen=True)
class NumberFormat:
    """A way to write numbers in text files, named by an example: one of `EXAMPLES`."""

    example: str

    def __post_init__(self) -> None:
        if self.example not in EXAMPLES:
            written = " or ".join(f'"{example}"' for example in EXAMPLES)
            raise BadInput(f'"{shorten(self.example)}" is not a format of numbers; use {written}.')

    def plain(self, text: str) -> str:
        """A number with a decimal point and without thousands, such as 1234.56. Raises BadInput for any other text."""
        thousands, decimal = self.example[1], self.example[5]
        found = _SPACES.sub(" ", text.strip()) if thousands == " " else text.strip()
        group, point = re.escape(thousands), re.escape(decimal)
        if not re.fullmatch(rf"[+-]?([0-9]{{1,3}}({group}[0-9]{{3}})+|[0-9]+)({point}[0-9]+)?", found):
            raise BadInput(f'"{shorten(text)}" is not a number like {self.example}.')
        return found.replace(thousands, "").replace(decimal, ".")


@dataclass(frozen=True)
class CellFormat:
    """How cells are written: texts that mean no value, in all columns or in one, the format of numbers, and columns
    whose empty cells have the value above, as merged cells have.
    """

    nulls: frozenset[str] = frozenset()
    nulls_of: Mapping[str, frozenset[str]] = field(default_factory=dict)
    numbers: NumberFormat | None = None
    fill_down: frozenset[str] = frozenset()

    @classmethod
    def of(cls, nulls: Sequence[str], numbers: str | None, fill_down: Sequence[str] = ()) -> "CellFormat":
        """The format by texts such as `NULL` and `Population=NA`, and by an example of numbers. Raises BadInput."""
        everywhere = frozenset(null for null in nulls if "=" not in null)
        columns: dict[str, frozenset[str]] = {}
        for null in nulls:
            column, equals, text = null.partition("=")
            if equals:
                columns[column] = columns.get(column, frozenset()) | {text}
        return cls(everywhere, columns, NumberFormat(numbers) if numbers is not None else None, frozenset(fill_down))

    def nulls_in(self, column: str) -> frozenset[str]:
        """The texts that mean no value in a column."""
        return self.nulls | self.nulls_of.get(column, frozenset())

    def number(self, text: str) -> object:
        """The number in a text, or what no attribute takes where it is written in another way."""
        if self.numbers is None:
            return text
        try:
            return self.numbers.plain(text)
        except BadInput:
            return _NotLike(text, self.numbers.example)

    def check(self, header: Sequence[str]) -> None:
        """Raise BadInput for a column of an option that is not in the header."""
        for option, used_by in (("--null", self.nulls_of), ("--fill-down", self.fill_down)):
            if unknown := {*used_by} - {*header}:
                raise BadInput(f'The file has no column "{min(unknown)}" for {option}; it has {named(header)}.')


PLAIN = CellFormat()


@dataclass(frozen=True, repr=False)
class _NotLike:
    """A number that is not in the format of numbers, which no attribute takes."""

    text: str
    example: str

    def __repr__(self) -> str:
        return f'"{self.text}", which is not written like {self.example},'


class ShownCell(NamedTuple):
    """A cell of a sheet: its value, and the text that the sheet shows, or the reason why that is not known."""

    value: object
    text: str | None
    reason: str = ""


def text_of(cell: object) -> str:
    """A typed cell as a text file would have it: 7 for 7.0, true, 2026-11-22, nothing for None, objects as JSON."""
    match cell:
        case None:
            return ""
        case str():
            return cell
        case ShownCell(value, text):
            return text_of(value) if text is None else text
        case bool():
            return str(cell).lower()
        case float() if cell.is_integer() and abs(cell) < 1e15:
            return str(int(cell))
        case datetime() if cell.time() == time() and cell.tzinfo is None:
            return cell.date().isoformat()
        case date() | time():  # a datetime is a date
            return cell.isoformat()
        case list() | tuple() if not any(isinstance(one, dict | list) for one in cell):
            return ";".join(text_of(one) for one in cell)
        case dict() | list() | tuple():
            return json_text(cell)
        case _:
            return str(cell)


def typed_text(cell: object, column: str, *, is_name: bool = False, is_number: bool = False) -> str:
    """The text of a typed cell for a key, a name or an id (`is_name`), an attribute that is a number, or another one.

    Raises BadInput for a number whose text the sheet alone knows, and for a name of a type with several texts: 1.10
    and 1.1 are one number, 2 January and 2026-01-02 one date.
    """
    if isinstance(cell, ShownCell):
        if is_number or (cell.value is None and not is_name):
            return text_of(cell.value)
        if cell.text is None:
            raise BadInput(f'Column "{column}": {cell.reason}')
        return cell.text.strip()
    text = text_of(cell)
    is_exact = not isinstance(cell, float) or text.lstrip("-").isdecimal()
    if is_name and (isinstance(cell, bool | date | time | timedelta | dict | list | tuple) or not is_exact):
        raise BadInput(f'Column "{column}": {shorten(text)} is neither a text nor a whole number; write it as a text.')
    return text


def json_text(value: object) -> str:
    """A value as JSON; raises BadInput for one that is nested too deeply."""
    try:
        return orjson.dumps(value, default=str).decode()
    except orjson.JSONEncodeError as error:
        raise BadInput(f"A value cannot be written as JSON ({error}); nest it less deeply.") from error


def named(header: Sequence[str]) -> str:
    """The names of the columns, for a message."""
    names = [f'"{shorten(name)}"' for name in header[:MAX_NAMED_COLUMNS]]
    more = len(header) - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more else "")


def fold(name: str) -> str:
    """A name without case, spaces and punctuation, so that `Square Feet` is `square_feet`."""
    return "".join(character for character in name.casefold() if character.isalnum())
