"""Nested sets: a node in each row, whose interval of two numbers holds those of all below it, as `lft` and `rgt` do."""

import re
from collections.abc import Sequence
from itertools import pairwise, permutations
from operator import lt
from typing import ClassVar

from store.errors import BadInput, shorten
from store.model.hierarchy import Hierarchy
from store.transfer.formats.cells import fold
from store.transfer.formats.source import REASON
from store.transfer.formats.table import Sample, Table
from store.transfer.rows import Rejection, Row
from store.transfer.shapes.doubts import Look, shape_doubt
from store.transfer.shapes.node_cells import NodeCells
from store.transfer.shapes.parent_tree import ParentTree, around, link_of, node_id_of
from store.transfer.shapes.shape import RowOptions, Shape, TreeBy, TreeParts

_NUMBER = re.compile(r"\d{1,15}(\.0+)?", re.ASCII)
_ENDS = (("lft", "rgt"), ("lft", "rght"), ("left", "right"), ("lb", "rb"), ("lkey", "rkey"))  # in folded names
_SURE = ("lft",)  # which no columns of anything else have in their names
_ID = re.compile("(^|[_ -])[Ii][Dd]$|[a-z]I[dD]$")
_TREES = re.compile("(mptt)?(tree|root|scope)(id|key|nr|no)?")


class NestedSets(Shape):
    """Rows with intervals of numbers: a node is below that of the narrowest interval around its own.

    Numbers are different in a tree, and intervals do not cross. A row without an interval, or with one that crosses
    others, stops the import, since nobody knows what is below it.
    """

    trees: ClassVar = {"left": TreeParts(("left", "right"), ("tree", "id", "key", "name", "level"))}

    def __init__(self, hierarchy: Hierarchy, table: Table, options: RowOptions) -> None:
        super().__init__(hierarchy, table, options)
        if ".rejected." in table.name:
            raise BadInput(
                f"{table.name} has a few rows, whose intervals do not say what is above them; correct these rows in "
                "the whole file, and import that."
            )
        tree = options.tree or TreeBy("left", {})
        self._cells = NodeCells(hierarchy, table, options, tree)
        self.levels, self.guesses, self.rejected = self._cells.levels, self._cells.guesses, table.rejected(REASON)
        self._parts = tree.parts
        self.tree = ParentTree(
            hierarchy, self.read, self._cells.node, by_intervals=True, has_levels="level" in tree.parts
        )

    def row(self, number: int, cells: Sequence[object]) -> Row | Rejection:
        """The row of cells, whose link has its interval for a parent. Raises BadInput."""
        texts = {part: self._cells.text(cells, column) for part, column in self._parts.items()}
        left, right = (self._number(part, texts[part]) for part in ("left", "right"))
        if left >= right:
            raise BadInput(f"its left number {left} is not less than its right one, {right}")
        level = self._cells.level_of(cells)
        ids = self._cells.id_columns(level)
        given = next((found for one in ids if one and (found := self._cells.text(cells, one))), None)
        own = texts.get("id") or given or " ".join(filter(None, (texts.get("tree"), str(left), str(right))))
        node_id = node_id_of(texts["id"]) if texts.get("id") else given
        key, names = texts.get("key"), self._cells.names_of(cells, level)
        place = f"{texts.get('tree', '')}\0{left:018}\0{right:018}"
        link = link_of(own, place, [key] if key else names, bool(key), level, node_id, self._cells.kept(cells))
        return Row(number, (), (), link=link)

    def _number(self, part: str, text: str) -> int:
        if _NUMBER.fullmatch(text):
            return int(float(text))
        raise BadInput(f'column "{self._parts[part]}" has {shorten(text) or "nothing"} and no whole number')

    @classmethod
    def see_table(cls, look: Look) -> None:
        if len(look.keys) < 2 and (parts := _interval_columns(look.sample)):
            columns = zip(look.sample.header, look.sample.columns, strict=False)
            ids = [
                column
                for column, values in columns
                if fold(column).endswith("id") and len({*values} - {""}) == len(values)
            ]
            own = {"id": ids[0]} if ids and "id" not in map(fold, ids) else {}
            raise shape_doubt(
                f'{look.source} is a tree by nested sets: the numbers in "{shorten(parts["left"])}" and '
                f'"{shorten(parts["right"])}" of each row are around those of the rows below it',
                look.tree_by(**parts, **own),
            )

    @classmethod
    def see_unsorted(cls, look: Look) -> None:
        """Raise Doubt for a table of intervals whose rows are not in their order, by which depths would be read."""
        if parts := _interval_columns(look.sample):
            places = zip(*(look.sample.column(parts[one]) for one in ("tree", "left") if one in parts), strict=True)
            if any(above[:-1] == own[:-1] and float(own[-1]) < float(above[-1]) for above, own in pairwise(places)):
                cls.see_table(look)


def _interval_columns(sample: Sample) -> dict[str, str] | None:
    """The columns of intervals, and that of trees with numbers of their own; None where no intervals are nested.

    Columns that no name tells need more: nodes with none below them, whose two numbers follow one another, and between
    those of each other node an even number of them.
    """
    header, columns = sample.header, sample.columns
    names = [*map(fold, header[: len(columns)])]
    are_trees = [bool(_TREES.fullmatch(name)) for name in names]
    named = [pair for pair in permutations(range(len(names)), 2) if _is_pair(names[pair[0]], names[pair[1]])]
    numbers = [index for index, values in enumerate(columns) if values and all(map(_NUMBER.fullmatch, values))]
    for left, right in named or pairwise(numbers):
        best, nested = (0, 0, 0), dict[int, int]()
        if left in numbers and right in numbers:
            lows, highs = ([int(float(value)) for value in columns[index]] for index in (left, right))
            widths = [high - low for low, high in zip(lows, highs, strict=True)]
            is_likely = min(widths) > 0 and all(width % 2 for width in widths) and 3 * widths.count(1) >= len(widths)
            trees = [
                index for index, is_tree in enumerate(are_trees) if index not in (left, right) and (named or is_tree)
            ]
            if named or is_likely:
                nested = {index: _nested(columns[index], lows, highs) for index in trees}
                nested[-1] = _nested([""] * len(lows), lows, highs)
            best = max(
                ((number, index >= 0 and are_trees[index], -index) for index, number in nested.items()), default=best
            )
        if best[0] or (any(end in names[left] for end in _SURE) and len({*columns[left]}) > 1):
            tree = {"tree": header[-best[2]]} if best[0] and best[2] < 1 else {}
            return {"left": header[left], "right": header[right], **tree}
    return None


def _is_pair(left: str, right: str) -> bool:
    return any(low in left and left.replace(low, high) == right for low, high in _ENDS)


def _nested(trees: Sequence[str], lows: Sequence[int], highs: Sequence[int]) -> int:
    """How many intervals are within another one of their tree; 0 where two of them cross or share a number, or trees do
    not begin with the same number.
    """
    rows = sorted(zip(trees, lows, highs, range(len(lows)), strict=True))
    starts = {tree: low for tree, low, *_ in reversed(rows)}
    try:
        nested = sum(above is not None for _, above in around(rows))
    except BadInput:
        return 0
    return nested if len({*starts.values()}) == 1 and all(map(lt, lows, highs)) else 0
