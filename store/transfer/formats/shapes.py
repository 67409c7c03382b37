"""Shapes of tables that an import would misread: trees by parent id, whole paths or codes in one column, cells that are
empty below the first of a group, a first row of data.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import accumulate, islice
from math import gcd

from store.errors import BadInput, quantity
from store.transfer.formats.columns import fold, named
from store.transfer.parent_ids import NO_PARENT

Rows = Callable[[], Iterator[Sequence[str]]]

SAMPLE_ROWS = 5_000
SAMPLE_CELLS = 200_000
SAMPLE_CHARACTERS = 20_000_000
MAX_COLUMNS = 100  # that are compared with each other
MAX_ROWS = 300_000  # in which a column of parents is looked for, of which two numbers are in memory
MAX_CANDIDATES = 4
TITLE_ROWS, MAX_TITLES = 50, 20  # rows in which a title is looked for, and those above a header
SHOWN_NAMES = 3
ARROWS = (" > ", " » ", " › ", " → ", " -> ")
SURE_SEPARATORS = (*ARROWS, " :: ", " | ", "->", ">", "»", "›", "→", "::", "|", "\\")
DASHES = (" - ", " – ", ";", ".")  # which keys may have, too, so that all of them must
SEPARATORS = (*SURE_SEPARATORS, *DASHES, " / ", "/")
ENOUGH_ROWS = 3
_PARENTS = re.compile(
    "parent|broader|superior|superclass|reportsto|manager|boss|belongsto|partof|containedin|eltern|übergeordnet|"
    "uebergeordnet|vorgesetzt|padre|madre|genitore|rodzic|родител|батьк|上级|父"
)
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)*(e[+-]?\d+)?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?([T ].*)?|\d\d?([./-])\d\d?\2\d{2,4}")
_NUMBERED = re.compile(r"(\D*)(\d+)", re.ASCII)
_NUMBERED_CODE = re.compile(r"[A-Z]{0,3}\d[\w.]*")
_SEPARATOR = re.compile(r"\s*[^\w\s'’(\[&+]|_")  # a sign, with blanks before it or not
_MARKS = re.compile(r"\s+\S|[-+*.>–—•·│├└─┬| \xa0]+\s*[^\W\d]")  # of the depth of a line in an outline
_RANGE = re.compile(r"\d+-\d+")  # of codes, such as 31-33
_YEAR = re.compile(r"(1[89]|20|21)\d\d")
_HEADER_WORDS = frozenset(
    ("id", "key", "code", "name", "path", "level", "type", "title", "label", "parent", "parentid")
)


class Sample:
    """The first rows of a table, fewer of a wide one, or of one with long texts; and its columns, without blanks."""

    def __init__(self, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        self.header = header
        self.rows: list[Sequence[str]] = []
        size = 0
        for row in islice(rows, min(SAMPLE_ROWS, SAMPLE_CELLS // max(1, len(header)) + 1)):
            self.rows.append(row)
            size += sum(map(len, row))
            if size > SAMPLE_CHARACTERS:
                break
        self.columns = [[row[index].strip() for row in self.rows] for index in range(min(len(header), MAX_COLUMNS))]

    def column(self, name: str) -> list[str]:
        """The values of the first column of this name."""
        index = self.header.index(name)
        return self.columns[index] if index < MAX_COLUMNS else [row[index].strip() for row in self.rows]


def parent_column(sample: Sample, rows: Rows, levels: Collection[str] = ()) -> tuple[str, str] | None:
    """The column by which rows refer to their parents, and that of their ids, by their values; None in other tables.

    Two columns of `levels` refer to each other in any table of cities that are states, so only a name tells them. Where
    several columns are levels, these are the tree, and any other column may have numbers that are ids, too. Of several
    pairs of columns, that with most references in the first rows is taken. Children may stand before their parents, so
    a column that is named like one needs none there.
    """
    header, columns = sample.header, sample.columns
    are_named = [bool(_PARENTS.search(fold(column))) for column in header]
    found: list[tuple[bool, int, int, int]] = []
    for own, ids in enumerate(columns):
        known = {*ids} - {""}
        if not known or len(known) < 0.95 * len(ids):
            continue
        for parent, values in enumerate(columns):
            if parent == own or (len(levels) > 1 and not are_named[parent]):
                continue
            references = sum(value in known and value != one for one, value in zip(ids, values, strict=True))
            if are_named[parent] or references >= max(2, len(ids) // 100):
                found.append((not are_named[parent], -references, own, parent))
    for *_, own, parent in sorted(found)[:MAX_CANDIDATES]:
        pairs = ((row[own].strip(), row[parent].strip()) for row in rows() if len(row) > max(own, parent))
        if _is_tree(islice(pairs, MAX_ROWS), is_named=are_named[parent], is_id=fold(header[own]) in _HEADER_WORDS):
            return header[parent], header[own]
    return None


def _is_tree(pairs: Iterable[tuple[str, str]], *, is_named: bool, is_id: bool) -> bool:
    """Whether pairs of an id and that of its parent are a tree; texts are kept as numbers, for their memory.

    A column that is not named like a parent may be any number, or the capital of each city. It is one of parents if
    nothing refers to itself by a number, in a circle or elsewhere, and something has a grandparent, or the other column
    `is_id` by its name.
    """
    ids: dict[int, int | None] = {}
    is_numeric, own_references, blanks = True, 0, 0
    for own, parent in pairs:
        is_none = parent.casefold() in NO_PARENT if is_named else not parent or (is_id and parent == "0")
        blanks += is_none
        own_references += own == parent
        is_numeric = is_numeric and (is_none or bool(_NUMBER.fullmatch(parent)))
        ids[hash(own)] = None if is_none or own == parent else hash(parent)
    references = [parent for parent in ids.values() if parent is not None]
    known = sum(parent in ids for parent in references)
    if is_named:
        return known > 0 and known * 2 >= len(references)
    if known < len(references) or (is_numeric and (own_references or not blanks)):
        return False
    above: dict[int, int | None] = ids  # an ancestor of each, twice as far after each round; in circles without an end
    for _ in range(len(ids).bit_length() + 1):
        above = {own: above.get(parent) for own, parent in above.items() if parent is not None}
    return bool(references) and not above and (is_id or any(ids[parent] is not None for parent in references))


def joined_path(keys: Collection[str], *, are_roots: bool = False) -> tuple[str, str] | None:
    """A long one of different keys of one level that are whole paths, such as `A > B > C`, and the sign between their
    parts; None where they are not.

    The beginning of one is another, or that of others. With a separator that keys may have themselves, such as `/`,
    most of them must be so, and have no numbers at their ends, as houses of a street. Those that `are_roots` may also
    be of three parts each, such as `AE.01.101`.
    """
    known = {key.strip() for key in keys}
    for separator in SEPARATORS:
        joined = [key for key in keys if separator in key.strip() and not (separator == "." and " " in key.strip())]
        if not joined:
            continue
        parents = [key.rpartition(separator)[0].strip() for key in joined]
        counts = Counter(parents)
        related = sum(parent in known or counts[parent] > 1 for parent in parents)
        if separator in SURE_SEPARATORS:
            found = related >= 2 or not known.isdisjoint(parents) or any(key.count(separator) > 1 for key in joined)
            found = found or (separator in ARROWS and len(joined) == len(keys) > 1)
        else:
            # No part is without letters or empty, as in a web address.
            words = sum(all(any(map(str.isalpha, part)) for part in key.split(separator)) for key in joined)
            is_related = related * 2 >= len(joined) and words >= 0.9 * len(joined)
            enough = len(keys) - len(known & {*parents}) if separator in DASHES else len(keys) / 2
            found = is_related and len(joined) >= max(ENOUGH_ROWS, enough)
            found = found or (separator == " / " and words == related == len(joined) > 1)
        if found:
            return max(joined, key=lambda key: (key.count(separator), -len(key))), separator
    for separator in (".", "-", ", ") if are_roots else ():
        codes = [key for key in keys if key.count(separator) > 1 and not _DATE.fullmatch(key)]
        codes = codes if separator == ", " else [key for key in codes if " " not in key.strip()]
        counts = Counter(code.rpartition(separator)[0] for code in codes)
        if len(codes) >= 0.9 * len(keys) and sum(one for one in counts.values() if one > 1) * 2 >= len(codes):
            return max(codes, key=lambda code: counts[code.rpartition(separator)[0]]), separator
    return None


def paths_in_cells(values: Collection[str]) -> tuple[str, str, str] | None:
    """A long one of the cells of a column that are whole paths, the sign between their parts, and the one between
    several paths in a cell, such as `|` in `A > B|A > C`, empty where each has one; None where they are not.
    """
    for each in ("|", ";", "\n", ","):
        parts = {part for value in values for part in value.split(each)}
        if any(each in value for value in values) and (path := joined_path(parts, are_roots=True)):
            example, sign = path
            if each not in sign and all(
                sign in part for value in values if each in value for part in value.split(each)
            ):
                return example, sign, each
    path = joined_path(values, are_roots=True)
    return (*path, "") if path else None


def column_chain(sample: Sample) -> list[str]:
    """The columns of words, from the left, of which each value is below one value of the column before.

    The first has fewer values than rows, each other one more than the one before.
    """
    chain: list[int] = []
    for index, column in enumerate(sample.columns):
        values = {*column} - {""}
        if not values or not sample.header[index] or not all(any(map(str.isalpha, value)) for value in values):
            continue
        if not chain:
            chain = [index] if len(values) < len(column) else []
            continue
        pairs = {(above, own) for above, own in zip(sample.columns[chain[-1]], column, strict=True) if own}
        has_more = "" in column or len(values) > len({*sample.columns[chain[-1]]})
        if has_more and len(pairs) <= 1.1 * len(values):
            chain.append(index)
    return [sample.header[index] for index in chain]


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


def nested_keys(keys: Collection[str]) -> tuple[str, str] | None:
    """A root, and the longest other one that it begins with, where most of the roots begin with another one.

    What follows is a separator, or the keys are codes: `71`, `711` and `A01`, `A01.1`, also such as `71000000`,
    `71100000`. Numbers that follow one another without large gaps are no such codes.
    """
    if len(keys) < ENOUGH_ROWS:
        return None
    if 5 * len(ranges := [*filter(_RANGE.fullmatch, keys)]) <= len(keys):
        keys = {*keys} - {*ranges} | {key.partition("-")[0] for key in ranges}
    codes = {key for key in keys if any(map(str.isdecimal, key)) and not any(map(str.isspace, key))}
    are_codes = len(codes) >= 0.5 * len(keys) and not _are_consecutive(codes)
    found = _beginnings(keys, are_codes=are_codes)
    if are_codes and not found and len({len(key) for key in keys}) == 1:
        padded = {re.sub("(00)+$", "", key): key for key in keys}
        found = [(padded[key], padded[above]) for key, above in _beginnings(padded, are_codes=True)]
        found = found if len(found) >= 0.9 * sum(len(key) > 2 for key in padded) else []
    return max(found, key=lambda pair: (len(pair[1]), pair)) if len(found) * 2 >= len(keys) else None


def outlined(texts: Sequence[str]) -> str | None:
    """A root, in the order of the file, that is indented or has a mark of its depth, as many have and the first not."""
    marks = [_MARKS.match(text) for text in texts]
    found = [text for text, mark in zip(texts, marks, strict=True) if mark]
    return found[0] if found and marks[0] is None and len(found) >= 0.3 * len(texts) else None


def _beginnings(keys: Collection[str], *, are_codes: bool) -> list[tuple[str, str]]:
    """The keys that begin with other ones, each with the longest of these."""
    found: list[tuple[str, str]] = []
    stack: list[str] = []
    for key in sorted(keys):
        while stack and not key.startswith(stack[-1]):
            stack.pop()
        above = next((one for one in reversed(stack) if are_codes or _SEPARATOR.match(key, len(one))), None)
        if above:
            found.append((key, above))
        stack.append(key)
    return found


def _are_consecutive(codes: Iterable[str]) -> bool:
    """Whether codes are numbers, with the same letters before them or several, that fill at least half their range.

    Codes of two digits below those of one have no number that ends in 0.
    """
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    for code in codes:
        if not (parts := _NUMBERED.fullmatch(code)):
            return False
        numbers[parts[1]].add(int(parts[2]))
    step = gcd(*(number for found in numbers.values() for number in found)) or 1
    ranges = sum((max(found) - min(found)) // step + 1 for found in numbers.values())
    has_tens = any(number % 10 == 0 for found in numbers.values() for number in found) or step > 1 or ranges < 20
    return has_tens and sum(map(len, numbers.values())) * 2 >= ranges


def first_of_group(
    sample: Sample, keys: Sequence[str], filled: Collection[str], may_stand: Callable[[str, str | None], bool]
) -> tuple[str, str, str] | None:
    """The first of the columns of levels, from the root down, that is empty below the first row of each group; with a
    key below, and what it would be below.

    Each of its values stands in one row alone, with a key of a level below or as a line above its group, and rows
    without one follow it. So it is no level that some nodes skip, such as the states of a country. Rows whose key of
    one column may not stand below that of another (None for the root) are rejected anyway: a few are only errors. The
    empty cells of columns that are `filled` have the value above.
    """
    columns = {column: sample.column(column) for column in keys}
    for column in columns.keys() & {*filled}:
        columns[column] = [*accumulate(columns[column], _or_above)]
    rows = [*zip(*columns.values(), strict=True)]
    for place, column in enumerate(keys[:-1]):
        if column in filled:
            continue
        above: list[str] = []
        seen: Counter[tuple[str, ...]] = Counter()
        empty, allowed, groups, has_below, example = 0, 0, 0, False, None
        for number, texts in enumerate(rows):
            group = [text or "".join(above[at : at + 1]) for at, text in enumerate(texts[:place])]
            if text := texts[place]:
                above, has_below = [*group, text], any(texts[place + 1 :])
                seen[tuple(above)] += 1
            elif above[:place] != group:
                above = [*group, ""]
            elif any(texts[place + 1 :]) and any(above[place:]):
                below = next(key for key, text in zip(keys[place + 1 :], texts[place + 1 :], strict=True) if text)
                upper = next((key for key, text in zip(keys[place - 1 :: -1], group[::-1], strict=False) if text), None)
                groups += bool(rows[number - 1][place])
                if has_below or not any(texts[:place]):
                    empty += 1
                    allowed += may_stand(below, upper if place else None)
                example = example or (column, texts[keys.index(below)], "/".join(filter(None, above)))
        if groups == 1 and len(seen) > ENOUGH_ROWS:
            continue  # one block of rows without it, such as those of another kind
        if (allowed or empty >= max(2, len(rows) // 3)) and (seen.total() - len(seen)) * 5 <= empty:
            return example
    return None


def data_in_header(sample: Sample, known: Collection[str]) -> str | None:
    """A name of a column that is a value, by those below it; None in a table with a header.

    `known` are the folded names of levels and attributes: one of them, or a word above numbers, makes it a header.
    """
    found: str | None = None
    if not {*map(fold, sample.header[:MAX_COLUMNS])}.isdisjoint({*known, *_HEADER_WORDS}):
        return None
    for name, column in zip(sample.header, sample.columns, strict=False):
        values = [*filter(None, column)]
        if not values or not name:
            continue
        if _NUMBERED_CODE.fullmatch(name) and any(value != name and value.startswith(name) for value in values):
            return name  # a code, such as A01 above A01.1
        kind, kinds = _kind(name), Counter(map(_kind, values))
        is_kind = kinds[kind] >= 0.9 * len(values)
        if kind == "text" and kinds["text"] < 0.1 * len(values):
            return None
        if name in values or (is_kind and kind != "text" and not _YEAR.fullmatch(name)):
            found = found or name
    return found


def second_header(sample: Sample) -> str | None:
    """A word in the first row above a column of numbers or dates alone, where the row has nothing but words."""
    first = [column[0] for column in sample.columns if column]
    if len(sample.rows) <= ENOUGH_ROWS or not all(map(_is_word, first)):
        return None
    columns = ([*filter(None, column[1:])] for column in sample.columns)
    return next(
        (word for word, values in zip(first, columns, strict=True)
         if word and len(values) >= ENOUGH_ROWS and all(_kind(value) in ("number", "date") for value in values)), None
    )  # fmt: skip


def check_titles(place: str, rows: Sequence[tuple[int, Sequence[str]]], *, are_padded: bool = False) -> None:
    """Raise BadInput where the first of `rows` is narrower than nearly all others, as a title above a header is.

    Each has its number and its cells, and `place` has a {} for the number. Empty cells at the end of a title, as
    spreadsheets write them, do not make it wider; rows that `are_padded` have them, or had them in their sheet.
    """
    widths = [max((at for at, cell in enumerate(cells, start=1) if cell.strip()), default=0) for _, cells in rows]
    first = next((index for index, width in enumerate(widths[: MAX_TITLES + 1]) if width > widths[0]), None)
    if first is None:
        return
    (line, title), (number, header) = rows[0], rows[first]
    is_padded = are_padded or len(title) > widths[0]
    if is_padded and 2 * sum(map(bool, title)) > sum(map(bool, header)):
        return  # a few columns without a name, such as notes beside a table
    below = widths[first:] if is_padded else [len(cells) for _, cells in rows[first:]]
    if len(below) > 1 and sum(width > widths[0] for width in below) >= 0.9 * len(below):
        raise BadInput(
            f"{place.format(line)} has {quantity(widths[0], 'column')}, the rows below it have more; "
            f"--header-row {number} takes {named(header[: widths[first]][:SHOWN_NAMES])} as the names of the columns."
        )


def _kind(text: str) -> str:
    """Number, date, the shape of a code with digits, such as AA-999, or text."""
    if _NUMBER.fullmatch(text):
        return "number"
    if _DATE.fullmatch(text):
        return "date"
    if any(character.isdecimal() for character in text) and " " not in text:
        return re.sub(r"[^\W\d_]", "A", re.sub(r"\d", "9", text))
    return "text"


def _is_word(text: str) -> bool:
    return not any(map(str.isdigit, text))


def _is_misread(key: str) -> bool:
    try:
        return bool(key.encode("cp1252").decode())
    except UnicodeError:
        return False


def _or_above(above: str, own: str) -> str:
    return own or above
