"""File of an import, and its format: a path or the standard input (`-`, copied to a file first), its format by the
extension and the options, and the column options of a table, such as `--level city=City`.
"""

import csv
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, NamedTuple

import typer

from store.errors import BadInput, quantity, shorten, shown_address
from store.model.hierarchy import Hierarchy
from store.model.names import canonical_language
from store.transfer.by_id import IdReader, IdRowReader, read_by_id, values_by
from store.transfer.formats.cell_paths import CellPaths
from store.transfer.formats.columns import (
    NUMERIC,
    PLAIN,
    CellFormat,
    ColumnOptions,
    LevelColumns,
    RowReader,
    TreeBy,
    check_columns,
    json_text,
    match_columns,
    named,
)
from store.transfer.formats.csv import Dialect, check_header, csv_table, looks_like_table
from store.transfer.formats.json import (
    LINE_ENDINGS,
    check_lists,
    check_nodes,
    geojson_table,
    is_nodes,
    json_table,
    json_tree,
    lines_table,
    other_list,
    read_objects,
)
from store.transfer.formats.json_trees import NodeReader
from store.transfer.formats.lines import FIXED, json_lines, read_jsonl, read_taxonomy, taxonomy_ids, taxonomy_level
from store.transfer.formats.outlines import OutlineReader, outline_table, read_outline
from store.transfer.formats.source import (
    BLOCK_BYTES,
    JSON_REASON,
    REASON,
    REJECTED_JSON,
    Doubt,
    Format,
    Guess,
    NumberFormat,
    content_name,
    rejected_taxonomy,
)
from store.transfer.formats.tables import LAST, PathRowReader, Table, is_path_table, path_header, read_table
from store.transfer.formats.trees import TreeReader, tree_columns
from store.transfer.formats.workbooks import excel_table, parquet_table
from store.transfer.parent_ids import ParentTree
from store.transfer.rows import TextRows


class NoLevels(BadInput):
    """A table without a column of a level."""

    table: Table


_PATHS = re.compile(
    r"""(.*\S)\s+split\s+("[^"]*"|'[^']*')(?:\s+each\s+("[^"]*"|'[^']*'))?""", re.DOTALL
)  # of a column of paths
_TARGETS = {"--attr": ("attribute", 'store.street="Column"'), "--name-in": ("language", 'city.de="Column"')}


def columns(hierarchy: Hierarchy, options: ColumnOptions, in_keys: Iterable[str] = ()) -> list[LevelColumns]:
    """The columns that the options describe, from the root down. Raises BadInput for the first wrong option.

    Levels that are `in_keys` have no column of their own. What is given once for a level with several columns belongs
    to the deepest one that a row has.
    """
    found = _level_columns(hierarchy, options.levels, in_keys)
    given: dict[tuple[str, str, str], list[str]] = {}
    for option, value in options.pairs():
        if option == "--level":
            continue
        name, column = (value, "") if option == "--fold-case" else _split(option, value)
        what = "fold" if option == "--fold-case" else option.removeprefix("--")
        if option in _TARGETS:
            lacks, example = _TARGETS[option]
            name, dot, what = name.partition(".")
            if not dot:
                raise BadInput(f"{option} {value} has no {lacks}; use {option} {example}.")
        if option == "--name-in":
            what = canonical_language(what)
        level = hierarchy.level(name)
        if option == "--attr" and what not in level.attributes:
            raise BadInput(f'{level.name} has no attribute "{what}"; it has {", ".join(level.attributes) or "none"}.')
        if not any(one.level == level.name for one in found):
            raise BadInput(f"{option} {name} needs a column for this level; add --level {name}=Column.")
        given.setdefault((option, level.name, what), []).append(column)
    for (option, level_name, what), names in given.items():
        own = [one for one in found if one.level == level_name]
        if len(names) not in (1, len(own)) and option != "--fold-case":
            raise BadInput(
                f"{option} is given {len(names)} times for {what} of {level_name}, which has "
                f"{quantity(len(own), 'column')}: give one, or one for each of them in their order."
            )
        for one, column in zip(own, names if len(names) == len(own) else names[:1] * len(own), strict=True):
            if option == "--name-in":
                one.names[what] = column
            elif option == "--attr":
                one.attributes[what] = column
            else:
                setattr(one, what, column or True)
    return found


