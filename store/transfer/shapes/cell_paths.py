"""Paths in a cell of a table, such as `Garden > Mowers`, also several of them: `Garden > Mowers | Gifts`."""

import contextlib
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from store.errors import BadInput, shorten
from store.model.hierarchy import Hierarchy
from store.transfer.formats.source import Doubt
from store.transfer.shapes.doubts import DATE, ENOUGH_ROWS, Look, nested_level, shape_doubt

ARROWS = (" > ", " » ", " › ", " → ", " -> ")
SURE_SEPARATORS = (*ARROWS, " :: ", " | ", "->", ">", "»", "›", "→", "::", "|", "\\")
DASHES = (" - ", " – ", ";", ".")  # which keys may have, too, so that all of them must
SEPARATORS = (*SURE_SEPARATORS, *DASHES, " / ", "/")
ADDRESS = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*://|www\.|mailto:)", re.IGNORECASE)
_FILE = re.compile(r"(\.{0,2}|~)/.*|.*/[^/]*(\.\w{1,5}|/.*)", re.DOTALL)  # an absolute one, of a file, or a long one
MANY_PATHS = 8
LEAF_FIRST = (" < ", " ← ", ", ", ",")  # signs of paths that may begin with the leaf, as addresses do
_UPWARD = frozenset(map(str.strip, LEAF_FIRST))
_TEX = re.compile(r"\\[{}'`^~$&%#,;!\"]|\s\\[^\W\d_]|\\[^\W\d_]+[{^]|\$[^$]*\\")  # a command of TeX, as \{ or \alpha
_QUOTED = re.compile(r'\s*"((?:[^"]|"")*+)"\s*')
_ACCOUNT = re.compile(r"[^\W\d_][^:]*(?<!\s):[^\W\d_][^:]*(?:(?<!\s):(?!\s)[^:]+)*")  # of a ledger, as Assets:Bank
_IN_WORDS = frozenset("-–/.,:;&+'")  # signs that a key may have between letters, as in T-Shirts


@dataclass(frozen=True)
class CellPaths:
    """What separates the keys of a path in a cell, and several paths, if a cell has them. Raises BadInput for no text.

    Blanks around a separator do not belong to keys. One with a blank at a side, such as ` - `, needs blanks there. In a
    key it is written after a backslash, or the whole key in quotes, as in a cell of CSV. Paths that are reversed begin
    with the leaf.
    """

    split: str
    each: str | None = None
    is_reversed: bool = False

    def __post_init__(self) -> None:
        given = [text for text in (self.split, self.each) if text is not None]
        if "" in given or len(self._needs) < len(given):
            raise BadInput("split and each need a text each, and not the same, blanks apart.")

    @cached_property
    def _needs(self) -> dict[str, tuple[bool, bool]]:
        """Whether a separator needs blanks before and after it, by its text without them."""
        found: dict[str, tuple[bool, bool]] = {}
        for text in filter(None, (self.split, self.each)):
            sign = text.strip()
            found[sign or text] = (text[0].isspace(), text[-1].isspace()) if sign else (False, False)
        return found

    @cached_property
    def _signs(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, sorted(self._needs, key=len, reverse=True))))

    @cached_property
    def _escaped(self) -> re.Pattern[str] | None:
        return None if any("\\" in sign for sign in self._needs) else re.compile(rf"\\({self._signs.pattern})")

    def read(self, cell: str) -> list[tuple[str, ...]]:
        """The paths of a cell, each once; one separator at either end of a path is left out.

        Raises BadInput where a quote is not closed or a separator lacks a blank, for a cell in brackets, and for one
        without any key.
        """
        if cell[:1] + cell[-1:] == "[]" and cell.count("[") == cell.count("]") == 1:
            raise BadInput(f"{shorten(cell)} is in brackets, which are no part of a path; write it without them.")
        paths: list[list[str]] = [[]]
        at: int | None = 0
        while at is not None:
            key, end = self._key(cell, at)
            paths[-1].append(key)
            at = end and end.end()
            if end and self.each and end[0] == (self.each.strip() or self.each):
                paths.append([])
        found = dict.fromkeys(tuple(path[not path[0] : len(path) - (not path[-1])]) for path in paths)
        found = {path[::-1]: None for path in found} if self.is_reversed else found
        found.pop((), None)
        if not found:
            raise BadInput(f'"{shorten(cell)}" has no key.')
        return [*found]

    def _key(self, cell: str, at: int) -> tuple[str, re.Match[str] | None]:
        """The key that begins at a place, and the separator after it, None at the end."""
        if quoted := _QUOTED.match(cell, at):
            end = self._signs.match(cell, quoted.end())
            if quoted.end() == len(cell) or (end and self._separates(cell, end)):
                return quoted[1].replace('""', '"'), end
        end = next((one for one in self._signs.finditer(cell, at) if self._separates(cell, one)), None)
        text = cell[at : end.start() if end else len(cell)].strip()
        if text.startswith('"') and text.count('"') % 2:
            raise BadInput(f"A quote in {shorten(cell)} is not closed; write it twice in a key in quotes.")
        return self._escaped.sub(r"\1", text) if self._escaped else text, end

    def _separates(self, cell: str, found: re.Match[str]) -> bool:
        """Whether a sign separates keys, and is not in one; raises BadInput where that is unclear."""
        sign = found[0]
        before, after = cell[max(0, found.start() - 1) : found.start()], cell[found.end() : found.end() + 1]
        if before == "\\" and self._escaped:
            return False
        blanks = before.isspace(), after.isspace()
        has = blanks[0] or (not before and blanks[1]), blanks[1] or (not after and blanks[0])  # cells are trimmed
        needs = self._needs[sign]
        if all(one or not needed for one, needed in zip(has, needs, strict=True)):
            return True
        if all(needs) and (any(has) or not _IN_WORDS.issuperset(sign)):
            raise BadInput(
                f'"{shorten(cell)}" has {sign} without blanks around it; write them, or the key in quotes. A separator '
                f'that is given without blanks, such as split "{sign}", needs none.'
            )
        return False


