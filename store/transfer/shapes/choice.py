"""Choice of a shape: the list of shapes, which of them a file has, and the doubts of all about it."""

import csv
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial

from store.errors import BadInput, shorten
from store.model.hierarchy import Hierarchy
from store.transfer.formats.cells import check_named
from store.transfer.formats.source import Doubt, Guess
from store.transfer.formats.table import Table
from store.transfer.rows import IN_FILE, Rejection, Row
from store.transfer.shapes.by_id import ById
from store.transfer.shapes.cell_paths import ADDRESS, joined_path, leaf_first_path, see_paths
from store.transfer.shapes.doubts import Look, check_header, mojibake
from store.transfer.shapes.levels import Levels
from store.transfer.shapes.links import Links, see_depths, see_sequence
from store.transfer.shapes.nested import Nested, see_nested
from store.transfer.shapes.nested_sets import NestedSets
from store.transfer.shapes.outlines import Outline
from store.transfer.shapes.paths import JsonLines, Paths
from store.transfer.shapes.shape import RowOptions, Shape, TreeBy
from store.transfer.shapes.taxonomy import Taxonomy

SHAPES: Sequence[type[Shape]] = (ById, NestedSets, Links, Nested, JsonLines, Taxonomy, Paths, Levels, Outline)
"""All shapes: the first that fits a table is its shape, and the first that sees its own in it raises the doubt."""
TREES = {name: (shape, parts) for shape in SHAPES for name, parts in shape.trees.items()}
TREE_BY = (
    "it is id=ID,parent=PARENT, prefix=CODE, left=LEFT,right=RIGHT, indent=COLUMN or depth=COLUMN with columns of a "
    "table, indent of a text, or children=NAME of JSON; a part with a comma is in quotes, such as "
    "'id=ID,\"parent=Parent, if any\"'."
)


def tree_by(text: str | None) -> TreeBy | None:
    """How `--tree-by` says that a tree is written, such as `id=ID,parent=PARENT`; None without the option.

    Raises BadInput for unknown, repeated, missing or contradicting parts.
    """
    if text is None:
        return None
    given, parts, levels = f"--tree-by {shorten(text)}", dict[str, str](), list[str]()
    names = {name for _, known in TREES.values() for name in (*known.needed, *known.others)}
    try:
        cells = next(csv.reader([text], strict=True), [])
    except csv.Error:
        cells = [""]
    for what, equals, name in (map(str.strip, cell.partition("=")) for cell in cells):
        if what not in names and equals and "=" in parts.get("level", "").partition(":")[2]:
            levels.append(f"{what}={name}")  # one more value of the column of levels
            continue
        if what in parts or what not in names:
            raise BadInput(f'{given} has {"two parts" if what in parts else "the unknown part"} "{what}"; {TREE_BY}')
        if not name.strip("| ") and (equals or what != "indent"):
            raise BadInput(f"{given} has no column for {what}; write {what}=COLUMN.")
        parts[what] = name
    shapes = [name for name in TREES if name in parts]
    known = TREES[shapes[0]][1] if len(shapes) == 1 else None
    if known is None or not {*known.needed} <= parts.keys() <= {*known.needed, *known.others}:
        raise BadInput(f"{given} does not say how the tree is written; {TREE_BY}")
    return TreeBy(shapes[0], parts, tuple(levels))


def shape_of(hierarchy: Hierarchy, table: Table, options: RowOptions) -> Shape:
    """The shape of a table with these options. Raises BadInput for options that it does not take, and for columns that
    are not there; NoLevels for a table without a column of a level, and Doubt for a document that is no table.
    """
    if options.tree and not options.by_id:
        _check_tree(table, options.tree, options)
        if "level" in options.tree.parts:
            options = replace(options, tree=options.tree.on(table.header))
    shape = next(one for one in SHAPES if one.fits(table, options))
    if (table.document or (table.values and not options.tree)) and shape not in (ById, Nested, JsonLines):
        see_nested(hierarchy, table, options)
    column = () if options.order in (None, IN_FILE) else (options.order,)
    if table.is_text and (column or options.skip.values):
        raise BadInput("--skip and --order COLUMN need columns, and a text has none; --order file takes its order.")
    if shape not in (Nested, JsonLines, *((ById,) if table.values else ())):
        check_named("--order", column, table.header)
        options.skip.check(table.header)
        table.skip = options.skip if options.skip.values else None
        vars(table).pop("sample", None)
    return shape(hierarchy, table, options)


def check_unmatched(hierarchy: Hierarchy, table: Table, taken: Collection[Guess]) -> None:
    """Raise Doubt for a table without a column of a level that has no header, or whose tree is in another shape."""
    if Guess.HEADER not in taken:
        check_header(hierarchy, table.name, table.sample)
    if Guess.SHAPE not in taken:
        see_shapes(Look(hierarchy, table.name, table.sample, table.texts))


