"""Recognition of files: checks that none is misread, and `--describe`, which proposes a command that it has tried."""

import re
import shlex
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import NamedTuple

import typer

from commands.importing.file_format import FileFormat, FileOptions, cell_format, columns, format_of, items_format
from commands.importing.source import Source
from commands.importing.tables import TableSource
from store.errors import BadInput
from store.model.hierarchy import Hierarchy
from store.text import quantity, shorten
from store.transfer.file_shape import (
    MAX_ROWS,
    NO_PARENT,
    SAMPLE_CHARACTERS,
    SAMPLE_ROWS,
    ParentColumn,
    data_in_header,
    first_rows,
    joined_path,
    parent_column,
)
from store.transfer.formats.files import opened
from store.transfer.formats.lines import SHOWN_BYTES, nested_levels
from store.transfer.formats.matching import ColumnOptions, fold, match_columns
from store.transfer.formats.table_rows import EXAMPLES, NumberFormat
from store.transfer.formats.tree_tables import NAME_COLUMNS, hashed_id
from store.transfer.rows import ImportPlan, Part, Rejection, Row
from store.transfer.tables.items import key_text
from store.transfer.tables.s3_export import Export, first_items, sample_items

PATHS = "columns path, level and name, such as Garden/Mowers,CATEGORY,Lawn mowers"
HEADER_QUESTION = 'The first row of {} looks like data: "{}". Does it name the columns?'
OVERRIDE = "If the file only looks so, --yes imports it as it is."


def check_file(hierarchy: Hierarchy, source: Source, found: FileFormat) -> None:
    """Raise BadInput for a file whose rows would become another tree than it has."""
    check_table_shape(hierarchy, source, found)
    if found.is_taxonomy:
        _refuse_indents(source)
    if not found.is_own and not found.format.by_parent:
        own = columns(hierarchy, found.options) if found.options else []
        split = {one.key for one in own if one.separator is not None}
        rows = (row for _, row in found.format.read(source.file))
        check_keys(source.name, rows, split, only_texts=found.has_lists)


def check_table_shape(hierarchy: Hierarchy, source: Source, found: FileFormat) -> None:
    """Raise BadInput for a table without a header, or with parent ids that no option names."""
    if found.rows is not None and found.options is not None:
        levels = [value.partition("=")[2] for value in found.options.levels]
        if found.has_text_header:
            known = {fold(name) for level in hierarchy.levels.values() for name in (level.name, *level.attributes)}
            if (cell := data_in_header(found.header, found.rows(), known)) is not None:
                _ask_for_header(source.name, cell, len(found.header))
        if not found.format.by_parent:
            _refuse_parents(source.name, parent_column(found.header, found.rows, levels), "add {}")


def check_sample(hierarchy: Hierarchy, source: Source, found: FileFormat, *, enough: int = 1) -> str | None:
    """How many of the first rows would be rejected, and the first reason.

    Raises BadInput for more than half of `enough` rows.
    """
    plan = ImportPlan(hierarchy)
    for row in _placed([row for _, row in islice(found.format.read(source.file), TRIED_ROWS)]):
        plan.take(row)
    if not plan.rejections:
        return None
    first = plan.rejections[0]
    counts = f"{len(plan.rejections):,} of {quantity(plan.rows, 'row')}"
    reason = f"{counts} would be rejected; row {first.number}: {first.reason}"
    if plan.rows >= enough and (not plan.nodes or len(plan.rejections) * 2 > plan.rows):
        raise BadInput(reason)
    return reason


def _refuse_indents(source: Source) -> None:
    """Raise BadInput for a list in which blanks at the beginning of lines say what is below what."""
    with opened(source.file) as content:
        lines = iter(lambda: content.readline(SHOWN_BYTES), b"")
        for line in islice(lines, SAMPLE_ROWS):
            if line[:1] in (b" ", b"\t") and b" > " not in line and line.strip():
                text = shorten(line.decode(errors="replace").strip())
                raise BadInput(
                    f'{source.name} has indented lines, such as "{text}", and indents are not read; write whole paths, '
                    f"such as Garden > Mowers. {OVERRIDE}"
                )