def joined_path(keys: Collection[str], *, are_roots: bool = False, are_files: bool = False) -> tuple[str, str] | None:
    """A long one of different keys of one level that are whole paths, such as `A > B > C`, and the sign between their
    parts; None where they are not.

    The beginning of one is another, or that of others. With a separator that keys may have themselves, such as `/`,
    most of them must be so, and have no numbers at their ends, as houses of a street. Those that `are_roots` may also
    be of three parts each, such as `AE.01.101`. Where they may be files, folders may have
    numbers for names. An address of a web page is no path.
    """
    given, keys = keys, [key for key in keys if not ADDRESS.match(key)]
    if 2 * len(keys) < len(given):
        return None
    if are_files and (path := _file_path(keys)):
        return path, "/"
    if path := _account(keys):
        return path, ":"
    known = {key.strip() for key in keys}
    for separator in SEPARATORS:
        joined = [key for key in keys if separator in key.strip() and not (separator == "." and " " in key.strip())]
        joined = [key for key in joined if separator != "\\" or not _TEX.search(key)]
        if not joined or (separator == "." and are_domains(keys)):
            continue
        parents = [key.rpartition(separator)[0].strip() for key in joined]
        counts = Counter(parents)
        related = sum(parent in known or counts[parent] > 1 for parent in parents)
        if separator in SURE_SEPARATORS:
            found = related > 0 or any(key.count(separator) > 1 for key in joined)
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
        codes = [key for key in keys if key.count(separator) > 1 and not DATE.fullmatch(key)]
        codes = [key for key in codes if separator == ", " or " " not in key.strip()]
        counts = Counter(code.rpartition(separator)[0] for code in codes)
        if codes and len(codes) >= 0.9 * len(keys) and 2 * sum(one for one in counts.values() if one > 1) >= len(codes):
            return max(codes, key=lambda code: counts[code.rpartition(separator)[0]]), separator
    return None