def _level_columns(hierarchy: Hierarchy, options: Iterable[str], in_keys: Iterable[str]) -> list[LevelColumns]:
    """The columns of `--level`; each level must be allowed below an earlier one, as in the rows."""
    found = [LevelColumns(name, "") for name in dict.fromkeys(in_keys)]
    for option in options:
        name, column, paths = _level_column(option)
        level = hierarchy.level(name)
        before = [one.level for one in found]
        above = {*before[before.index(level.name) :]} if level.name in before else {None, *before}
        if paths is not None and level.name not in level.under:
            raise BadInput(f"--level {name} has paths, but a {level.name} may not stand under a {level.name}.")
        if not level.under & above:
            places = ", ".join(sorted(above or "the root" for above in level.under))
            raise BadInput(f"--level {name} is in the wrong position: {level.name} is allowed under {places}.")
        if any(one.key == column and one.level == level.name for one in found):
            raise BadInput(f'--level {name} has the column "{column}" twice; name each of its columns once.')
        numeric = frozenset(name for name, attribute in level.attributes.items() if attribute.kind in NUMERIC)
        found.append(LevelColumns(level.name, column, numeric=numeric, paths=paths))
    if not found:
        roots = [level.name for level in hierarchy.levels.values() if level.may_be_root]
        raise NoLevels(
            f"No column is named like a level of {hierarchy.name} that may be a root ({', '.join(roots)}); name the "
            f"columns of its levels from the root down, such as --level {roots[0].lower()}=COLUMN."
        )
    return found


def _level_column(option: str) -> tuple[str, str, CellPaths | None]:
    """The level, the column, and how this one has paths, of `level=column` or `level=column split " > " each "|"`."""
    name, column = _split("--level", option)
    if not (match := _PATHS.fullmatch(column)):
        return name, column, None
    column, split, each = match.groups()
    return name, column, CellPaths(split[1:-1], each and each[1:-1])


def _split(option: str, value: str) -> tuple[str, str]:
    left, equals, column = value.partition("=")
    if not (left.strip() and equals and column.strip()):
        raise BadInput(f'{option} {value} has no column; use {option} {left or "city"}="Column".')
    return left.strip(), column.strip()


TREE_PARTS = {
    "parent": ("id", "parent", "key", "level"),
    "prefix": ("prefix", "key", "level"),
    "indent": ("indent", "key", "level"),
    "depth": ("depth", "key", "level", "name"),
    "children": ("children", "key", "name", "id"),
}
TREE_BY = (
    "it is id=ID,parent=PARENT, prefix=CODE, indent=COLUMN or depth=COLUMN with columns of a table, indent of a text, "
    "or children=NAME of JSON; a part with a comma is in quotes, such as 'id=ID,\"parent=Parent, if any\"'."
)


def tree_by(text: str | None) -> TreeBy | None:
    """How `--tree-by` says that a tree is written, such as `id=ID,parent=PARENT`; None without the option.

    Raises BadInput for unknown, repeated, missing or contradicting parts.
    """
    if text is None:
        return None
    given, parts = f"--tree-by {shorten(text)}", dict[str, str]()
    try:
        cells = next(csv.reader([text], strict=True), [])
    except csv.Error:
        cells = [""]
    for what, equals, name in (map(str.strip, cell.partition("=")) for cell in cells):
        if what in parts or not any(what in known for known in TREE_PARTS.values()):
            raise BadInput(f'{given} has {"two parts" if what in parts else "the unknown part"} "{what}"; {TREE_BY}')
        if not name.strip("| ") and (equals or what != "indent"):
            raise BadInput(f"{given} has no column for {what}; write {what}=COLUMN.")
        parts[what] = name
    shapes = [shape for shape in TREE_PARTS if shape in parts]
    if len(shapes) != 1 or not parts.keys() <= {*TREE_PARTS[shapes[0]]} or (shapes == ["parent"] and "id" not in parts):
        raise BadInput(f"{given} does not say how the tree is written; {TREE_BY}")
    children = tuple(name.strip() for name in parts.pop("children", "").split("|") if name.strip())
    return TreeBy(**parts, children=children)