def _ask_for_header(source: str, cell: str, width: int) -> None:
    """Ask on a terminal whether a first row that looks like data names the columns; raises BadInput elsewhere."""
    if sys.stdin.isatty() and sys.stderr.isatty():
        if typer.confirm(HEADER_QUESTION.format(source, shorten(cell)), err=True):
            return
        raise BadInput(f"Name the {width:,} columns of {source} with --columns, such as --columns a,b,c.")
    raise BadInput(
        f'The first row of {source} looks like data: "{shorten(cell)}" is no name of a column, by the rows below; '
        f"name the {width:,} columns with --columns, such as --columns a,b,c. {OVERRIDE}"
    )


def check_table(table: TableSource) -> None:
    """Raise BadInput for a table of DynamoDB whose items refer to their parents by an id that no option names."""
    _refuse_parents(table.source.name, table_parents(table), "use {} instead of --key")


def table_parents(table: TableSource) -> ParentColumn | None:
    """The attribute by which the items of a table refer to their parents."""
    header = list(dict.fromkeys(name for item in sample_items(table.export, SAMPLE_ROWS) for name in item))

    def rows() -> Iterator[list[str]]:
        for item in first_items(table.export, MAX_ROWS):
            yield [key_text(item.get(name)) for name in header]

    return parent_column(header, rows)


def check_keys(
    source: str, rows: Iterable[Row | Rejection], split: Collection[str] = (), *, only_texts: bool = False
) -> None:
    """Raise BadInput for rows in which the keys of a level are whole paths.

    Columns that are `split` have none. With `only_texts` paths that are lists of keys are taken as they are.
    """
    levels: dict[str, tuple[str, set[str]]] = {}
    size = 0
    for row in islice(rows, SAMPLE_ROWS):
        if isinstance(row, Rejection) or (only_texts and isinstance(row.path, list)):
            continue
        size += sum(len(str(key)) for key in row.path)
        if size > SAMPLE_CHARACTERS:
            break
        levels_of = [part.level for part in row.parts] or [""]
        for index, key in enumerate(row.path):
            level = levels_of[max(0, index - len(row.path) + len(levels_of))]
            column = row.columns[index] if index < len(row.columns) else ""
            if column in split:
                continue
            levels.setdefault(level, (column, set()))[1].add(str(key))
    for level, (column, keys) in levels.items():
        if found := joined_path(keys):
            place = f'Column "{column}" of {source}' if column else source
            way_out = f"write a file with the {PATHS}, with / between the keys"
            if column:
                way_out = f"""split it with --level '{level.lower()}={column} split "{found.separator}"'"""
            elif source.endswith(".txt"):
                option = f"""'{level.lower()}=path split "{found.separator}"'"""
                way_out = f"split them with --columns path --level {option}"
            raise BadInput(
                f'{place} has whole paths, such as "{shorten(found.example)}", where a key of one {level} belongs; '
                f"{way_out}. {OVERRIDE}"
            )


def _refuse_parents(source: str, found: ParentColumn | None, way_out: str) -> None:
    if found is not None:
        option = f"--tree-by {shlex.quote(f'id={found.id},parent={found.parent}')}"
        raise BadInput(
            f'{source} is a tree by parent ids: column "{shorten(found.parent)}" has values of "{shorten(found.id)}" '
            f"of other rows; {way_out.format(option)}. {OVERRIDE}"
        )


TRIED_ROWS = 1_000
SHOWN_VALUES = 3
NULLS = ("NULL", "null", "\\N", "N/A", "n/a", "#N/A", "NaN", "nan", "None", "-", "--")