def _file_path(keys: Collection[str]) -> str:
    """A long one of keys that are paths of files or of objects in a store, such as `photos/2026/01/a.jpg`, or that
    begin with `./` or `/`; empty where they are not.
    """
    if any(sign in key for key in keys for sign in (*ARROWS, " / ", "|", "::")):
        return ""
    joined = [key for key in keys if "/" in key.strip("/")]
    folders = [[key[:at] for at, sign in enumerate(key) if sign == "/" and key[:at].strip("./~")] for key in joined]
    counts = Counter(folder for one in folders for folder in one) + Counter(keys)
    related = sum(any(counts[folder] > 1 for folder in one) for one in folders)
    are_files = 2 * sum(map(bool, map(_FILE.fullmatch, joined))) >= len(joined)
    names = sum(any(map(str.isalpha, key.rpartition("/")[2])) or counts[key] > 1 for key in joined)
    is_path = are_files and names >= 0.9 * len(joined) and 2 * related >= len(joined)
    is_enough = len(joined) >= max(ENOUGH_ROWS, 0.8 * len(keys) - 1)
    return max(joined, key=lambda key: (key.count("/"), -len(key), key)) if is_path and is_enough else ""


def _account(keys: Collection[str]) -> str:
    """A long one of keys that are accounts of a ledger, such as `Assets:Bank:Cash`, or all of two parts, of which
    several first ones are shared, and longer than the tags of languages; empty where they are not.
    """
    roots = Counter(key.partition(":")[0] for key in keys)
    accounts = [key for key in keys if _ACCOUNT.fullmatch(key)]
    above = sum(roots[key] > 1 for key in keys)  # keys that are roots of others
    related = sum(roots[key.partition(":")[0]] > 1 for key in accounts)
    are_most = len(accounts) + above >= 0.9 * len(keys) and 2 * related >= len(accounts) >= ENOUGH_ROWS
    longest = max(accounts, key=lambda key: (key.count(":"), -len(key)), default="")
    shared = {root for key in accounts if len(root := key.partition(":")[0]) > 3 and roots[root] > 1}
    return longest if are_most and (above or longest.count(":") > 1 or len(shared) > 1) else ""


def are_domains(keys: Collection[str]) -> bool:
    """Whether most keys with a dot are below another one that they end with, as `co.uk` below `uk`."""
    known = {*keys}
    joined = [key for key in known if "." in key]
    heads = sum(key.rpartition(".")[0] in known for key in joined)
    tails = sum(key.partition(".")[2] in known and key[-1].isalpha() for key in joined)
    return len(joined) >= ENOUGH_ROWS and tails >= 0.7 * len(joined) and tails > heads


def paths_in_cells(values: Collection[str]) -> tuple[str, str, str] | None:
    """A long one of the cells of a column that are whole paths, the sign between their parts, and the one between
    several paths in a cell, such as `|` in `A > B|A > C`, empty where each has one; None where they are not.
    """
    for each in ("|", ";", "\n", ","):
        parts = {part for value in values for part in value.split(each)}
        several = [part for value in values if each in value for part in value.split(each)]
        path = joined_path(parts, are_roots=True) if several else None
        if path and each not in path[1] and all(path[1] in part for part in several):
            return *path, each
    path = joined_path(values, are_roots=True) or leaf_first_path(values)
    return (*path, "") if path else None


def leaf_first_path(keys: Collection[str]) -> tuple[str, str] | None:
    """The same as `joined_path` for paths that begin with the leaf, most of three parts or more.

    One of them is the end of another, or they are names in a directory, such as `CN=Jo,O=Acme`, or many with few roots:
    other texts have commas, too. Domains are such paths as well.
    """
    if are_domains(keys):
        return max(keys, key=lambda key: key.count(".")), "."
    for sign in LEAF_FIRST:
        paths = [key.split(sign) for key in keys if sign in key]
        words = [path for path in paths if len(path) > 2 and all(any(map(str.isalpha, one)) for one in path[-2:])]
        are_named = all("=" in one for path in paths for one in path)
        is_sure = are_named or any(sign.join(path[1:]) in keys for path in paths)
        are_few = len(paths) >= MANY_PATHS and 4 * len({path[-1] for path in paths}) <= len(paths)
        are_most = len(paths) >= 0.9 * len(keys) and 2 * len(words) >= len(keys)
        if are_most and (is_sure or are_few) and begin_with_leaf(keys, CellPaths(sign)):
            return max(keys, key=lambda key: key.count(sign)), sign
    return None


