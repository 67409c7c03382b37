"""Chains of columns: those that are below one another by their values, or by names such as `Level 1` and `Level 2`; and
staircases, in which each row has its own column alone.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import combinations, pairwise
from operator import eq

from store.transfer.formats.cells import fold
from store.transfer.formats.table import Sample
from store.transfer.shapes.doubts import NAMES, are_words

MAX_COMPARED = 24  # columns, of which each is compared with each
_NO_LEVELS = re.compile(
    "descri|beschreib|notes?$|^note|comment|komment|bemerk|remark|url|link|href|website|homepage|image|photo|picture|"
    "mail|phone|telefon|types?$|typ$|tipo$|status|^zustand|tags?$|keyword|dat(e|um)$|^(date|time|unit|uom|ean|format|"
    "active|is|has|condition|source|size|material|ma(r|ß)ke?)$|currency|language$|locale|colou?r|farbe$|größe$|gender|"
    "(first|last|given|sur|vor|nach)name|author(?!i)|owner|assign|(created|updated|modified)(by|at|on)|vendor|supplier|"
    "manufacturer|hersteller|brand|address|street|slug|sku|isbn|gtin|barcode|[ug]uid|availab|version|priority|severity|"
    "path$"
)
_PLACES = re.compile("country|land|city|stadt|town|county|region")
_LEVELS = re.compile("level|lvl|tier|ebene|stufe|niveau|nivel|livello|poziom|уров|рів|cat|class|group|depth|^l$|层|级")
_CODE = re.compile(r"[A-Z\d][A-Z\d._/:-]*")
_NUMBERED = re.compile(r"(.*?)(\d+)(\D*)")
_WORDS = re.compile(r"[\W_]+|(?<=[a-z])(?=[A-Z])")


class Chains:
    """The columns of words of a table that may be levels, by their places.

    `attributes` are folded names that no level has, `level` is the folded one of the level that nests in itself.
    """

    def __init__(self, sample: Sample, attributes: Collection[str], level: str) -> None:
        self.header, self.names = sample.header, [fold(name) for name in sample.header]
        has_places = any(map(_PLACES.search, self.names))
        self.values = {
            at: column
            for at, (column, name) in enumerate(zip(sample.columns, self.names, strict=False))
            if name and name not in attributes and not _NO_LEVELS.search(name) and self.names.count(name) == 1
            if (name != "state" or has_places) and any(column) and are_words([*filter(None, column)])
        }
        self.sizes = {at: len({*column} - {""}) for at, column in self.values.items()}
        self._level = level
        self.own = [at for at in self.values if level in self.names[at]]
        self._compared: dict[tuple[int, int], tuple[int, int]] = {}
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
            is_numbered = self._common(chain[0])[0] == "#"
            before = [at for at in self.values if at < min(chain) and self._is_root(at, chain[0], is_numbered)]
            chain = [*before, *chain, *self._leaf(chain)]
        return [self.header[at] for at in chain], bool(stairs)

    def _common(self, at: int) -> tuple[str, ...]:
        """What the names of a series have in common: all but the number, else the last word."""
        name = self.header[at].strip()
        if match := _NUMBERED.fullmatch(name):
            return "#", fold(match[1]), fold(match[3])
        last = fold(_WORDS.split(name)[-1])
        return "", self._level if last.endswith(self._level) else last  # such as Subcategory

    def _follows(self, below: int, above: int, most: float = 1.1) -> bool:
        """Whether each value of a column, up to a few, is below one of the other."""
        one, other = sorted((below, above))
        if (one, other) not in self._compared:
            pairs = {*zip(self.values[one], self.values[other], strict=True)}
            self._compared[one, other] = sum(bool(first) for first, _ in pairs), sum(bool(last) for _, last in pairs)
        size = self.sizes[below]
        return self._compared[one, other][below > above] <= max(most * size, size + (size > 5))

    def _stairs(self) -> list[int]:
        """The columns of a staircase."""
        with_gaps = [at for at, column in self.values.items() if "" in column]
        for start in with_gaps:
            found = [start]
            for at in (one for one in with_gaps if one > start):
                rows = zip(self.values[at], *(self.values[one] for one in found), strict=True)
                if not any(own and any(others) for own, *others in rows):
                    found.append(at)
            for stairs in ([at for at in found if self._common(at) == self._common(start)], found):
                has_below = any(self._follows(at, stairs[-1]) for at in self.values if at > stairs[-1])
                if is_staircase([self.values[at] for at in stairs]) and not has_below:
                    return stairs
        return []

    def _numbered(self) -> list[int]:
        """The longest series of numbered names, by their numbers, whose values are below one another."""
        series: dict[tuple[str, ...], list[int]] = {}
        for at in sorted(self.values, key=lambda at: int("0" + re.sub(r"^\D*(\d*).*$", r"\1", self.names[at]))):
            series.setdefault(self._common(at), []).append(at)
        found: list[int] = []
        for common, chain in series.items():
            is_level = bool(_LEVELS.search(common[1]))
            ways = [
                way for way in (chain, chain[::-1]) if all(self._follows(low, high, 1.5) for high, low in pairwise(way))
            ]
            way = [*ways, chain if is_level else []][0]
            if not common[0] or len(way) <= max(1, len(found)):
                continue
            if is_level or self.sizes[way[0]] < sum(map(bool, self.values[way[0]])):
                found = way
        return found

    def _longest(self) -> list[int]:
        """The longest chain of columns in which values repeat, the first one from the left."""
        commons = {at: self._common(at) for at in self.values}
        counts = Counter(commons.values())
        columns = [
            at for at, column in self.values.items()
            if self.sizes[at] < len(column) and counts[commons[at]] > (self.sizes[at] < 2) * 2
            and (commons[at][0] == "" or counts[commons[at]] == 1)
        ][:MAX_COMPARED]  # fmt: skip
        above: dict[int, set[int]] = {at: set() for at in columns}
        same: list[tuple[int, int]] = []
        for one, other in combinations(columns, 2):
            is_below, is_above = self._follows(other, one), self._follows(one, other)
            if is_below and is_above:
                same.append((one, other))
            elif is_below or is_above:
                above[other if is_below else one].add(one if is_below else other)
        is_reversed = sum(1 if one > at else -1 for at, ones in above.items() for one in ones) > 0
        for one, other in same:
            if commons[one] == commons[other]:
                above[one if is_reversed else other].add(other if is_reversed else one)
        chains: dict[int, list[int]] = {}
        for at in sorted(above, key=lambda at: len(above[at])):
            before = [chain for chain in chains.values() if above[at].issuperset(chain)]
            chains[at] = [*max(before, key=len, default=[]), at]
        found = max(chains.values(), key=len, default=[])
        return found if len(found) > 1 or all(3 * self.sizes[at] <= 2 * len(self.values[at]) for at in found) else []

    def _is_root(self, at: int, first: int, is_numbered: bool) -> bool:
        """Whether a column before a chain is its root: its only value stands in the first row, or in all beside the
        chain, or, before a series, its values have several of the chain each.
        """
        column = self.values[at]
        if len(column) > 1 and column[0] and self.sizes[at] == 1:
            return not any(column[1:]) or (at + 1 == first and "" not in column)
        is_group = is_numbered and self.sizes[at] < self.sizes[first]
        return is_group and self._follows(first, at) and not self._follows(at, first)

    def _leaf(self, chain: Sequence[int]) -> list[int]:
        """The column of leaves, if any: of different words in all rows, of the series or named like one, the first one,
        or beside the chain. One whose words the chain has is only the name of its nodes.
        """
        rows = [*zip(*(self.values[at] for at in chain), strict=True)]
        deepest = [next(filter(None, reversed(cells)), "") for cells in rows]
        found: list[tuple[int, int]] = []
        if any(self.sizes[at] == len(rows) for at in chain):
            return []
        for at, column in self.values.items():
            repeats = sum(map(eq, column, deepest))
            is_other = not self.own and not self._are_codes(at)
            ways = (
                at in self.own or any(self._common(at) == self._common(one) for one in chain),
                is_other and bool(NAMES.search(self.names[at])), is_other and at in (0, max(chain) + 1),
            )  # fmt: skip
            if self.sizes[at] == len(rows) and repeats * 2 <= len(rows) and any(ways):
                found.append((ways.index(True), at))
        return [at for _, at in sorted(found)[:1]]

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