class Description(NamedTuple):
    """A file to describe: its address in the command, the options that are given, and whether checks are overridden.

    With an `export` it is a table of DynamoDB whose attributes are columns.
    """

    hierarchy: Hierarchy
    address: str
    source: Source
    format_name: str | None
    options: FileOptions
    is_confirmed: bool = False
    export: Export | None = None

    def print(self) -> None:
        """Print the columns of a table with values of the first rows, what was guessed, and the proposed command.

        Raises BadInput where no command would import the file, with the reason against the one that is closest.
        """
        opened = self._format(replace(self.options, is_open=True))
        rows = first_rows(opened.header, islice(opened.rows(), TRIED_ROWS)) if opened.rows else []
        refused: BadInput | None = None
        tried: list[ColumnOptions] = []
        for candidate in self._candidates(opened, rows):
            tried.append(candidate)
            try:
                found, words = self._tried(candidate, rows)
            except BadInput as error:
                refused = refused or error
                continue
            self._print_columns(found, rows)
            typer.echo(f"Proposed command:\n  {shlex.join(words)}")
            return
        self._print_columns(opened, rows)
        if not self.is_confirmed and not (tried and tried[0].tree):
            check_table_shape(self.hierarchy, self.source, opened)  # a better reason
        raise refused or BadInput(f"No command imports {self.source.name} as it is.")

    def _format(self, options: FileOptions) -> FileFormat:
        if self.export is not None:
            return items_format(self.hierarchy, self.export, options)
        return format_of(self.hierarchy, self.source.file, self.format_name, options)

    def _candidates(self, opened: FileFormat, rows: Sequence[Sequence[str]]) -> Iterator[ColumnOptions]:
        """Columns that may be what the file means, the most certain first: those that are given, else by values."""
        given = self.options.columns
        if opened.rows is None or given.is_table:
            yield given
            return
        parent = parent_column(opened.header, opened.rows)
        if parent is not None:
            for level in self._tree_levels(opened, rows):
                yield replace(given, tree=f"id={parent.id},parent={parent.parent}{level}")
        for level, column, separator in self._paths(opened, rows):
            option = f'{level}={column} split "{separator}"'
            header = [level if one == column else one for one in opened.header if one == column or fold(one) != level]
            matched = match_columns(self.hierarchy, header, codes=False)
            matched.levels = [option, *(one for one in matched.levels if one != f"{level}={level}")]
            matched.names, matched.ids = ([one for one in found if not one.startswith(f"{level}=")]
                                          for found in (matched.names, matched.ids))  # fmt: skip
            below = [] if len(matched.levels) > 1 else self._items(opened, level)
            for items in (*below, ColumnOptions()):
                yield given.merged(matched.merged(items))
            yield replace(given, levels=[option])
        yield given

    def _tree_levels(self, opened: FileFormat, rows: Sequence[Sequence[str]]) -> list[str]:
        """The parts of `--tree-by` for a column whose values are all names of levels, else for a level of all rows.

        Of several levels that one is first which has most of the columns as attributes.
        """
        levels = {fold(level.label) for level in self.hierarchy.levels.values()}
        for index, column in enumerate(opened.header):
            values = {fold(row[index]) for row in rows if index < len(row)}
            if values and values <= levels:
                return [f",level={column}"]
        header = {fold(column) for column in opened.header}
        nested = nested_levels(self.hierarchy)
        nested.sort(key=lambda level: -len(header & {fold(name) for name in level.attributes}))
        return [f",level={level.label}" for level in nested] if len(nested) > 1 else [""]

    def _items(self, opened: FileFormat, above: str) -> Iterator[ColumnOptions]:
        """Columns of the ids and names of items below a path, such as those of a product feed."""
        columns = {fold(column): column for column in reversed(opened.header)}
        for level in self.hierarchy.levels.values():
            own, lower = fold(level.name), level.name.lower()
            ids = [columns[name] for name in (f"{own}id", "id", "sku", f"{own}code", "code") if name in columns]
            names = [columns[name] for name in (f"{own}name", *NAME_COLUMNS) if name in columns]
            if lower != above and above.upper() in level.under and ids:
                others = [one for one in opened.header if one != ids[0] and fold(one) not in (fold(above), own)]
                matched = match_columns(self.hierarchy, [above, lower, *others])
                attributes = [one for one in matched.attributes if one.startswith(f"{lower}.")]
                yield ColumnOptions([f"{lower}={ids[0]}"], [f"{lower}={one}" for one in names[:1]], [], attributes)

    def _paths(self, opened: FileFormat, rows: Sequence[Sequence[str]]) -> Iterator[tuple[str, str, str]]:
        """Levels in themselves with the columns of paths that may be theirs, and their separators."""
        nested = [level for level in self.hierarchy.levels.values() if level.name in level.under]
        for index, column in enumerate(opened.header if nested else ()):
            values = {row[index].strip() for row in rows if index < len(row)} - {""}
            if (path := joined_path(values)) is not None:
                yield nested[0].name.lower(), column, path.separator

    def _tried(self, columns: ColumnOptions, rows: Sequence[Sequence[str]]) -> tuple[FileFormat, list[str]]:
        """The format with these columns and the command with its words. Raises BadInput where it imports nothing."""
        found = self._format(replace(self.options, columns=columns))
        more = _cell_options(found, rows)
        if more:
            nulls = [word for option, word in pairwise(more) if option == "--null"]
            numbers = next((word for option, word in pairwise(more) if option == "--numbers"), None)
            cells = cell_format(nulls, numbers)
            found = self._format(replace(self.options, columns=columns, cells=cells))
        if not self.is_confirmed:
            check_file(self.hierarchy, self.source, found)
        if (reason := check_sample(self.hierarchy, self.source, found)) is not None:
            typer.echo(f"{self.source.name}: {reason}")
        return found, [*self._words(), *[word for pair in (found.options or columns).pairs() for word in pair], *more]

    def _words(self) -> list[str]:
        words = ["clade", "import", self.hierarchy.name, self.address]
        given = (("--format", self.format_name), ("--sheet", self.options.sheet))
        words += [word for option, value in given if value is not None for word in (option, value)]
        return [*words, *(["--columns", ",".join(self.options.header)] if self.options.header else [])]

    def _print_columns(self, found: FileFormat, rows: Sequence[Sequence[str]]) -> None:
        for guess in found.guesses:
            typer.echo(f"{self.source.name}: {guess}")
        for index, column in enumerate(found.header):
            values = dict.fromkeys(row[index] for row in rows if index < len(row) and row[index])
            shown = ", ".join(shorten(value, 30) for value in list(values)[:SHOWN_VALUES])
            typer.echo(f"  {column}: {shown or 'no values'}{'' if column in found.used else ' (not imported)'}")


