"""Chains of columns: those that are below one another by their values, or by names such as `Level 1` and `Level 2`; and
staircases, in which each row has its own column alone.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, combinations, pairwise
from operator import eq

from store.transfer.formats.cells import fold
from store.transfer.formats.table import Sample
from store.transfer.shapes.doubts import NAMES, are_words

MAX_COMPARED = 24  # columns, of which each is compared with each
_NO_LEVELS = re.compile(
    "descri|beschreib|notes?$|^note|comment|komment|bemerk|remark|url|link|image|photo|picture|mail|phone|types?$|typ$|"
    "status|tags?$|keyword|dat(e|um)$|^(date|time|unit|active|condition|source|size|material|ma(r|ß)ke?)$|currency|"
    "language$|colou?r|farbe$|gender|(first|last|sur|vor|nach)name|author|owner|(created|updated)(by|at)|vendor|supplier|"
    "manufacturer|hersteller|brand|address|street|slug|sku|isbn|gtin|barcode|availab|version|priority|severity|path$|"
    "^tax(?!on)|steuer"
)
_LEVELS = re.compile(
    "level|lvl|tier|ebene|stufe|nivel|livello|poziom|уров|рів|(?<!lo|li)cat|kateg|катег|[ck]lass|gr[ou]+p|depart|abteil|"
    "niveau|depth|^l$|层|级"
)
_FLAGS = frozenset(("", "t", "f", "y", "n", "x", "j", "0", "1", "yes", "no", "true", "false", "ja", "nein"))
_CODE = re.compile(r"[A-Z\d][A-Z\d._/:-]*")
_NUMBERED = re.compile(r"(.*?)(\d{1,9})(\D*)")
_DIGITS = re.compile(r"\d{1,9}")
_WORDS = re.compile(r"[\W_]+|(?<=[a-z])(?=[A-Z])")


class Chains:
    """The columns of words of a table that may be levels, by their places.

    `attributes` are folded names that no level has, `level` is the folded one of the level that nests in itself.
    """

    def __init__(self, sample: Sample, attributes: Collection[str], level: str) -> None:
        self.header, self.names = sample.header, [fold(name) for name in sample.header]
        self.values = {
            at: column
            for at, (column, name) in enumerate(zip(sample.columns, self.names, strict=False))
            if name and name not in attributes and not _NO_LEVELS.search(name) and self.names.count(name) == 1
            if any(column) and are_words([*filter(None, column)]) and not {*map(str.lower, column)} <= _FLAGS
        }
        self._columns, self.title, self.repeats = sample.columns, "", False  # whether a code again is no level
        self.sizes = {at: len({*column} - {""}) for at, column in self.values.items()}
        self._level = level
        self.series = {at: self._series(at) for at in self.values}
        self.own = [at for at in self.values if level in self.names[at]]
        self._pairs: dict[tuple[int, int], int] = {}  # of different values in two columns
        for at in [*filter(self._are_codes, self.values)]:
            if any(self._is_name(one, at) for one in (at - 1, at + 1) if one in self.values):
                del self.values[at]

    @cached_property
    def found(self) -> tuple[list[str], bool]:
        """The columns of which each value stands below one value of the column before, from the root down; and whether
        they are a staircase. None in other tables.
        """
        stairs = self._stairs()
        chain = stairs or self._numbered() or self._longest()
        if chain and not stairs:
            before = [at for at in self.values if at < min(chain) and self._is_root(at, chain[0])]
            chain = [*before, *chain, *self._leaf(chain)]
            are_named = any(at in self.own or "#" in self.series[at] or _LEVELS.search(self.names[at]) for at in chain)
            if not are_named and sum(self.sizes[at] < len(self.values[at]) for at in chain) < 2:
                chain = []
        return [self.header[at] for at in chain], is_staircase([self._columns[at] for at in stairs])

    def _series(self, at: int) -> str:
        """What the names of a series have in common: all but the number, else the last word, such as in Subcategory."""
        if match := _NUMBERED.fullmatch(self.header[at].strip()):
            return f"{fold(match[1])}#{fold(match[3])}"
        last = fold(_WORDS.split(self.header[at].strip())[-1])
        return self._level if last.endswith(self._level) else last

    def _follows(self, below: int, above: int) -> bool:
        """Whether each value of a column, up to a few, is below one of the other."""
        if (below, above) not in self._pairs:
            pairs = {*zip(self.values[below], self.values[above], strict=True)}
            self._pairs[below, above] = sum(bool(own) for own, _ in pairs)
        return self._pairs[below, above] * 6 <= self.sizes[below] * 7

    def _stairs(self) -> list[int]:
        """The columns of a staircase: those of a series, or all that have gaps; and the titles of codes beside them."""
        series: defaultdict[str, list[int]] = defaultdict(list)
        for at, column in self.values.items():
            if "" in column:
                series[self.series[at]].append(at)
        ways = [*series.values(), sorted(at for columns in series.values() for at in columns), self._steps()]
        codes = [at for at, column in enumerate(self._columns) if "" in column and _is_code("".join(column))]
        titles = [
            at for at, column in enumerate(self._columns) if at in self.values or "descri" in self.names[at]
            if "" not in column and 2 * len({*column}) > len(column)
        ]  # fmt: skip
        if titles and len(codes) > 1:
            roots: Iterator[str] = accumulate(self._columns[codes[0]], lambda above, own: own or above)
            pairs = zip(map(max, *(self._columns[at] for at in codes)), roots, strict=True)
            if all(root.isalpha() or code.startswith(root.rstrip("0-./")) for code, root in pairs):  # unlike amounts
                ways.insert(0, codes)
        stairs = next((way for way in ways if is_staircase([self._columns[at] for at in way])), [])
        if titles and not stairs:
            stairs = codes = self._repeated()
        if titles and stairs and stairs == codes:
            titles.sort(key=lambda at: (not NAMES.search(self.names[at]), at not in self.values))
            self.title = self.header[titles[0]]
        return stairs

    def _steps(self) -> list[int]:
        """The columns that have gaps, without those that are filled where one before them is, as others of its node."""
        chain: list[int] = []
        for at, column in self.values.items():
            if "" in column and not any(own and any(above) for own, *above in self._rows(at, *chain)):
                chain.append(at)
        return chain if len(chain) > 2 else []

    def _rows(self, *places: int) -> Iterator[tuple[str, ...]]:
        return zip(*(self._columns[at] for at in places), strict=True)

    def _repeated(self) -> list[int]:
        """The columns of codes in a staircase whose rows repeat the codes above: each path has one row, and so has each
        beginning of it. No level has a column that is filled where the one before it is, or a code again in its row.
        """
        chain: list[int] = []
        for at, column in enumerate(self._columns):
            if len(chain) < 2 and all(map(_CODE.fullmatch, column)):
                chain = [at]
            elif chain and "" in column and all(map(_is_code, filter(None, column))):
                pairs = {(bool(own), bool(above)) for own, above in self._rows(at, chain[-1])}
                chain += [at] if pairs - {(False, False)} == {(True, True), (False, True)} else []
        for self.repeats in (True, False) if len(chain) > 1 else ():
            each = [filter(None, row) for row in self._rows(*chain)]
            rows = [(*(dict.fromkeys(row) if self.repeats else row),) for row in each]
            paths = {(), *rows}
            if len(paths) > len(rows) and all(row[:-1] in paths for row in rows):
                return chain
        return []

    def _numbered(self) -> list[int]:
        """The longest series of numbered names, by their numbers, whose values are below one another."""
        found: list[int] = []
        for common in dict.fromkeys(one for one in self.series.values() if "#" in one):
            chain = [at for at in self.values if self.series[at] == common]
            chain.sort(key=lambda at: int(_DIGITS.findall(self.header[at])[-1]))
            is_level = bool(_LEVELS.search(common))
            ways = [way for way in (chain, chain[::-1]) if all(self._follows(low, high) for high, low in pairwise(way))]
            way = [*ways, chain if is_level else []][0]
            repeats = bool(way) and self.sizes[way[0]] < sum(map(bool, self.values[way[0]]))
            if len(way) > max(1, len(found)) and (is_level or repeats):
                found = way
        return found

    def _longest(self) -> list[int]:
        """The longest chain of columns in which values repeat, the first one from the left."""
        counts = Counter(self.series[at] for at in self.values)
        columns = [
            at for at, column in self.values.items()
            if self.sizes[at] < len(column) and (self.sizes[at] > 1 or counts[self.series[at]] > 2)
            and ("#" not in self.series[at] or counts[self.series[at]] == 1)
        ][:MAX_COMPARED]  # fmt: skip
        above: dict[int, set[int]] = {at: set() for at in columns}
        for one, other in combinations(columns, 2):
            is_below, is_above = self._follows(other, one), self._follows(one, other)
            if is_below and (not is_above or self.series[one] == self.series[other]):
                above[other].add(one)
            elif is_above and not is_below:
                above[one].add(other)
        chains: dict[int, list[int]] = {}
        for at in sorted(above, key=lambda at: len(above[at])):
            before = [chain for chain in chains.values() if above[at].issuperset(chain)]
            chains[at] = [*max(before, key=len, default=[]), at]
        found = max(chains.values(), key=len, default=[])
        return found if len(found) > 1 or all(3 * self.sizes[at] <= 2 * len(self.values[at]) for at in found) else []

    def _is_root(self, at: int, first: int) -> bool:
        """Whether a column before a chain is its root: its only value stands in the first row, or in all beside the
        chain, or, before a series, its values have several of the chain each.
        """
        column = self.values[at]
        if len(column) > 1 and column[0] and self.sizes[at] == 1:
            return not any(column[1:]) or (at + 1 == first and "" not in column)
        is_group = "#" in self.series[first] and self.sizes[at] < self.sizes[first]
        return is_group and self._follows(first, at)

    def _leaf(self, chain: Sequence[int]) -> list[int]:
        """The column of leaves, if any: of different words in all rows, or below all values of the chain, of the series
        or named like one, or beside the chain. One whose words the chain has is only the name of its nodes.
        """
        rows = [*zip(*(self.values[at] for at in chain), strict=True)]
        deepest = [next(filter(None, reversed(cells)), "") for cells in rows]
        if any(self.sizes[at] == len(rows) for at in chain):
            return []
        beside, named = max(chain) + 1, self.names.index("name") if "name" in self.names else None
        found = [
            at for at, column in self.values.items()
            if len({*zip(deepest, column, strict=True)} if at in (beside, named) else {*column}) == len(rows)
            and (self.sizes[at] > self.sizes[chain[-1]] or (at in (beside, named) and NAMES.search(self.names[at])))
            and 2 * sum(map(eq, column, deepest)) <= len(rows)
        ]  # fmt: skip
        likely = [at for at in found if at in self.own or self.series[at] in {self.series[one] for one in chain}]
        if not likely and not self.own:
            are_letters = "".join(self.values.get(beside, ())).isalpha()
            found = [at for at in found if not self._are_codes(at) or (at == beside and are_letters)]
            likely = [at for at in found if NAMES.search(self.names[at])] or [
                at for at in found if at in (0, max(chain) + 1)
            ]
        return likely[:1]

    def _is_name(self, at: int, code: int) -> bool:
        """Whether a column has the names of codes."""
        is_other = [*map(bool, self.values[at])] == [*map(bool, self.values[code])] and not self._are_codes(at)
        return is_other and self._follows(at, code) and self._follows(code, at)

    def _are_codes(self, at: int) -> bool:
        return all(_CODE.fullmatch(value) for value in self.values[at] if value)


def is_staircase(columns: Sequence[Sequence[str]]) -> bool:
    """Whether each row has a value in one of the columns alone, and the first row in the first of them."""
    rows = [*zip(*columns, strict=True)]
    return len(columns) > 1 < len(rows) and bool(rows[0][0]) and all(sum(map(bool, row)) == 1 for row in rows)


def has_pairs(sample: Sample) -> bool:
    """Whether each row, but for titles above, has a code and its name, one column further right for each depth."""
    texts = ([*map(str.strip, row)] for row in sample.texts)  # also right of the header
    rows = [row for row in texts if len(row) - row.count("") > 1]
    firsts = [(row, next(at for at, cell in enumerate(row) if cell)) for row in rows]
    pairs = [at for row, at in firsts if _is_code(row[at]) and row[at + 1] and not _is_code(row[at + 1])]
    is_shifted = not {at + 1 for at in pairs}.isdisjoint(pairs)
    return is_shifted and 5 * len(pairs) >= 4 * len(rows) and 2 * len(pairs) > len(sample.texts)


def _is_code(text: str) -> bool:
    return bool(_CODE.fullmatch(text)) and (len(text) < 3 or any(map(str.isdecimal, text)))