def _check_tree(table: Table, tree: TreeBy, options: RowOptions) -> None:
    """Raise BadInput where `--tree-by` is not for what the file is, or contradicts other options."""
    folded = {*options.columns.case_insensitive} - {"id" if tree.shape == "parent" else ""}
    if table.is_text:
        if tree != TreeBy("indent", {"indent": ""}):
            raise BadInput(f"--tree-by {tree.shape} with columns needs a table; a text is imported by indent alone.")
    elif tree.shape in Nested.trees:
        if table.values is None:
            raise BadInput("--tree-by children is not for tables.")
    elif tree.parts.get("indent") == "":
        raise BadInput("--tree-by indent of a table is indent=COLUMN.")
    elif options.columns.levels or options.cells.fill_down or folded:
        raise BadInput(
            "--level, --fold-case and --fill-down are for columns of levels, which --tree-by has not; --fold-case id "
            "is for ids of parents."
        )


def check_shape(shape: Shape) -> None:
    """Raise Doubt for a file whose rows would become another tree than it has, unless this guess is taken.

    Raises BadInput for a table of paths with columns that have no place, unless they are to be ignored.
    """
    table, taken, tree = shape.table, shape.given.taken, shape.given.tree
    if tree and tree.shape in ("depth", "prefix") and Guess.SHAPE not in taken:
        look, column = Look(shape.hierarchy, table.name, table.sample, table.texts), tree.parts[tree.shape]
        if tree.shape == "prefix":
            see_depths(look, column)
        else:
            NestedSets.see_unsorted(look)
            see_sequence(look, column)
    if shape.is_export or tree:
        return
    if shape.is_table:
        if table.header_row is not None and Guess.HEADER not in taken:
            check_header(shape.hierarchy, table.name, table.sample)
        keys = [level.key for level in shape.levels if level.key]
        shape.check(Look(shape.hierarchy, table.name, table.sample, table.texts, keys), see_shapes)
    if Guess.SHAPE not in taken and shape.by_id is None:
        check_keys(shape.hierarchy, table.name, shape.first, shape)


def see_shapes(look: Look) -> None:
    """Raise Doubt for a table whose tree is not in the columns of keys, with the options that say it.

    Without any key the whole paths, codes and depths are looked for in all columns.
    """
    ways: list[Callable[[], None]] = [partial(shape.see_table, look) for shape in SHAPES]
    if len(look.keys) < 2:
        for column, values in zip(look.sample.header, look.sample.columns, strict=False):
            if column and any(values):
                place = f'Column "{shorten(column)}" of {look.source}'
                ways += [partial(shape.see_column, look, place, column, values) for shape in SHAPES]
        ways.append(partial(Levels.see_chain, look))
    seen: list[Doubt] = []
    for way in ways:
        try:
            way()
        except Doubt as doubt:
            seen.append(doubt)
    if seen:
        seen[0].others = seen[1:]
        raise seen[0]


def check_keys(hierarchy: Hierarchy, source: str, rows: Iterable[Row | Rejection], shape: Shape | None = None) -> None:
    """Raise Doubt for rows in which the keys of a level are whole paths, or codes that begin with other ones.

    Paths in JSON that are lists of keys are taken as they are.
    """
    found = [row for row in rows if not isinstance(row, Rejection)]
    if shape and shape.has_lists:
        found = [row for row in found if not isinstance(row.path, list)]
    levels: dict[str, tuple[str, set[str]]] = {}
    of_paths: set[str] = set()  # columns whose cells are split
    roots = [str(row.path[0]) for row in found]
    codes = [str((len(row.path) == 1 and row.parts[0].id) or row.path[0]) for row in found if row.parts]  # of the roots
    is_flat = all(len(row.path) == 1 and row.parts for row in found)
    for row in found:
        levels_of = [part.level for part in row.parts] or [""]
        for index, key in enumerate(row.path):
            level = levels_of[max(0, index - len(row.path) + len(levels_of))]
            column = row.columns[index] if index < len(row.columns) else ""
            levels.setdefault(level, (column, set()))[1].add(str(key))
            if column and index and column == row.columns[index - 1]:
                of_paths.add(column)
    for level, (column, keys) in levels.items():
        place = f'Column "{column}" of {source}' if column else source
        if damaged := mojibake(keys):
            said = f'{place} has broken characters, such as "{shorten(damaged)}"'
            raise Doubt(Guess.ENCODING, said, other="mend the file")
        path = joined_path(keys, are_roots=is_flat, are_files=is_flat) or (leaf_first_path(keys) if is_flat else None)
        if column not in of_paths and path:
            is_text = shape is not None and shape.table.is_text
            own = column or (shape.path_column if shape else "")
            matched = [*shape.options.pairs()] if shape and not shape.given.columns.levels else []
            see_paths(hierarchy, place, path, level, own, keys, is_text=is_text, matched=matched)
    has_columns = any(row.columns for row in found)
    if is_flat or (has_columns and not of_paths):  # paths are written as they are meant, unless all are roots
        codes = [code for code in codes if not ADDRESS.match(code)]
        for other in SHAPES:
            other.see_keys(source, roots, codes, are_flat=is_flat)