def _placed(rows: Sequence[Row | Rejection]) -> Iterator[Row | Rejection]:
    """The rows of a sample; those by parent ids, whose paths need all rows, below a node of their parent's level."""
    levels = {str(row.path[0]): row.parts[0].level for row in rows if isinstance(row, Row) and row.parent is not None}
    for row in rows:
        if isinstance(row, Row) and row.parent is not None:
            own, parent = str(row.path[0]), row.parent
            above = [Part(levels[parent])] if parent in levels and parent != own else []
            is_root = parent == own or (parent not in levels and parent.casefold() in NO_PARENT)
            place = [] if is_root else ["-", *(hashed_id(parent) for _ in above)]
            row = row._replace(path=[*place, hashed_id(own)], parts=[*above, *row.parts], parent=None)
        yield row


def _cell_options(found: FileFormat, rows: Sequence[Sequence[str]]) -> list[str]:
    """`--null` and `--numbers`, where the sample has such cells in columns of attributes."""
    if found.options is None:
        return []
    named = {value.partition("=")[2] for value in found.options.attributes}
    columns = named or ({*found.used} if found.options.tree else set())
    indexes = [index for index, column in enumerate(found.header) if column in columns]
    cells = [(found.header[index], row[index].strip()) for row in rows for index in indexes if index < len(row)]
    nulls = dict.fromkeys(f"{column}={cell}" for column, cell in cells if cell in NULLS)
    words = [word for null in nulls for word in ("--null", null)]
    numbers = [cell for _, cell in cells if re.fullmatch(r"[+-]?\d[\d.,' \u00a0\u202f]*", cell)]
    if any(not re.fullmatch(r"[+-]?\d+(\.\d+)?", cell) for cell in numbers):
        fitting = [example for example in EXAMPLES if all(_fits(example, cell) for cell in numbers)]
        words += ["--numbers", fitting[0]] if fitting else []
    return words


def _fits(example: str, cell: str) -> bool:
    try:
        NumberFormat(example).plain(cell)
    except BadInput:
        return False
    return True
