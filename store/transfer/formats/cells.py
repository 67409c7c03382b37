"""Cells of tables: their texts, as a person sees them, and the texts that mean no value or are numbers."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import cached_property
from typing import NamedTuple

import orjson

from store.errors import BadInput, shorten
from store.model.attributes import NUMBERS, Attribute, Kind

MAX_NAMED_COLUMNS = 40  # in a message
EXAMPLES = ("1,234.56", "1.234,56", "1 234,56", "1'234.56", "1,23,456.00")  # of number formats
DATE_EXAMPLES = ("31.12.2026", "12/31/2026", "31/12/2026", "2026/12/31", "31-12-2026", "20261231")
_SPACES = re.compile("[\u00a0\u2009\u202f]")  # narrow and no-break spaces, as programs write them between thousands
_SIGNED = re.compile(r"([^\d\s]*)\s*(\d.*\d)\s*(\D*)", re.DOTALL)  # with a sign of currency before or after it
_DATE_FORMATS = [f"%{a}{sign}%{b}{sign}%{c}" for sign in "./-" for a, b, c in ("dmY", "mdY", "Ymd")] + ["%Y%m%d"]
_MIDNIGHT = re.compile(r"0?0(:00(:00(\.0+)?)?)?")


@dataclass(frozen=True)
class NumberFormat:
    """A way to write numbers in text files, named by an example: one of `EXAMPLES`, perhaps with a sign of currency
    before or after it, such as `1.234,56 €`, which cells may have or not.
    """

    example: str

    def __post_init__(self) -> None:
        if self._parts[1] not in EXAMPLES or "%" in self.example:
            written = " or ".join(f'"{example}"' for example in (*EXAMPLES, "$1,234.56"))
            raise BadInput(f'"{shorten(self.example)}" is not a format of numbers; use {written}.')

    @cached_property
    def _parts(self) -> tuple[str, str, str]:
        """The example's sign of currency before the number, the number, and the sign after it."""
        found = _SIGNED.fullmatch(_SPACES.sub(" ", self.example).strip())
        return (found[1], found[2], found[3]) if found else ("", "", "")

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        before, number, after = self._parts
        group, point, is_indian = re.escape(number[1]), re.escape(number[-3]), number.count(",") > 1
        above = f"[0-9]{{1,2}}({group}[0-9]{{2}})*" if is_indian else f"[0-9]{{1,3}}({group}[0-9]{{3}})*"
        digits = f"(?P<number>({above}{group}[0-9]{{3}}|[0-9]+)({point}[0-9]+)?)"
        signs = [f"({re.escape(sign)}\\s*)?" if sign else "" for sign in (before, after)]
        return re.compile(f"(?P<sign>[+-]?){signs[0]}(?P<inner>[+-]?){digits}\\s*{signs[1]}")

    def plain(self, text: str) -> str:
        """A number with a decimal point and without thousands, such as 1234.56. Raises BadInput for any other text."""
        _, number, _ = self._parts
        found = self._pattern.fullmatch(_SPACES.sub(" ", text.strip()))
        if not found or (found["sign"] and found["inner"]):
            raise BadInput(f'"{shorten(text)}" is not a number like {self.example}.')
        plain = found["number"].replace(number[1], "").replace(number[-3], ".")
        return f"{found['sign']}{found['inner']}{plain}"


@dataclass(frozen=True)
class DateFormat:
    """A way to write dates in text files, named by an example, such as 31.12.2026."""

    example: str

    def __post_init__(self) -> None:
        if not self._format:
            way = f"write one with a year of four digits and a day above 12, such as {', '.join(DATE_EXAMPLES)}"
            raise BadInput(f"--dates {shorten(self.example)} is no clear example of a date; {way}.")

    @cached_property
    def _format(self) -> str:
        """The only format that the example fits, empty where it fits several, or none."""
        fitting = [one for one in _DATE_FORMATS if _iso(self.example, one)]
        return fitting[0] if len(fitting) == 1 else ""

    def plain(self, text: str) -> str:
        """A date, perhaps with a time after it, as ISO 8601 has it. Raises BadInput for any other text."""
        day, _, clock = text.strip().replace("T", " ", 1).partition(" ")
        if not (found := _iso(day, self._format)):
            raise BadInput(f'"{shorten(text)}" is not a date like {self.example}.')
        hour, colon, rest = clock.replace(" ", "").partition(":")
        return f"{found}T{hour.zfill(2)}{colon}{rest}" if clock and not _MIDNIGHT.fullmatch(clock) else found