# Options that contradict `--by id`, by their parameters, each with the way out.
_NOT_BY_ID = {
    "levels": "--level: levels and paths are those of the stored nodes; leave it out",
    "tree": "--tree-by: paths are those of the stored nodes; leave it out",
    "ids": "--id: --by id=COLUMN names the column of ids",
    "level_ids": "--level-ids: write the ids as they are stored, such as city-30",
    "names_only": "--names-only: --name-in LEVEL.LANGUAGE=COLUMN adds names in a language",
    "prune": "--prune: clade delete removes nodes, or a file of all paths with --prune",
    "prune_all": "--prune: clade delete removes nodes, or a file of all paths with --prune",
    "moves": "--moves: a file of paths moves nodes",
    "create_parents": "--create-parents: a file of paths creates nodes",
    "describe": "--describe: --dry-run shows what would be changed",
}


def by_id_column(text: str, params: Mapping[str, object]) -> str:
    """The column of ids that `--by` names. Raises BadInput beside options that contradict it."""
    what, equals, column = map(str.strip, text.partition("="))
    if what != "id" or (equals and not column):
        raise BadInput(f"--by is id or id=COLUMN, not {shorten(text)}.")
    if contradiction := next((way for name, way in _NOT_BY_ID.items() if params[name]), None):
        raise BadInput(f"--by id changes stored nodes where they are, and excludes {contradiction}.")
    return column or "id"


STDIN = "-"
MAX_BYTES = 4_000_000_000  # of the standard input
MAX_NAME_BYTES = 200  # of a file; most systems take 255


class Source(NamedTuple):
    """A file to import, its name in messages, and the folder of its rejected rows."""

    file: Path
    name: str
    folder: Path

    def rejected(self, ending: str) -> Path:
        """The file of its rejected rows."""
        stem = "".join([c if c.isprintable() else "_" for c in Path(content_name(self.file)).stem])
        return self.folder / f"{stem.encode()[:MAX_NAME_BYTES].decode(errors='ignore')}.rejected{ending}"


def check_address(address: str, command: str) -> None:
    """Raise BadInput for what is neither a file, a folder nor the standard input, from which the command reads.

    Unlike those of `Path`, the functions of `os.path` take an address that is longer than a file's name may be.
    """
    if address == STDIN or os.path.isfile(address) or os.path.isdir(address):
        return
    if os.path.exists(address):
        raise BadInput(
            f"{shorten(address, 200)} is a pipe or a device, which can be read only once; pipe it in: {command} < FILE."
        )
    if "://" in address:
        raise BadInput(
            f"{shown_address(address)} is an address, and only files are read; download it, or pipe it in: "
            f"curl -fL ADDRESS | {command}."
        )
    raise typer.BadParameter(f"file '{shorten(address, 200)}' does not exist.", param_hint="FILE")


@contextmanager
def source_at(address: str) -> Iterator[Source]:
    """The source at an address, which `check_address` has passed, while the block runs. Raises BadInput."""
    if address != STDIN:
        file = Path(address)
        yield Source(file, file.name, file.parent)
        return
    with TemporaryDirectory(prefix="clade-") as folder:
        file = Path(folder) / "stdin"
        with file.open("xb") as target:
            _copy_stdin(target)
        yield Source(file, file.name, Path())


def _copy_stdin(target: BinaryIO) -> None:
    size = 0
    while block := sys.stdin.buffer.read(BLOCK_BYTES):
        size += len(block)
        if size > MAX_BYTES:
            raise BadInput(f"The standard input has more than {MAX_BYTES:,} bytes; give it as a file.")
        target.write(block)


