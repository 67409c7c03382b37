"""Shapes of tables that an import would misread: trees by parent id, whole paths or codes in one column, cells that are
empty below the first of a group, a first row of data.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
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
SURE_SEPARATORS = (" > ", " » ", " › ", " → ", " -> ", " :: ", " | ", "->", ">", "»", "›", "→", "::", "|", "\\")
DASHES = (" - ", " – ", ";")  # which keys may have, too, so that all of them must
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
_YEAR = re.compile(r"(1[89]|20|21)\d\d")
_HEADER_WORDS = frozenset(
    ("id", "key", "code", "name", "path", "level", "type", "title", "label", "parent", "parentid")
)


def first_rows(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[Sequence[str]]:
    """The rows of a sample: fewer of a wide table, or of one with long texts."""
    found: list[Sequence[str]] = []
    size = 0
    for row in islice(rows, min(SAMPLE_ROWS, SAMPLE_CELLS // max(1, len(header)) + 1)):
        found.append(row)
        size += sum(map(len, row))
        if size > SAMPLE_CHARACTERS:
            break
    return found


def parent_column(header: Sequence[str], rows: Rows, levels: Collection[str] = ()) -> tuple[str, str] | None:
    """The column by which rows refer to their parents, and that of their ids, by their values; None in other tables.

    Two columns of `levels` refer to each other in any table of cities that are states, so only a name tells them. Where
    several columns are levels, these are the tree, and any other column may have numbers that are ids, too. Of several
    pairs of columns, that with most references in the first rows is taken. Children may stand before their parents, so
    a column that is named like one needs none there.
    """
    sample = [row for row in first_rows(header, rows()) if len(row) == len(header)]
    columns = [[row[index].strip() for row in sample] for index in range(min(len(header), MAX_COLUMNS))]
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


def joined_path(keys: Collection[str]) -> str | None:
    """A long one of different keys of one level that are whole paths, such as `A > B > C`; None where they are not.

    The beginning of one is another, or that of others. With a separator that keys may have themselves, such as `/`,
    most of them must be so, and have no numbers at their ends, as houses of a street.
    """
    for separator in SEPARATORS:
        joined = [key for key in keys if separator in key.strip()]
        if not joined:
            continue
        parents = [key.rpartition(separator)[0].strip() for key in joined]
        known, counts = {key.strip() for key in keys}, Counter(parents)
        related = sum(parent in known or counts[parent] > 1 for parent in parents)
        if separator in SURE_SEPARATORS:
            found = related >= 2 or not known.isdisjoint(parents) or any(key.count(separator) > 1 for key in joined)
        else:
            # No part is without letters or empty, as in a web address.
            words = sum(all(any(map(str.isalpha, part)) for part in key.split(separator)) for key in joined)
            is_related = related * 2 >= len(joined) and words >= 0.9 * len(joined)
            enough = len(keys) - len(known & {*parents}) if separator in DASHES else len(keys) / 2
            found = is_related and len(joined) >= max(ENOUGH_ROWS, enough)
        if found:
            return max(joined, key=lambda key: (key.count(separator), -len(key)))
    return None


def nested_keys(keys: Collection[str]) -> tuple[str, str] | None:
    """A root, and the longest other one that it begins with, where most of the roots begin with another one.

    What follows is a separator, or the keys are codes: `71`, `711` and `A01`, `A01.1`, also such as `71000000`,
    `71100000`, or of parts whose beginnings are no keys, such as `AE.01.101`. Numbers that follow one another without
    large gaps are no such codes.
    """
    codes = {key for key in keys if any(map(str.isdecimal, key)) and not any(map(str.isspace, key))}
    are_codes = len(codes) >= 0.5 * len(keys) and not _are_consecutive(codes)
    found = _beginnings(keys, are_codes=are_codes)
    if are_codes and not found and len({len(key) for key in keys}) == 1:
        padded = {re.sub("(00)+$", "", key): key for key in keys}
        found = [(padded[key], padded[above]) for key, above in _beginnings(padded, are_codes=True)]
        found = found if len(found) >= 0.9 * sum(len(key) > 2 for key in padded) else []
    if len(keys) < ENOUGH_ROWS:
        return None
    return max(found, key=lambda pair: (len(pair[1]), pair)) if len(found) * 2 >= len(keys) else _dotted(keys)


def outlined(texts: Sequence[str]) -> str | None:
    """A root, in the order of the file, that is indented or has a mark of its depth, as many have and the first not."""
    marks = [_MARKS.match(text) for text in texts]
    found = [text for text, mark in zip(texts, marks, strict=True) if mark]
    return found[0] if found and marks[0] is None and len(found) >= 0.3 * len(texts) else None


def _dotted(keys: Collection[str]) -> tuple[str, str] | None:
    """A key and the beginning that it shares with others, where nearly all roots have three parts: `AE.01.101`."""
    for separator in (".", "-", ", "):
        codes = [key for key in keys if key.count(separator) > 1 and not _DATE.fullmatch(key)]
        codes = codes if separator == ", " else [key for key in codes if " " not in key.strip()]
        counts = Counter(code.rpartition(separator)[0] for code in codes)
        if len(codes) >= 0.9 * len(keys) and sum(one for one in counts.values() if one > 1) * 2 >= len(codes):
            above = max(counts, key=lambda one: counts[one])
            return next(code for code in codes if code.rpartition(separator)[0] == above), above
    return None


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
    """Whether codes are numbers, with the same letters before them or several, that fill at least half their range."""
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    for code in codes:
        if not (parts := _NUMBERED.fullmatch(code)):
            return False
        numbers[parts[1]].add(int(parts[2]))
    step = gcd(*(number for found in numbers.values() for number in found)) or 1
    ranges = sum((max(found) - min(found)) // step + 1 for found in numbers.values())
    return sum(map(len, numbers.values())) * 2 >= ranges


def first_of_group(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    keys: Sequence[str],
    may_stand: Callable[[str, str | None], bool],
) -> tuple[str, str, str] | None:
    """The first of the columns of levels, from the root down, that is empty below the first row of each group; with a
    key below, and what it would be below.

    Each of its values stands in one row alone, with a key of a level below or as a line above its group, and rows
    without one follow it. So it is no level that some nodes skip, such as the states of a country. Rows whose key of
    one column may not stand below that of another (None for the root) are rejected anyway: a few are only errors.
    """
    indexes = [header.index(key) for key in keys]
    sample = [[row[index].strip() for index in indexes] for row in first_rows(header, rows) if len(row) > max(indexes)]
    for place, column in enumerate(keys[:-1]):
        above: list[str] = []
        seen: set[tuple[str, ...]] = set()
        repeated, empty, allowed, groups, has_below, example = 0, 0, 0, 0, False, None
        for number, texts in enumerate(sample):
            group: list[str] = []
            for at, text in enumerate(texts[:place]):
                group.append(text or (above[at] if above and above[:at] == group else ""))
            if text := texts[place]:
                repeated += (*group, text) in seen
                seen.add((*group, text))
                above, has_below = [*group, text], any(texts[place + 1 :])
            elif any(texts[place + 1 :]) and above[:place] == group and any(above[place:]):
                below = next(at for at in range(place + 1, len(keys)) if texts[at])
                upper = next((keys[at] for at in reversed(range(place)) if group[at]), None)
                groups += bool(sample[number - 1][place])
                is_one = has_below or not any(texts[:place])
                empty += is_one
                allowed += is_one and may_stand(keys[below], upper)
                example = example or (column, texts[below], "/".join(filter(None, above)))
            elif group != above[:place]:
                above = [*group, ""]
        if groups == 1 and len(seen) > ENOUGH_ROWS:
            continue  # one block of rows without it, such as those of another kind
        if (allowed or empty >= max(2, len(sample) // 3)) and repeated * 5 <= empty:
            return example
    return None


def data_in_header(header: Sequence[str], rows: Iterable[Sequence[str]], known: Collection[str]) -> str | None:
    """A name of a column that is a value, by those below it; None in a table with a header.

    `known` are the folded names of levels and attributes: one of them, or a word above numbers, makes it a header.
    """
    sample = [row for row in first_rows(header, rows) if len(row) == len(header)]
    found: str | None = None
    for index, name in enumerate(header[:MAX_COLUMNS]):
        values = [cell for row in sample if (cell := row[index].strip())]
        if fold(name) in known or fold(name) in _HEADER_WORDS:
            return None
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
