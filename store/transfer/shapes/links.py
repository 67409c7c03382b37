"""Links: a node in each row, which names its parent, or is below it by its code."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from operator import eq, itemgetter
from typing import ClassVar

from store.errors import BadInput, shorten
from store.model.hierarchy import Hierarchy
from store.transfer.formats.cells import fold, text_of
from store.transfer.formats.source import REASON, Doubt
from store.transfer.formats.table import Sample, Table
from store.transfer.rows import Rejection, Row
from store.transfer.shapes.cell_paths import see_paths_beside
from store.transfer.shapes.codes import BY_POSITION, code_parents, is_one_word, see_codes
from store.transfer.shapes.doubts import HEADER_WORDS, NUMBER, Look, are_words, shape_doubt
from store.transfer.shapes.node_cells import NodeCells
from store.transfer.shapes.outlines import are_in_order
from store.transfer.shapes.parent_tree import NO_PARENT, ParentTree, endings, link_of, node_id_of
from store.transfer.shapes.shape import RowOptions, Shape, TreeBy, TreeParts

MAX_ROWS = 300_000  # in which a column of parents is looked for, of which two numbers are in memory
MAX_CANDIDATES = 4
_PARENTS = re.compile(
    "parent|broader|super(ior|class|visor)|subclassof|reportsto|manager|boss|belongsto|partof|containedin|"
    "^(p?pid|isa|mgr(id)?|(id)?(pai|p[eè]re))$|eltern|(u|ü|ue)bergeordnet|vorgesetzt|ober(kategorie|gruppe|begriff)|"
    "padre|madre|genitore|rodzic|nadrzęd|родител|батьк|вышестоящ|上级|上級|上位|父|親|상위|부모"
)
_NO_PARENTS = re.compile(r"^(is|has)(?!a$|part|subclass)|(level|lvl|depth|count|type|status|sort|order|rank|flag|age)$")
_OTHER_LINKS = re.compile(  # to nodes that are no parents
    "predecessor|successor|depend|block|prerequisite|previous|^(prev|next)|related|duplicate|replace|vorgänger|nachfolger"
)
_NUMBERS = re.compile(  # folded names of columns whose numbers may be ids by chance
    "level|tiefe|ebene|niveau|nivel|stufe|active|aktiv|enabled|visible|deleted|hidden|sort|order|reihenfolge|position|"
    "^(pos|seq|day|floor)|rank|index|prio|rating|score|stars|points|year|jahr|month|qty|quantity|amount|stock|anzahl|"
    "menge|size|price|preis|population|rooms|weight|version|left|right"
)
_DEPTHS = re.compile("level|lvl|depth|ebene|niveau|nivel|livello|stufe|tiefe")  # in folded names of columns
_DEPTH = re.compile("1?[0-9]", re.ASCII)
_WHOLE = re.compile(r"\d{1,18}")
_PARTS = re.compile(r"[\W_]+")
_ORDERS = re.compile("sort|seq|order|^(pos|position|rank|rang)$|reihenfolge|orden|ordre|ordem")  # in folded names
_CODES = re.compile("code|kod|^(id|key|nr|no|num|number|nummer|numer|notation)$")  # folded names of columns


class LinkedRows(Shape):
    """Rows with links, whose cells become parts once the tree of all rows says their levels."""

    def __init__(self, hierarchy: Hierarchy, table: Table, options: RowOptions) -> None:
        super().__init__(hierarchy, table, options)
        tree = options.tree or TreeBy("parent", {})
        self._cells = NodeCells(hierarchy, table, options, tree)
        self.levels, self.guesses, self.rejected = self._cells.levels, self._cells.guesses, table.rejected(REASON)
        self._parts, self._parent, self._codes = tree.parts, tree.parts.get("parent", ""), tree.parts.get("prefix", "")
        self._own, self._key = tree.parts.get("id") or self._codes, tree.parts.get("key")
        in_parents = f"{self._parent}."
        self._in_parents = [one for one in table.header if self._parent and one.startswith(in_parents)]  # of an object
        own_ids = bool(self._parent) and not any(self._cells.id_columns(None))
        split = tree.parts.get("split", "")
        if split != BY_POSITION and any(map(str.isalnum, split)):
            raise BadInput(f"--tree-by split={shorten(split)} is no sign between parts of codes; write one, as split=.")
        named = {self._key, *(level.name for level in self.levels)} - {None, self._own}
        self.tree = ParentTree(
            hierarchy, self.read, self._cells.node, by_codes=bool(self._codes), by_intervals="left" in self._parts,
            by_names=bool(self._parent) and not named, own_ids=own_ids, has_levels="level" in tree.parts,
            fold=bool(self.options.case_insensitive), parents=self._parent, split=split,
            skips=bool(options.skip.values),
        )  # fmt: skip

    def own_of(self, cells: Sequence[object]) -> str:
        """The id or the code of a rejected row."""
        index = self._cells.index.get(self._own, len(cells))
        return text_of(cells[index]).strip() if index < len(cells) else ""

    def row(self, number: int, cells: Sequence[object]) -> Row | Rejection:
        """The row of cells, whose link has those that are imported. Raises BadInput."""
        if self._cells.is_header(cells):
            return Rejection(number, "The row is the header again; remove it.")
        level = self._cells.level_of(cells)
        ids = self._cells.id_columns(level)
        given = next((found for one in ids if one and (found := self._cells.text(cells, one))), None)
        own, parent = self.link(cells, given)
        if not own:
            return Rejection(number, f'Column "{self._own}" is empty, and others cannot name the node.')
        names = self._cells.names_of(cells, level)
        key = self._cells.text(cells, self._key) if self._key else own if self._codes else ""
        is_id = "id" in self._parts and not any(ids) and bool(self._cells.text(cells, self._own))
        node_id, kept = node_id_of(own) if is_id else given, self._cells.kept(cells)
        link = link_of(own, parent, [key] if key else names, bool(key), level, node_id, kept)
        return Row(number, (), (), link=link)

    def link(self, cells: Sequence[object], given: str | None) -> tuple[str, str]:
        """By what others name a row, and by what it names its parent; `given` is its id. Raises BadInput."""
        text = self._cells.text
        parent = cells[self._cells.index[self._parent]] if self._parent else ""
        parent = text_of(parent) if isinstance(parent, list) or not self._parent else text(cells, self._parent)
        if not parent and (inner := next((one for one in self._in_parents if text(cells, one)), None)):
            raise BadInput(f'Column "{self._parent}" is empty, but "{inner}" has a value.')
        return text(cells, self._own), parent


class Links(LinkedRows):
    """Rows that name their parents, or have codes."""

    trees: ClassVar = {
        "parent": TreeParts(("id", "parent"), ("key", "level")),
        "prefix": TreeParts(("prefix",), ("key", "level", "split")),
    }

    @classmethod
    def see_table(cls, look: Look) -> None:
        found = _parent_columns(look.sample, look.rows, look.keys)
        for parent, own in found[:1]:
            raise shape_doubt(
                f'{look.source} is a tree by parent ids: column "{shorten(parent)}" has values of "{shorten(own)}" of '
                "other rows",
                *[look.tree_by(id=own, parent=parent) for parent, own in found],
            )
        if unlike := _unlike_parents(look.sample):
            raise shape_doubt(f"{look.source} is a tree by parent ids: {unlike}", other="write them alike")

    @classmethod
    def see_column(cls, look: Look, place: str, column: str, values: Sequence[str]) -> None:
        known, keys = {*values} - {""}, look.keys
        is_code = 10 * len(known) >= 9 * len(values) and (not keys or column in keys or _CODES.search(fold(column)))
        is_code = is_code and sum(any(map(str.isdecimal, one)) for one in known) >= 0.5 * len(known)
        if is_code and sum(map(is_one_word, known)) >= 0.9 * len(known):
            try:
                see_codes(place, known, partial(look.tree_by, prefix=column))
            except Doubt as codes:
                see_depths(look, column)
                if not keys:
                    see_paths_beside(look, column, codes)
                raise

    @classmethod
    def see_keys(cls, source: str, roots: Sequence[str], codes: Collection[str], *, are_flat: bool) -> None:
        see_codes(source, {*codes})
        if are_flat:
            see_codes(source, {code.partition(" ")[0] for code in codes})


def see_depths(look: Look, column: str) -> None:
    """Raise Doubt for codes of which many are not below their parents by a column of depths, which says more."""
    for name, values in zip(look.sample.header, look.sample.columns, strict=False):
        if not _DEPTHS.search(fold(name)) or not all(map(_DEPTH.fullmatch, values)) or len({*values}) < 2:
            continue
        depths = {code: int(depth) for code, depth in zip(look.sample.column(column), values, strict=True) if code}
        parents, below = code_parents(depths)[0], dict[str, int]()
        for code, depth in depths.items():
            above = parents.get(code, "")
            below[above] = max(depths.get(above, -1) + 1, min(depth, below.get(above, depth)))
        others = [code for code, depth in depths.items() if depth != below[parents.get(code, "")]]
        sizes = [str([*map(len, _PARTS.split(code))]) for code in depths]  # say depths where parents have no rows
        is_other = len({*sizes}) < len({*zip(sizes, depths.values(), strict=True)})
        if is_other and len(others) * 10 > len(depths):
            seen = f'"{shorten(name)}" of {look.source} has other depths than codes in "{shorten(column)}"'
            seen += f", such as {depths[others[0]]} of {shorten(others[0])}"
            see_sequence(look, name)
            raise shape_doubt(seen, look.tree_by(depth=name, key=column) if are_in_order(values) else ())


def see_sequence(look: Look, depth: str) -> None:
    """Raise Doubt for depths that are an outline in the order of a column of numbers, which is not that of the file."""
    depths = look.sample.column(depth)
    for name, values in zip(look.sample.header, look.sample.columns, strict=False):
        if not _ORDERS.search(fold(name)) or not all(map(_WHOLE.fullmatch, values)) or len({*values}) < len(values):
            continue
        order = sorted(range(len(values)), key=lambda at: int(values[at]))
        if order != [*range(len(values))] and are_in_order([depths[at] for at in order]):
            seen = f'"{shorten(depth)}" of {look.source} has depths, and "{shorten(name)}" another order than the rows'
            raise shape_doubt(seen, other=f'sort the rows by "{shorten(name)}" if the depths are in this order')


def _unlike_parents(sample: Sample) -> str:
    """What is said of a column that is named like one of parents, and has what ids end with, or begins otherwise, as
    `class:01` and `01`; empty in other tables.
    """
    for parent, values in zip(sample.header, sample.columns, strict=False):
        given = [value for value in values if value.casefold() not in NO_PARENT]
        if not given or not _is_parent(fold(parent)):
            continue
        for own, ids in zip(sample.header, sample.columns, strict=False):
            known = {*ids} - {""}
            ends = {end for one in known for end in endings(one)}
            found = [value for value in given if value in ends or not known.isdisjoint(endings(value))]
            found = [value for value in found if value not in known]
            if own != parent and len(known) >= 0.95 * len(ids) and 2 * len(found) >= len(given):
                said = f'column "{shorten(parent)}" has "{shorten(found[0])}", and ids in'
                return f'{said} "{shorten(own)}" are written otherwise'
    return ""


def _parent_columns(
    sample: Sample, rows: Callable[[], Iterator[Sequence[str]]], levels: Collection[str]
) -> list[tuple[str, str]]:
    """The column by which rows refer to their parents, with each that may have their ids, by their values; first one in
    which no row refers to itself.

    Two columns of `levels` refer to each other in any table of cities that are states, so only a name tells them. Where
    several columns are levels, these are the tree, and any other column may have numbers that are ids, too. Of several
    pairs of columns, that with most parents in the first rows is taken, since the others are ancestors further above.
    Children may stand before their parents, so a column that is named like one needs none there. Names in the place of
    ids may be there several times.
    """
    header, columns = sample.header, sample.columns
    names = [*map(fold, header)]
    are_named = [*map(_is_parent, names)]
    is_number = [bool(_NUMBERS.search(name) or _NO_PARENTS.search(name)) for name in names]
    found: list[tuple[bool, int, bool, bool, int, int, bool]] = []
    for own, ids in enumerate(columns):
        known = {*ids} - {""}
        is_unique, has_words = len(known) >= 0.95 * len(ids), are_words(known)
        if not known or not (is_unique or has_words):
            continue
        is_sparse = any(not one.isdecimal() or float(one) > 2 * len(known) for one in known)  # none is met by chance
        for parent, values in enumerate(columns):
            is_possible = is_unique and len(levels) < 2 and (is_sparse or not is_number[parent])
            is_possible = is_possible and not (_OTHER_LINKS.search(names[parent]) or _DEPTHS.search(names[parent]))
            if parent == own or not (are_named[parent] or is_possible):
                continue
            references = [value for one, value in zip(ids, values, strict=True) if value in known and value != one]
            others = sum(value not in known and value.casefold() not in NO_PARENT for value in values)
            if is_unique:
                is_enough = are_named[parent] or len(references) >= max(2, len(ids) // 100)
            else:
                is_enough = header[parent] not in levels and others * 9 < len(references)
            if is_enough:
                count = -len({*references})
                found.append((not are_named[parent], count, not is_unique, has_words, own, parent, is_sparse))
    trees: list[tuple[bool, str, str]] = []
    for is_other, _, _, _, own, parent, is_sparse in sorted(found)[:MAX_CANDIDATES]:
        if trees and (header[parent] != trees[0][1] or is_number[own]):
            continue
        found_rows = (row for row in islice(rows(), MAX_ROWS) if len(row) > max(own, parent))
        pairs = ((row[own].strip(), row[parent].strip()) for row in found_rows)
        if _is_tree(pairs, is_named=not is_other, is_id=fold(header[own]) in HEADER_WORDS, is_sparse=is_sparse):
            refers_to_itself = any(map(eq, columns[own], columns[parent]))
            trees.append((refers_to_itself, header[parent], header[own]))
    return [(parent, own) for _, parent, own in sorted(trees, key=itemgetter(0))]


def _is_parent(name: str) -> bool:
    """Whether a folded name is that of a column of parents."""
    return bool(_PARENTS.search(name)) and not _NO_PARENTS.search(name)


def _is_tree(pairs: Iterable[tuple[str, str]], *, is_named: bool, is_id: bool, is_sparse: bool) -> bool:
    """Whether pairs of an id and that of its parent are a tree; texts are kept as numbers, for their memory.

    A column that is not named like a parent may be any number, or the capital of each city. It is one of parents if
    nothing refers to itself by a number, in a circle or elsewhere, and something has a grandparent, or the other column
    `is_id` by its name. Numbers are parents if there are several, one has two children and most rows with a 0 have
    some, or if ids are `is_sparse`, so that no other numbers meet them by chance; then few roots may share a parent
    that has no row.
    """
    ids: dict[int, int | None] = {}
    is_numeric, has_zeros, own_references, blanks = True, False, 0, 0
    for own, parent in pairs:
        own, parent = (own.casefold(), parent.casefold()) if is_named else (own, parent)
        is_none = parent in NO_PARENT if is_named else not parent or (is_id and parent == "0")
        blanks += is_none
        own_references += own == parent
        has_zeros = has_zeros or parent == "0"
        is_numeric = is_numeric and (is_none or bool(NUMBER.fullmatch(parent)))
        ids[hash(own)] = None if is_none or own == parent else hash(parent)
    references = [parent for parent in ids.values() if parent is not None]
    known = sum(parent in ids for parent in references)
    if is_named:
        return known > 0 and known * 2 >= len(references)
    unknown = [parent for parent in references if parent not in ids] if is_sparse else []
    if len({*unknown}) == 1 < len(unknown) < known:
        blanks, references = len(unknown), [parent for parent in references if parent != unknown[0]]
        ids |= {own: None for own, parent in ids.items() if parent == unknown[0]}
    if known < len(references) or (is_numeric and (own_references or not blanks)):
        return False
    parents = {*references}
    roots = [own for own, parent in ids.items() if parent is None]
    has_few = len(parents) < 2 or len(parents) == len(references)
    has_few = has_few or (has_zeros and 2 * len(parents.intersection(roots)) <= len(roots))
    if is_numeric and not is_sparse and has_few:
        return False
    above: dict[int, int | None] = ids  # an ancestor of each, twice as far after each round; in circles without an end
    for _ in range(len(ids).bit_length() + 1):
        above = {own: above.get(parent) for own, parent in above.items() if parent is not None}
    return bool(references) and not above and (is_id or any(ids[parent] is not None for parent in references))