ENDINGS = {
    ".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".txt": "taxonomy", ".xlsx": "excel",
    ".xlsm": "excel", ".xls": "excel", ".xlsb": "excel", ".ods": "excel", ".parquet": "parquet", ".json": "json",
    ".geojson": "geojson", ".geojsonl": "geojson", ".geojsons": "geojson", ".ndgeojson": "geojson",
}  # fmt: skip
NAMES = tuple(dict.fromkeys(ENDINGS.values()))


@dataclass(frozen=True)
class FileOptions:
    """The options about the content of a file, and the guesses that are `taken` without a doubt.

    The line `header_row`, counted from 1, has the names of the columns, or `column_names` are those of a file without a
    header. Raises BadInput for both.
    """

    columns: ColumnOptions = field(default_factory=ColumnOptions)
    dialect: Dialect = field(default_factory=Dialect)
    cells: CellFormat = PLAIN
    sheet: str | None = None
    header_row: int | None = None
    column_names: Sequence[str] = ()
    taken: Collection[Guess] = ()
    tree: TreeBy | None = None
    by_id: str | None = None  # the column of ids by which rows name stored nodes

    def __post_init__(self) -> None:
        if self.header_row is not None and self.column_names:
            raise BadInput("--header-row is for a file with a header, --columns for one without; give one of them.")
        if "" in self.column_names:
            raise BadInput("--columns has an empty name; name all columns, such as --columns Country,City.")


def cell_format(nulls: Sequence[str], numbers: str | None, fill_down: Sequence[str] = ()) -> CellFormat:
    """The format of cells by `--null`, `--numbers` and `--fill-down`."""
    everywhere = frozenset(null for null in nulls if "=" not in null)
    columns: dict[str, frozenset[str]] = {}
    for null in nulls:
        column, equals, text = null.partition("=")
        if equals:
            columns[column] = columns.get(column, frozenset()) | {text}
    return CellFormat(everywhere, columns, NumberFormat(numbers) if numbers is not None else None, frozenset(fill_down))


@dataclass(frozen=True)
class FileFormat:
    """The format of a file, what was guessed about it, and of a table its options and the columns of its levels.

    The header of CSV and Excel is a row. Paths in JSON may be lists of keys. A table of paths has no keys of `levels`.
    A file that is Clade's own is an export. With an `id_column` rows name stored nodes by their ids alone.
    """

    format: Format
    guesses: Sequence[str] = ()
    table: Table | None = None
    options: ColumnOptions = field(default_factory=ColumnOptions)
    levels: Sequence[LevelColumns] = ()
    has_text_header: bool = False
    has_lists: bool = False
    is_own: bool = False
    id_column: str = ""

    @property
    def keys(self) -> list[str]:
        """The columns of keys, from the root down; none in a table of paths."""
        return [level.key for level in self.levels if level.key]

    def places(self, hierarchy: Hierarchy) -> dict[str, str]:
        """The columns that are imported, with what they become, for a person."""
        found: dict[str, str] = {}
        is_path = self.table is not None and (self.id_column or is_path_table(self.table.header))
        if not self.keys and self.table is not None and is_path and not self.format.tree:
            known = {*FIXED, *LAST, *(name for level in hierarchy.levels.values() for name in level.attributes)}
            known = known - {"id"} | {self.id_column} if self.id_column else known
            found = {name: name for name in self.table.header if name in known}
        for level in self.levels:
            for column, place in level.places():
                found[column] = f"{found[column]}, {place}" if column in found else place
        return found


