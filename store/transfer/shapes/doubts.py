"""Doubts about tables: what a table looks like, where that is not what an import takes it for, and the options that
import it so. Each shape sees its own tables; here is what concerns all.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from store.errors import shorten
from store.model.hierarchy import Hierarchy, Level
from store.transfer.formats.cells import fold
from store.transfer.formats.source import Doubt, Guess, csv_line
from store.transfer.formats.table import COMPARED_COLUMNS, Sample

ENOUGH_ROWS = 3
NUMBER = re.compile(r"[+-]?\d+([.,]\d+)*(e[+-]?\d+)?", re.IGNORECASE)
DATE = re.compile(r"\d{4}-\d\d?-\d\d?([T ].*)?|\d\d?([./-])\d\d?\2\d{2,4}")
_NUMBERED_CODE = re.compile(r"[A-Z]{0,3}\d[\w.]*")
_YEAR = re.compile(r"(1[89]|20|21)\d\d")
HEADER_WORDS = frozenset(("id", "key", "code", "name", "path", "level", "type", "title", "label", "parent", "parentid"))
NAMES = re.compile(
    "name|title|label|titel|titre|titulo|título|bezeichnung|benennung|nombre|^nom|nazwa|назва|text|employee|"
    "mitarbeiter|名"
)
_NO_NAMES = re.compile(  # in folded names of columns of other texts, and of other nodes
    "desc|beschreib|опис|comment|komment|bemerk|remark|note|slug|ur[il]$|link|href|mail|job|position|type|status|state$|"
    "path|image|icon|meta|seo|parent|manager|说明|描述|備考|説明"
)
_NO_WORDS = re.compile("code|slug|abbr|kürzel|symbol|^(id|key|nr|no|ref|iso)|(id|key)$")  # of ids in folded names


@dataclass(frozen=True)
class Look:
    """What is seen of a table: its `sample`, all its `rows` as texts, and the columns of `keys` that it is taken to
    have.
    """

    hierarchy: Hierarchy
    source: str
    sample: Sample
    rows: Callable[[], Iterator[Sequence[str]]]
    keys: Sequence[str] = ()

    def tree_by(self, **parts: str) -> list[str]:
        """The options of a tree by these columns, with the columns of levels and names where these are clear."""
        columns = zip(self.sample.header, self.sample.columns, strict=False)
        free = [(column, [*filter(None, own)]) for column, own in columns if column and column not in parts.values()]
        others = [(column, values) for column, values in free if values]
        nested = nested_level(self.hierarchy)
        named = [nested.name] if nested else []
        for column, values in others:
            if "level" not in parts and all(found := [*map(self.hierarchy.find, {*values})]):
                parts["level"], named = column, [level.name for level in found if level]
        name = self._name([one for one in others if one[0] != parts.get("level")], parts.get("id"))
        if name and fold(name) != "name" and not named:
            parts["key"] = name
        words = [word for level in sorted(named) for word in ("--name", f"{level.lower()}={name}")] if name else []
        by = csv_line([f"{what}={column}" for what, column in parts.items()])
        return ["--tree-by", by, *([] if "indent" in parts or fold(name) == "name" else words)]

    def _name(self, columns: Sequence[tuple[str, Sequence[str]]], own_id: str | None) -> str:
        """The column of names among others with their values, by its name first; empty where that of ids has them."""
        texts = [(_rank(name, own), 10 * len({*own}) < 9 * len(own), name) for name, own in columns if are_words(own)]
        rank, _, name = min(texts, key=lambda one: one[:2], default=(3, False, ""))
        if own_id and rank and are_words(ids := [*filter(None, self.sample.column(own_id))]):
            is_code = bool(_NO_WORDS.search(fold(own_id))) or 2 * sum(map(_is_name, ids)) < len(ids)
            if rank >= 3 or not is_code or _rank(own_id) < 2:
                return ""
        return name


def _rank(column: str, values: Sequence[str] = ()) -> int:
    """How likely a column is that of names, by its own name and whether half of the values are different; 0 is the
    likeliest.
    """
    folded, few = fold(column), 2 * (2 * len({*values}) <= len(values) > 2)
    return 0 if folded == "name" else 3 if _NO_NAMES.search(folded) else few + (1 if NAMES.search(folded) else 2)


def _is_name(text: str) -> bool:
    is_word = text[0].isupper() and any(map(str.islower, text))
    return "@" not in text and (" " in text or not text.isascii() or is_word)


def shape_doubt(seen: str, *readings: Sequence[str], other: str = "") -> Doubt:
    """The doubt of a shape that was seen, with the options of each way to read it, and another way out."""
    return Doubt(Guess.SHAPE, seen, *readings, other=other or ("" if any(readings) else "write a file of paths"))


def nested_level(hierarchy: Hierarchy) -> Level | None:
    """The level that may be a root and nests in itself, of which a tree of any depth can be."""
    return next((one for one in hierarchy.levels.values() if one.may_be_root and one.name in one.under), None)


def are_words(values: Collection[str]) -> bool:
    return sum(any(map(str.isalpha, value)) for value in values) >= 0.9 * len(values)


def check_header(hierarchy: Hierarchy, source: str, sample: Sample) -> None:
    """Raise Doubt for a table without a header, or with two."""
    known = {fold(name) for level in hierarchy.levels.values() for name in (level.name, *level.attributes)}
    if (cell := _data_in_header(sample, known)) is not None:
        names = [chr(ord("a") + number % 26) * (number // 26 + 1) for number in range(len(sample.header))]
        if len({*sample.columns[0], sample.header[0]}) > len(sample.texts):
            names[0] = "id"
        raise Doubt(
            Guess.HEADER,
            f'The first row of {source} looks like data: "{shorten(cell)}" is no name of a column, by the rows below',
            ("--columns", ",".join(names)),
            other=f"--columns NAME,NAME,… names the {len(names):,} columns of a file without a header",
        )
    if (found := _second_header(sample)) is not None:
        cell, above = found
        names = [*filter(None, map(str.strip, sample.texts[0]))]
        is_header = len({*names}) == len(names) and (above != "numbers" or len(names) == len(sample.header))
        number = next(number for number, _, reason, *_ in sample.rows if reason is None)
        seen = f'The first row below the header of {source} looks like a second one: "{shorten(cell)}" stands above'
        reading = ("--header-row", str(number)) if is_header else ()
        raise Doubt(Guess.HEADER, f"{seen} {above}", reading, other="remove it")


def mojibake(keys: Collection[str]) -> str | None:
    """A key with a replacement character, or one of UTF-8 that was read as Windows-1252, as most beyond ASCII are; of
    a hundred keys at least one.
    """
    others = [key for key in keys if not key.isascii()]
    found = [key for key in others if _is_misread(key)]
    return next(
        (key for key in others if "\ufffd" in key),
        found[0] if 200 * len(found) > max(100 * len(others), 2 * len(keys)) else None,
    )


def _data_in_header(sample: Sample, known: Collection[str]) -> str | None:
    """A name of a column that is a value, by those below it; None in a table with a header.

    `known` are the folded names of levels and attributes: one of them, or a word above numbers, makes it a header.
    """
    found: str | None = None
    if not {*map(fold, sample.header[:COMPARED_COLUMNS])}.isdisjoint({*known, *HEADER_WORDS}):
        return None
    for name, column in zip(sample.header, sample.columns, strict=False):
        values = [*filter(None, column)]
        if not values or not name:
            continue
        if _NUMBERED_CODE.fullmatch(name) and any(value != name and value.startswith(name) for value in values):
            return name  # a code, such as A01 above A01.1
        first, dot, _ = name.partition(".")
        dotted = [value for value in values if dot and dot in value and " " not in value + name]
        if len(dotted) >= 0.9 * len(values) and any(value.startswith(first + dot) for value in dotted):
            return name  # a path, such as comp.lang.ada above comp.lang.c
        kind, kinds = _kind(name), Counter(map(_kind, values))
        is_kind = kinds[kind] >= 0.9 * len(values)
        if kind == "text" and kinds["text"] < 0.1 * len(values):
            return None
        if name in values or (is_kind and kind != "text" and not _YEAR.fullmatch(name)):
            found = found or name
    return found


def _second_header(sample: Sample) -> tuple[str, str] | None:
    """A word in the first row above a column of numbers or dates alone, where the row has nothing but words; or above a
    column without a name, where the words are in no other row.
    """
    first = [column[0] for column in sample.columns if column]
    words = [word for word in first if word]
    if all(_kind(word) not in ("number", "date") for word in words) and len({*words}) == len(words):
        named = zip(sample.header, sample.columns, strict=False)
        unnamed = [column for name, column in named if not name and column[0] and column[0] not in column[1:]]
        if len(unnamed) > 1 or any(fold(column[0]) in HEADER_WORDS for column in unnamed):
            return unnamed[0][0], "values, and the header has no name there"
    if len(sample.texts) <= ENOUGH_ROWS or not all(map(_is_word, first)):
        return None
    columns = ([*filter(None, column[1:])] for column in sample.columns)
    found = (
        word for word, values in zip(first, columns, strict=True)
        if word and len(values) >= ENOUGH_ROWS and all(_kind(value) in ("number", "date") for value in values)
    )  # fmt: skip
    return next(((word, "numbers") for word in found), None)


def _kind(text: str) -> str:
    """Number, date, the shape of a code with digits, such as AA-999, or text."""
    if NUMBER.fullmatch(text):
        return "number"
    if DATE.fullmatch(text):
        return "date"
    if any(character.isdecimal() for character in text) and " " not in text:
        return re.sub(r"[^\W\d_]", "A", re.sub(r"\d", "9", text))
    return "text"


def _is_word(text: str) -> bool:
    return not any(map(str.isdecimal, text))


def _is_misread(key: str) -> bool:
    try:
        return bool(key.encode("cp1252").decode())
    except UnicodeError:
        return False