def _iso(text: str, date_format: str) -> str:
    try:
        found = datetime.strptime(text, date_format).date().isoformat()
    except ValueError:
        return ""
    return found if len(text) == 8 or date_format != "%Y%m%d" else ""


@dataclass(frozen=True)
class CellFormat:
    """How cells are written: texts that mean no value, the formats of numbers and of dates, columns whose empty cells
    have the value above, as merged cells have, and the sign between the values of a list. Texts and signs are by
    column, and by "" for all.
    """

    nulls: Mapping[str, frozenset[str]] = field(default_factory=dict)
    numbers: NumberFormat | None = None
    fill_down: frozenset[str] = frozenset()
    dates: DateFormat | None = None
    separators: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, nulls: Sequence[str], numbers: str | None, fill_down: Sequence[str] = (), dates: str | None = None,
        separators: Sequence[str] = (),
    ) -> "CellFormat":  # fmt: skip
        """The format by texts such as `NULL` and `Population=NA`, by examples of numbers and dates, and by signs such
        as `|` and `Tags=|`. Raises BadInput.
        """
        signs = _by_column(separators)
        if any(len(own) > 1 or "" in own for own in signs.values()):
            raise BadInput('--list-separator is one sign, such as "|", or one for a column, such as "Tags=|".')
        found = NumberFormat(numbers) if numbers is not None else None
        days = DateFormat(dates) if dates is not None else None
        by_column = {column: sign for column, (sign,) in signs.items()}
        return cls(_by_column(nulls), found, frozenset(fill_down), days, by_column)

    def nulls_in(self, column: str) -> frozenset[str]:
        """The texts that mean no value in a column."""
        return self.nulls.get("", frozenset()) | self.nulls.get(column, frozenset())

    def value(self, text: str, attribute: Attribute, column: str) -> object:
        """The value of a text for an attribute: a plain number or an ISO date, of several values a list of them, where
        they are written otherwise; what no attribute takes where they are not written like the example.
        """
        own = self.dates if attribute.kind in (Kind.DATE, Kind.DATETIME) else None
        example = self.numbers if attribute.kind in NUMBERS else own
        sign = self.separators.get(column) or self.separators.get("", ";")
        if not attribute.many:
            return _plain(text, example)
        if text.startswith("[") or (example is None and sign == ";"):
            return text
        return [_plain(part.strip(), example) for part in text.split(sign) if part.strip()]

    def check(self, header: Sequence[str]) -> None:
        """Raise BadInput for a column of an option that is not in the header."""
        used = (("--null", self.nulls), ("--fill-down", self.fill_down), ("--list-separator", self.separators))
        for option, used_by in used:
            check_named(option, {*used_by} - {""}, header)


def _by_column(texts: Iterable[str]) -> dict[str, frozenset[str]]:
    """What is given by column, as in `Population=NA`, and by "" for all, as in `NULL`."""
    found: dict[str, frozenset[str]] = {}
    for text in texts:
        column, own = text.split("=", 1) if "=" in text[1:-1] else ("", text)
        found[column] = found.get(column, frozenset()) | {own}
    return found


def check_named(option: str, columns: Iterable[str], header: Sequence[str]) -> None:
    """Raise BadInput for a column of an option that is not in the header."""
    if unknown := {*columns} - {*header}:
        raise BadInput(f'The file has no column "{min(unknown)}" for {option}; it has {named(header)}.')


def _plain(text: str, example: NumberFormat | DateFormat | None) -> object:
    try:
        return example.plain(text) if example else text
    except BadInput:
        return _NotLike(text, example.example if example else "")


PLAIN = CellFormat()


@dataclass(frozen=True, repr=False)
class _NotLike:
    """A number or a date that is not written like the example, which no attribute takes."""

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