def format_of(hierarchy: Hierarchy, file: Path, name: str | None, options: FileOptions) -> FileFormat:
    """The format of this name, by default that of the file's extension. Raises BadInput for options of another one."""
    tree = options.tree
    is_outline = tree is not None and tree.indent == ""
    is_text = is_outline and ENDINGS.get(Path(content_name(file)).suffix.lower(), "taxonomy") == "taxonomy"
    name = name or ("taxonomy" if is_text else name_of(file))
    if name is None:
        raise BadInput(f'Unknown extension of "{file.name}"; add --format with one of {", ".join(NAMES)}.')
    if name != "csv" and options.dialect != Dialect(options.dialect.encoding if name == "taxonomy" else None):
        raise BadInput("--delimiter, --encoding and --quote need a CSV file; add --format csv if it is one.")
    if name != "excel" and options.sheet is not None:
        raise BadInput("--sheet needs an Excel file; add --format excel if it is one.")
    if name not in ("csv", "excel") and (options.header_row is not None or options.column_names):
        raise BadInput("--header-row and --columns need a CSV or an Excel file; add --format csv if it is one.")
    if name == "csv":
        return _csv(hierarchy, file, options)
    if name == "excel":
        table = excel_table(file, options.sheet, options.header_row, options.column_names)
        return _table(hierarchy, table, options, is_row=not options.column_names)
    if name == "parquet":
        return _table(hierarchy, parquet_table(file), options)
    if name == "geojson":
        is_lines = content_name(file).lower().endswith(LINE_ENDINGS)
        return _table(hierarchy, geojson_table(file, is_lines=is_lines), options)
    if name in ("json", "jsonl") and options.by_id:
        return _objects_by_id(hierarchy, file, options, is_lines=name == "jsonl")
    if name == "json":
        return _json(hierarchy, file, options)
    if name == "jsonl" and tree is not None:
        return _table(hierarchy, lines_table(file), options)
    if options.by_id:
        raise BadInput("--by id needs a table: CSV, Excel, Parquet, GeoJSON, JSON or JSON lines.")
    _refuse_columns(options)
    if name == "jsonl":
        return FileFormat(Format(lambda: read_jsonl(file), REJECTED_JSON), has_lists=True)
    dialect = options.dialect.encoded(file, options.taken)
    encoding = dialect.encoding or "utf-8"
    if tree is not None:
        if tree != TreeBy(indent=""):
            raise BadInput(f"--tree-by {tree.shape} with columns needs a table; a text is imported by indent alone.")
        lines, levels = outline_table(file, encoding), [LevelColumns(level, "") for level in hierarchy.levels]
        reader = OutlineReader(hierarchy, tree, levels, lines.header, PLAIN)
        outline = Format(lambda: read_outline(lines, reader), REJECTED_JSON)
        return FileFormat(outline, dialect.sentences(options.dialect), has_lists=True)
    level = taxonomy_level(hierarchy)
    ids = taxonomy_ids(file, encoding, options.taken)
    rejected = rejected_taxonomy(dialect.text_encoding, dialect.errors, dialect.mark)
    form = Format(lambda: read_taxonomy(level, file, ids, encoding), rejected)
    return FileFormat(form, dialect.sentences(options.dialect))


def name_of(file: Path) -> str | None:
    """The format by the extension of a file, of a compressed one by that of what is in it; None where unknown.

    A text file is a taxonomy, or a table by its delimiters.
    """
    name = ENDINGS.get(Path(content_name(file)).suffix.lower())
    return "csv" if name == "taxonomy" and looks_like_table(file) else name


def _csv(hierarchy: Hierarchy, file: Path, options: FileOptions) -> FileFormat:
    given = replace(options.dialect, header_row=options.header_row, columns=options.column_names)
    dialect = given.resolved(file, options.taken)
    table = csv_table(file, dialect)
    named_columns = {_level_column(value)[1] for value in options.columns.levels}
    if options.by_id not in table.header and not is_path_table(table.header) and named_columns.isdisjoint(table.header):
        check_header(file, dialect)
    try:
        found = _table(hierarchy, table, options, is_row=not options.column_names)
    except BadInput as error:
        error.args = (f"{error} {dialect.doubt}".rstrip(),)
        raise
    return replace(found, guesses=[*dialect.sentences(given), *found.guesses])