def begin_with_leaf(cells: Collection[str], paths: CellPaths) -> bool:
    """Whether paths share their ends and not their beginnings, such as `Omaha, Nebraska, US`.

    With signs that stand between a parent and its child by custom, such as `/`, the ends of others must be whole paths.
    """
    if paths.split == "." and are_domains(cells):
        return True
    known: set[tuple[str, ...]] = set()
    for cell in filter(None, cells):
        with contextlib.suppress(BadInput):
            known.update(path for path in paths.read(cell) if all(path))
    starts = {path[:end] for path in known for end in range(1, len(path) + 1)}
    ends = {path[at:] for path in known for at in range(len(path))}
    heads = sum(path[:-1] in known for path in known)
    tails = sum(path[1:] in known for path in known)
    if len(known) < (ENOUGH_ROWS if any(len(path) > 2 for path in known) else 2 * ENOUGH_ROWS) or heads > tails:
        return False
    most = 0.9 if len(starts) == sum(map(len, known)) else 0.8
    return len(ends) < most * len(starts) and (tails > 0 or paths.split.strip() in _UPWARD)


def see_signs(place: str, values: Collection[str], sign: str, each: str = "") -> None:
    """Raise Doubt for paths of which some have another sign than this one, and one of their roots."""
    found = {value.partition(sign)[0].strip(): value for value in values if sign in value}
    for value in values:
        for other in (*ARROWS, " :: ", " | ", " / ") if sign.strip() not in value else ():
            example = found.get(value.partition(other)[0].strip())
            if example and other in value and other.strip() != each:
                seen = f'{place} has paths with several signs, such as "{shorten(example)}" and "{shorten(value)}"'
                raise shape_doubt(seen, other="write one sign in all")


def see_paths(
    hierarchy: Hierarchy, place: str, path: Sequence[str], level: str, column: str, values: Collection[str],
    *, is_text: bool = False, matched: Collection[tuple[str, str]] = (),
) -> None:  # fmt: skip
    """Raise Doubt for whole paths in a column, or in the lines of a text, which is read as a table of one column; one
    with comments has none. Options that are `matched` by the names of columns stay.
    """
    example, sign, *each = path
    see_signs(place, values, sign, *each)
    options = "--format csv --delimiter tab --quote none --columns path".split() if is_text else []
    readings: list[list[str]] = []
    other = "write / between the keys of a path" if column or not is_text else "remove the lines of comments"
    if column and (nested := nested_level(hierarchy)):
        split = f'{column} split "{sign}"' + (f' each "{each[0]}"' if any(each) else "")
        is_reversed = begin_with_leaf(values, CellPaths(sign, each[0] or None if each else None))
        forms = [f"{split} reversed", split] if is_reversed else [split]
        own = f"{nested.name.lower()}="
        pairs = [*matched] if ("--level", f"{own}{column}") in matched else [("--level", f"{own}{column}")]
        for form in forms:
            words = [
                word for option, value in pairs for word in (option, f"{own}{form}" if value == own + column else value)
            ]
            readings.append([*options, *words])
    seen = f'{place} has whole paths, such as "{shorten(example)}", where a key of one {level} belongs'
    raise shape_doubt(seen, *readings, other=other)


def see_paths_beside(look: Look, column: str, codes: Doubt) -> None:
    """Raise Doubt for paths with blanks around their separators in another column than that of codes, which are their
    ids. The names of paths say a tree more surely than codes, whose readings come behind.
    """
    level = nested_level(look.hierarchy)
    for other, values in zip(look.sample.header, look.sample.columns, strict=False):
        path = paths_in_cells({*values} - {""}) if level and other and other != column else None
        if level and path and path[1] not in DASHES and path[1][0].isspace():
            place = f'Column "{shorten(other)}" of {look.source}'
            try:
                see_paths(look.hierarchy, place, path, level.name, other, values)
            except Doubt as paths:
                own_id = ["--id", f"{level.name.lower()}={column}"]
                ids = [[*words, *own_id] for words in paths.readings]
                paths.readings = [*ids, *paths.readings, *codes.readings]
                raise paths from None
