"""Format of a file to import, by its extension and the options of the command."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from store.errors import BadInput
from store.model.hierarchy import Hierarchy
from store.model.names import canonical_language
from store.text import shorten
from store.transfer import formats
from store.transfer.formats import Format, csv_file
from store.transfer.formats.csv_file import Dialect, looks_like_table
from store.transfer.formats.excel import excel_table
from store.transfer.formats.files import (
    REASON,
    RejectedRows,
    content_name,
    rejected_items,
    rejected_json,
    rejected_table,
    rejected_taxonomy,
)
from store.transfer.formats.json_file import (
    LINE_ENDINGS,
    geojson_table,
    is_nodes,
    is_table_of_lines,
    json_table,
    lines_table,
    read_nodes,
    read_objects,
    read_table_lines,
)
from store.transfer.formats.lines import nested_levels, read_jsonl, read_taxonomy, taxonomy_level
from store.transfer.formats.matching import NUMERIC, ColumnOptions, match_columns
from store.transfer.formats.parquet import parquet_table
from store.transfer.formats.table_rows import (
    PLAIN,
    CellFormat,
    CellReader,
    LevelColumns,
    NumberFormat,
    RowReader,
    Table,
    check_columns,
    named,
    read_rows,
)
from store.transfer.formats.tree_tables import (
    ParentRowReader,
    PathRowReader,
    TreeColumns,
    is_path_table,
    match_tree,
    path_header,
)
from store.transfer.rows import Rejection, Row
from store.transfer.tables.s3_export import Export, items_table, read_items

_TREE = re.compile("(id|parent|key|level)=")
_TREE_COLUMN = re.compile("(id|parent|key|level)=(.+?)(?:,(?=(?:id|parent|key|level)=)|$)")
_SPLIT = re.compile(r"""(?P<column>.+?)\s+split\s+(?P<quote>["'])(?P<separator>.+)(?P=quote)""")


class NoLevels(BadInput):
    """A table without a column of a level."""


def columns(hierarchy: Hierarchy, options: ColumnOptions, in_keys: Iterable[str] = ()) -> list[LevelColumns]:
    """The columns that the options describe, by level. Raises BadInput for the first wrong option.

    Levels that are `in_keys` have no column of their own.
    """
    mapping = _level_columns(hierarchy, options.levels, in_keys)

    def mapped(option: str, name: str) -> list[LevelColumns]:
        level = hierarchy.level(name)
        if found := [one for one in mapping if one.level == level.name]:
            return found
        raise BadInput(f"{option} {name} needs a column for this level; add --level {name}=Column.")

    for option in options.names:
        name, column = _split("--name", option)
        for one in mapped("--name", name):
            one.name = column
    for option in options.names_in:
        name, language, column = _split_target("--name-in", option, "no language", 'city.de="Column"')
        for one in mapped("--name-in", name):
            one.names[canonical_language(language)] = column
    for option in options.ids:
        name, column = _split("--id", option)
        for one in mapped("--id", name):
            one.id = column
    for option in options.attributes:
        name, attribute, column = _split_target("--attr", option, "no attribute", 'store.street="Column"')
        for one in mapped("--attr", name):
            defined = hierarchy.levels[one.level].attributes
            if attribute not in defined:
                raise BadInput(f'{one.level} has no attribute "{attribute}"; it has {", ".join(defined) or "none"}.')
            one.attributes[attribute] = column
    for name in options.case_insensitive:
        for one in mapped("--fold-case", name):
            one.fold = True
    return mapping


def tree_columns(hierarchy: Hierarchy, options: ColumnOptions) -> TreeColumns:
    """The columns of a tree by parent ids. Raises BadInput for the first wrong option."""
    text = options.tree or ""
    found = {name: column.strip() for name, column in _TREE_COLUMN.findall(text)}
    if not {"id", "parent"} <= found.keys() or len(_TREE_COLUMN.findall(text)) != len(found) or not _TREE.match(text):
        raise BadInput(
            f"--tree-by {shorten(text)} is not understood; use --tree-by id=ID,parent=PARENT, with the names of these "
            "columns, and ,key=NAME or ,level=COLUMN if there are such columns."
        )
    if options.ids or options.case_insensitive:
        raise BadInput("--id and --fold-case are not for a tree by parent ids, whose nodes have the ids of --tree-by.")
    tree = TreeColumns(found["id"], found["parent"], found.get("key"), found.get("level"))
    for option in options.levels:
        name, value = _split("--level", option)
        if tree.level is None:
            raise BadInput(f"--level {option} needs a column of levels: --tree-by {shorten(text)},level=COLUMN.")
        tree.level_values[value] = hierarchy.level(name).name
    given = replace(options, levels=[], tree=None)
    tree.levels = {one.level: one for one in columns(hierarchy, given, in_keys=hierarchy.levels)}
    if tree.level is None:
        if len(nested_levels(hierarchy)) > 1:
            labels = ", ".join(level.label for level in nested_levels(hierarchy))
            raise BadInput(
                f"Rows of {hierarchy.name} without a level may be of several: {labels}; add one of them, or the column "
                f"of levels, to the option: --tree-by {shorten(text)},level={nested_levels(hierarchy)[0].label}."
            )
        tree.default_level = taxonomy_level(hierarchy)
    return tree


def _level_columns(hierarchy: Hierarchy, options: Iterable[str], in_keys: Iterable[str]) -> list[LevelColumns]:
    """The columns of each `--level`, which must be allowed below an earlier one, as in the rows."""
    mapping = [LevelColumns(name, "") for name in in_keys]
    for option in options:
        name, column = _split("--level", option)
        separator = None
        if found := _SPLIT.fullmatch(column):
            column, separator = found["column"], found["separator"]
        level = hierarchy.level(name)
        is_repeated = any(one.level == level.name for one in mapping)
        if (is_repeated or separator is not None) and level.name not in level.under:
            what = "split" if separator is not None else "given twice"
            raise BadInput(f"--level {name} is {what}, but a {level.label} may not stand under a {level.label}.")
        if is_repeated and (mapping[-1].level != level.name or any(one.key == column for one in mapping)):
            raise BadInput(
                f"--level {name} is given again; name each of its columns once, one after the other from the top down."
            )
        if not level.under & {None, *(one.level for one in mapping)}:
            places = ", ".join(sorted(above or "the root" for above in level.under))
            raise BadInput(f"--level {name} is in the wrong position: {level.name} is allowed under {places}.")
        numeric = frozenset(name for name, attribute in level.attributes.items() if attribute.kind in NUMERIC)
        mapping.append(LevelColumns(level.name, column, numeric=numeric, separator=separator))
    if not mapping:
        raise NoLevels(
            f"No column is named like a level of {hierarchy.name}; name the columns of its levels from the root down, "
            'such as --level country="Country" --level city=City.'
        )
    return mapping


def _split_target(option: str, value: str, lacks: str, example: str) -> tuple[str, str, str]:
    """The level, what is named of it, and the column of `level.what=column`."""
    target, column = _split(option, value)
    level, dot, what = target.partition(".")
    if not dot:
        raise BadInput(f"{option} {value} has {lacks}; use {option} {example}.")
    return level, what, column


def _split(option: str, value: str) -> tuple[str, str]:
    left, equals, column = value.partition("=")
    if not (left.strip() and equals and column.strip()):
        raise BadInput(f'{option} {value} has no column; use {option} {left or "city"}="Column".')
    return left.strip(), column.strip()


Reading = Callable[[Path], Iterator[tuple[str, Row | Rejection]]]


@dataclass(frozen=True)
class FileOptions:
    """The options about the content of a file; `header` names the columns of one without a header.

    With `is_open` a table without a column of a level has a format, too, to be described.
    """

    columns: ColumnOptions = field(default_factory=ColumnOptions)
    dialect: Dialect = field(default_factory=Dialect)
    cells: CellFormat = PLAIN
    sheet: str | None = None
    header: tuple[str, ...] = ()
    is_open: bool = False

    @property
    def needs_table(self) -> bool:
        """Whether they are about columns, so that a text file is a table and a list in JSON has rows."""
        return bool(self.columns.is_table or self.header)


@dataclass(frozen=True)
class FileFormat:
    """The format of a file, what was guessed about it, and, of a table, its columns and its rows as texts.

    The header of CSV and Excel is a row. Paths in JSON may be lists of keys. A file that is Clade's own is an export.
    `used` are the columns that are imported; of a table that is `is_guessed` they were found by their names.
    """

    format: Format
    guesses: Sequence[str] = ()
    options: ColumnOptions | None = None
    header: Sequence[str] = ()
    rows: Callable[[], Iterator[Sequence[str]]] | None = None
    has_text_header: bool = False
    has_lists: bool = False
    is_own: bool = False
    is_taxonomy: bool = False
    is_guessed: bool = False
    used: Collection[str] = ()

    @property
    def unused(self) -> list[str]:
        """The columns that are not imported."""
        return [
            column for column in self.header if column and column not in self.used and not column.startswith(REASON)
        ]


def format_of(hierarchy: Hierarchy, file: Path, name: str | None, options: FileOptions) -> FileFormat:
    """The format of this name, by default that of the file's extension. Raises BadInput for options of another one."""
    name = name or _name_of(file, options)
    if name is None:
        raise BadInput(f'Unknown extension of "{file.name}"; add --format with one of {", ".join(formats.NAMES)}.')
    if name != "csv" and options.dialect != Dialect():
        raise BadInput("--delimiter and --encoding need a CSV file; add --format csv if it is one.")
    if name != "excel" and options.sheet is not None:
        raise BadInput("--sheet needs an Excel file; add --format excel if it is one.")
    if name not in ("csv", "excel") and options.header:
        raise BadInput("--columns needs a CSV or Excel file without a header; add --format csv if it is one.")
    if name == "csv":
        return _csv(hierarchy, file, options)
    if name in ("excel", "parquet", "geojson"):
        return _table(hierarchy, name, _read_table(file, name, options), options)
    if name == "json":
        objects = read_objects(file)
        if not is_nodes(objects) or options.needs_table:
            return _table(hierarchy, name, json_table(file, objects), options)
        _refuse_columns(options)
        return FileFormat(Format(lambda _: read_nodes(objects), lambda _: rejected_json()), has_lists=True)
    if name == "jsonl" and (options.columns.is_table or is_table_of_lines(file)):
        return _lines(hierarchy, file, options)
    _refuse_columns(options)
    if name == "jsonl":
        return FileFormat(Format(read_jsonl, lambda _: rejected_json()), has_lists=True)
    level = taxonomy_level(hierarchy)
    return FileFormat(Format(partial(read_taxonomy, level), lambda _: rejected_taxonomy()), is_taxonomy=True)


def _name_of(file: Path, options: FileOptions) -> str | None:
    """The format by the extension of a file; a text file is a taxonomy, or a table by the options or its delimiters."""
    name = formats.name_of(file)
    return "csv" if name == "taxonomy" and (options.needs_table or looks_like_table(file)) else name


def _csv(hierarchy: Hierarchy, file: Path, options: FileOptions) -> FileFormat:
    dialect = replace(options.dialect, header=options.header).resolved(file)
    header = csv_file.csv_header(file, dialect)
    said = [sentence] if (sentence := dialect.sentence(options.dialect)) else []
    rows = _rows(hierarchy, header, options)
    return rows.of(
        lambda file: csv_file.read_records(lambda _: rows.reader(), file, dialect),
        lambda file: csv_file.rejected_csv(file, dialect),
        lambda: csv_file.cell_rows(file, dialect),
        said,
        has_text_header=not options.header,
    )


def _table(hierarchy: Hierarchy, name: str, table: Table, options: FileOptions) -> FileFormat:
    rows = _rows(hierarchy, table.header, options)
    return rows.of(
        lambda _: read_rows(rows.reader(), table),
        lambda _: rejected_table(table.header),
        table.texts,
        has_text_header=name == "excel" and not options.header,
    )


def _lines(hierarchy: Hierarchy, file: Path, options: FileOptions) -> FileFormat:
    """Lines of JSON whose fields are columns."""
    table = lines_table(file)
    rows = _rows(hierarchy, table.header, options)
    return rows.of(
        lambda file: read_table_lines(rows.reader(), table.header, file), lambda _: rejected_json(), table.texts
    )


def items_format(hierarchy: Hierarchy, export: Export, options: FileOptions) -> FileFormat:
    """The format of items of a DynamoDB table, whose attributes are columns."""
    table = items_table(export)
    if options.is_open:
        rows = _Rows(table.header, lambda: CellReader(table.header), (), options.columns)
    else:
        found = options.columns
        found = found if found.is_table else found.merged(match_columns(hierarchy, table.header))
        if not found.is_table:
            raise NoLevels(f"No attribute is named like a level of {hierarchy.name}: {named(table.header)}.")
        rows = _rows(hierarchy, table.header, replace(options, columns=found))
    return rows.of(lambda _: read_items(export, rows.reader(), table.header), lambda _: rejected_items(), table.texts)


@dataclass(frozen=True)
class _Rows:
    """How the cells of a table become rows: by a reader for its header, which has state, so that each run has its own.

    Without `options` the table has a path in each row.
    """

    header: Sequence[str]
    reader: Callable[[], CellReader]
    guesses: Sequence[str] = ()
    options: ColumnOptions | None = None
    tree: TreeColumns | None = None
    is_own: bool = False
    is_guessed: bool = False
    used: Collection[str] = ()

    def of(
        self, read: Reading, rejected: Callable[[Path], RejectedRows], cells: Callable[[], Iterator[Sequence[str]]],
        said: Sequence[str] = (), *, has_text_header: bool = False,
    ) -> FileFormat:  # fmt: skip
        """The format of a table with these rows."""
        has_keys = self.tree is not None and self.tree.key is not None
        form = Format(read, rejected, by_parent=self.tree is not None, has_keys=has_keys)
        if self.options is None:
            return FileFormat(form, said, is_own=self.is_own)
        said = [*said, *self.guesses]
        return FileFormat(
            form, said, self.options, self.header, cells, has_text_header, is_guessed=self.is_guessed, used=self.used
        )


def _rows(hierarchy: Hierarchy, header: Sequence[str], options: FileOptions) -> _Rows:
    given = options.columns
    if given.tree is not None:
        tree = tree_columns(hierarchy, given)
        tree.check(hierarchy, header)
        match_tree(hierarchy, header, tree)
        return _Rows(
            header,
            lambda: ParentRowReader(hierarchy, tree, header, options.cells),
            _values(tree),
            given,
            tree,
            used=tree.used,
        )
    if is_path_table(header) and not given.levels:
        _refuse_columns(options)
        return _Rows(header, lambda: PathRowReader(hierarchy, header), is_own=header == path_header(hierarchy))
    try:
        found, levels, guesses = _columns(hierarchy, header, given)
    except NoLevels:
        if not options.is_open:
            raise
        return _Rows(header, lambda: CellReader(header), (), given)
    used = {column for one in levels for column in (one.key, *one.columns.values(), *one.names.values())}
    reader = partial(RowReader, levels, header, options.cells)
    return _Rows(header, reader, guesses, found, is_guessed=not given.levels, used=used)


def _values(tree: TreeColumns) -> list[str]:
    """What is imported of a tree by parent ids, where that is not given."""
    used = [f"{name} of {column}" for name, column in [("names", tree.name), *tree.attributes.items()] if column]
    return [f"imported: {', '.join(used)}."] if used else []


def _read_table(file: Path, name: str, options: FileOptions) -> Table:
    match name:
        case "excel":
            return excel_table(file, options.sheet, options.header)
        case "parquet":
            return parquet_table(file)
        case _:
            return geojson_table(file, is_lines=content_name(file).lower().endswith(LINE_ENDINGS))


def _columns(
    hierarchy: Hierarchy, header: Sequence[str], given: ColumnOptions
) -> tuple[ColumnOptions, list[LevelColumns], list[str]]:
    """The options with those that follow from the names of the columns, where none of a level is given."""
    found = given if given.levels else given.merged(match_columns(hierarchy, header))
    try:
        levels = columns(hierarchy, found)
    except NoLevels as error:
        raise NoLevels(f"{error} The file has {named(header)}; --describe shows more.") from None
    check_columns(header, levels)
    if given.levels:
        return found, levels, []
    words = " ".join(f"{option} {value}" for option, value in found.pairs())
    return found, levels, [f"columns {words}, by their names; --level sets them."]


def _refuse_columns(options: FileOptions) -> None:
    if any(options.columns.pairs()) or options.cells != PLAIN:
        raise BadInput(
            "--level, --name, --name-in, --id, --attr, --fold-case, --null and --numbers need a table, such as a CSV "
            "file; add --format csv if it is one, or --level or --tree-by for columns of JSON lines."
        )


def cell_format(nulls: Sequence[str], numbers: str | None) -> CellFormat:
    """The format of cells by `--null` and `--numbers`."""
    everywhere = frozenset(null for null in nulls if "=" not in null)
    columns: dict[str, frozenset[str]] = {}
    for null in nulls:
        column, equals, text = null.partition("=")
        if equals:
            columns[column] = columns.get(column, frozenset()) | {text}
    return CellFormat(everywhere, columns, NumberFormat(numbers) if numbers is not None else None)
