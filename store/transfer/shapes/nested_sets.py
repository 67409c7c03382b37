"""Nested sets: a node in each row, whose interval of two numbers holds those of all below it, as `lft` and `rgt` do."""

import re
from collections.abc import Sequence
from itertools import permutations
from operator import lt
from typing import ClassVar

from store.errors import BadInput, shorten
from store.model.hierarchy import Hierarchy
from store.transfer.formats.cells import fold
from store.transfer.formats.table import Sample, Table
from store.transfer.shapes.doubts import Look, shape_doubt
from store.transfer.shapes.links import LinkedRows
from store.transfer.shapes.parent_tree import around
from store.transfer.shapes.shape import RowOptions, TreeParts

_NUMBER = re.compile(r"\d{1,15}(\.0+)?", re.ASCII)
_ENDS = (("lft", "rgt"), ("lft", "rght"), ("left", "right"), ("lb", "rb"), ("lkey", "rkey"))  # in folded names
_SURE = "lft"  # which no columns of anything else have in their names


class NestedSets(LinkedRows):
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

    def link(self, cells: Sequence[object], given: str | None) -> tuple[str, str]:
        """The id of a row, or its interval in the place of one, and its interval for a parent. Raises BadInput."""
        left, right = (self._number(cells, self._parts[part]) for part in ("left", "right"))
        if left >= right:
            raise BadInput(f"its left number {left} is not less than its right one, {right}")
        tree = self._cells.text(cells, self._parts["tree"]) if "tree" in self._parts else ""
        own = self._cells.text(cells, self._own) if self._own else ""
        return own or given or f"{tree} {left} {right}".strip(), f"{tree}\0{left:018}\0{right:018}"

    def _number(self, cells: Sequence[object], column: str) -> int:
        text = self._cells.text(cells, column)
        if _NUMBER.fullmatch(text):
            return int(float(text))
        raise BadInput(f'column "{column}" has {shorten(text) or "nothing"} and no whole number')

    @classmethod
    def see_table(cls, look: Look) -> None:
        if len(look.keys) < 2 and (parts := _interval_columns(look.sample)):
            columns = zip(look.sample.header, look.sample.columns, strict=False)
            ids = [name for name, own in columns if fold(name).endswith("id") and len({*own} - {""}) == len(own)]
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
            lefts = look.sample.column(parts["left"])
            trees = look.sample.column(parts["tree"]) if "tree" in parts else [""] * len(lefts)
            order = {tree: at for at, tree in enumerate(dict.fromkeys(trees))}
            rows = zip(trees, lefts, strict=True)
            places = [(order[tree], float(left)) for tree, left in rows if _NUMBER.fullmatch(left)]
            if places != sorted(places):
                cls.see_table(look)


def _interval_columns(sample: Sample) -> dict[str, str] | None:
    """The columns of intervals by their names, with that of trees with numbers of their own; None where no intervals
    are nested.
    """
    names = [*map(fold, sample.header[: len(sample.columns)])]
    for left, right in permutations(range(len(names)), 2):
        if not any(low in names[left] and names[left].replace(low, high) == names[right] for low, high in _ENDS):
            continue
        ends, nested = [sample.columns[left], sample.columns[right]], dict[str, int]()
        if all(_NUMBER.fullmatch(value) for values in ends for value in values):
            lows, highs = ([int(float(value)) for value in values] for values in ends)
            trees = dict(zip(sample.header, sample.columns, strict=False)) | {"": [""] * len(lows)}
            nested = {name: _nested(values, lows, highs) for name, values in trees.items()}
        best = max(nested, key=lambda name: (nested[name], not name), default="")
        if nested.get(best) or (_SURE in names[left] and len({*sample.columns[left]}) > 1):
            tree = {"tree": best} if best else {}
            return {"left": sample.header[left], "right": sample.header[right], **tree}
    return None


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