def _json(hierarchy: Hierarchy, file: Path, options: FileOptions) -> FileFormat:
    """A tree, or a table where the nodes have columns. Raises Doubt for a tree in lists of another name."""
    is_taken = Guess.SHAPE in options.taken
    if options.tree is not None and options.tree.children:
        return _json_tree(hierarchy, file, options.tree, options)
    objects = read_objects(file)
    if is_nodes(objects) and not options.columns.levels and not options.tree:
        _refuse_columns(options)
        if not is_taken:
            check_nodes(hierarchy, file, objects)
        return FileFormat(Format(lambda: NodeReader(hierarchy).read(objects), REJECTED_JSON), has_lists=True)
    first = objects[0] if len(objects) == 1 and isinstance(objects[0], dict) else {}
    if len(first) > 1 and all(isinstance(one, dict) for one in first.values()):
        raise BadInput(
            f'{file.name} has objects by key, such as "{shorten(next(iter(first)))}"; write a list of objects that '
            'have their keys as values, or a tree of nodes with "key" and "children".'
        )
    if not (is_taken or options.columns.levels or options.tree) and (parts := json_tree(objects)):
        raise Doubt(*other_list(file.name, parts))
    table, lists = json_table(file, objects)
    if not is_taken:
        levels = options.columns.levels or match_columns(hierarchy, table.header).levels
        keys = [_level_column(level)[1] for level in levels]
        above = {column.rpartition(".")[0] for column in table.header}
        if mixed := next((column for column in keys if column in above), None):
            raise Doubt(
                Guess.SHAPE,
                f'"{shorten(mixed)}" of {file.name} is a value in some objects and an object in others, and only one '
                "of both is a column; write it alike in all.",
            )
        check_lists(file, lists, keys)
    return _table(hierarchy, table, options)


def _json_tree(hierarchy: Hierarchy, file: Path, tree: TreeBy, options: FileOptions) -> FileFormat:
    """A tree whose fields have other names. `--level` names the level of a list. Raises Doubt for nodes in others."""
    given = options.columns
    if options.cells != PLAIN or given.case_insensitive:
        raise BadInput("--null, --numbers, --fill-down and --fold-case are for tables, and --tree-by children is none.")
    lists = {column: hierarchy.level(name).name for name, column, _ in map(_level_column, given.levels)}
    if unknown := lists.keys() - {*tree.children}:
        raise BadInput(f'--level names the list "{min(unknown)}", and --tree-by does not; add it to children=.')
    reader = NodeReader(hierarchy, tree, columns(hierarchy, replace(given, levels=[]), hierarchy.levels), lists)
    roots = reader.roots(file)
    if Guess.SHAPE not in options.taken:
        check_nodes(hierarchy, file, roots, tree.children)
    return FileFormat(Format(lambda: reader.read(roots), REJECTED_JSON), has_lists=True)


def _table(hierarchy: Hierarchy, table: Table, options: FileOptions, *, is_row: bool = False) -> FileFormat:
    """The format of a table, whose header is a row of the file or not."""
    header, given = table.header, options.columns
    if options.tree is not None:
        reader, guesses = tree_reader(hierarchy, header, options)
        if isinstance(reader, OutlineReader):
            form = Format(lambda: read_outline(table, reader), REJECTED_JSON)
        else:
            rows = Format(lambda: read_table(table, reader), table.rejected(REASON))
            form = rows._replace(tree=parent_tree(hierarchy, options, reader, rows.read))
        return FileFormat(form, guesses, table, given, reader.levels, is_row)
    if options.by_id:
        levels = _path_columns(hierarchy, options)
        if options.by_id not in header:
            raise BadInput(
                f'The file has no column "{options.by_id}" of ids; it has {named(header)}. --by id=COLUMN names it.'
            )
        by_id = IdRowReader(hierarchy, header, options.by_id, levels, options.cells)
        rows = Format(lambda: read_table(table, by_id), table.rejected(JSON_REASON), by_id=values_by(by_id))
        return FileFormat(rows, (), table, given, levels, is_row, id_column=options.by_id)
    if is_path_table(header) and not given.levels:
        levels = _path_columns(hierarchy, options)
        path_reader = PathRowReader(hierarchy, header, levels, options.cells)
        rows = Format(lambda: read_table(table, path_reader), table.rejected(JSON_REASON))
        is_own = header == path_header(hierarchy)
        return FileFormat(rows, (), table, given, levels, is_row, is_own=is_own)
    found, levels, guesses = _columns(hierarchy, table, given)
    rows = Format(lambda: read_table(table, RowReader(levels, header, options.cells)), table.rejected(REASON))
    return FileFormat(rows, guesses, table, found, levels, is_row)


def _objects_by_id(hierarchy: Hierarchy, file: Path, options: FileOptions, *, is_lines: bool) -> FileFormat:
    """The format of JSON objects that name stored nodes by their ids."""
    if options.cells != PLAIN:
        raise BadInput("--null and --numbers are for the cells of tables, not for JSON.")
    reader = IdReader(options.by_id or "", _path_columns(hierarchy, options))

    def objects() -> Iterator[tuple[int, str, object]]:
        if is_lines:
            return json_lines(file)
        return ((number, json_text(one), one) for number, one in enumerate(read_objects(file), start=1))

    rows = Format(lambda: read_by_id(objects(), reader), REJECTED_JSON, by_id=values_by(reader))
    return FileFormat(rows, id_column=reader.column)


def tree_reader(hierarchy: Hierarchy, header: Sequence[str], options: FileOptions) -> tuple[TreeReader, list[str]]:
    """The reader of a table of a tree by parents, and what its columns are by their names. Raises BadInput."""
    given, tree = options.columns, options.tree
    if tree is None or tree.children or tree.indent == "":
        shape = "children is not for tables" if tree and tree.children else "indent of a table is indent=COLUMN"
        raise BadInput(f"--tree-by {shape}.")
    if given.levels or given.case_insensitive or options.cells.fill_down:
        raise BadInput("--level, --fold-case and --fill-down are for columns of levels, which --tree-by has not.")
    levels = tree_columns(hierarchy, header, tree, columns(hierarchy, given, hierarchy.levels))
    is_outline = tree.shape in ("indent", "depth")
    reader = (OutlineReader if is_outline else TreeReader)(hierarchy, tree, levels, header, options.cells)
    others = [column for column in header if column and column not in reader.used]
    return reader, [f"columns not imported: {named(others)}."] if others else []


def parent_tree(
    hierarchy: Hierarchy, options: FileOptions, reader: TreeReader, read: Callable[[], TextRows]
) -> ParentTree:
    """The tree of the rows that `read` returns."""
    tree = options.tree or TreeBy()
    has_ids = tree.parent is not None and not any(own.id for own in reader.levels)
    return ParentTree(hierarchy, read, reader.part, tree.prefix is not None, has_ids, tree.level is not None)


def _path_columns(hierarchy: Hierarchy, options: FileOptions) -> list[LevelColumns]:
    """The columns that options give to levels of a table of paths, besides those that are named like attributes."""
    if options.cells.fill_down or options.columns.case_insensitive:
        raise BadInput("--fill-down and --fold-case need columns of levels, not of paths or ids.")
    return [level for level in columns(hierarchy, options.columns, hierarchy.levels) if level.values]


def _columns(
    hierarchy: Hierarchy, table: Table, given: ColumnOptions
) -> tuple[ColumnOptions, list[LevelColumns], list[str]]:
    """The options with those that follow from the names of the columns, where none of a level is given.

    Raises NoLevels where there is no column of a level.
    """
    header = table.header
    found = given if given.levels else given.merged(match_columns(hierarchy, header))
    try:
        levels = columns(hierarchy, found)
    except NoLevels as error:
        unmatched = NoLevels(f"{error} The file has {named(header)}.")
        unmatched.table = table
        raise unmatched from None
    check_columns(header, levels)
    if given.levels:
        return found, levels, []
    words = " ".join(f"{option} {value}" for option, value in found.pairs())
    used = {value.partition("=")[2] for _, value in found.pairs()}
    others = [column for column in header if column and column not in used]
    left_out = f" Not imported: {named(others)}." if others else ""
    return found, levels, [f"columns {words}, by their names; --level sets them.{left_out}"]


def _refuse_columns(options: FileOptions) -> None:
    if any(options.columns.pairs()) or options.cells != PLAIN:
        raise BadInput(
            "--level, --name, --name-in, --id, --attr, --fold-case, --fill-down, --null and --numbers need a table: "
            "CSV, Excel, Parquet, GeoJSON, or a list of objects in a JSON document."
        )
