"""Checks of a file before it is imported: files that would become another tree than a person sees in them are doubts.
`--describe` proposes a command that has passed these checks and a trial of the first rows.
"""

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import typer

from commands.importing.files import FileFormat, FileOptions, NoLevels, Source, cell_format, format_of
from store.errors import BadInput, quantity, shorten
from store.model.hierarchy import Hierarchy, may_stand
from store.transfer.formats.columns import PLAIN, CellFormat, ColumnOptions, fold
from store.transfer.formats.shapes import (
    MAX_ROWS,
    SAMPLE_CHARACTERS,
    SAMPLE_ROWS,
    Rows,
    data_in_header,
    first_of_group,
    first_rows,
    joined_path,
    nested_keys,
    outlined,
    parent_column,
)
from store.transfer.formats.source import EXAMPLES, JSON_REASON, Doubt, Format, Guess, NumberFormat
from store.transfer.formats.tables import Table
from store.transfer.rows import ImportPlan, Rejection, Row
from store.transfer.tables.items import key_text
from store.transfer.tables.left_out import LeftOut
from store.transfer.tables.proposals import are_ids
from store.transfer.tables.scan import Export, first_items

_CODES = re.compile("code|kod|^(id|key|nr|no|num|number|nummer|numer|notation)$")  # folded names of columns
_DEPTH = re.compile("1?[0-9]")
DEPTHS = frozenset(("level", "lvl", "ebene", "niveau", "nivel", "livello", "stufe", "indent"))
DITTO = frozenset(("-", "–", "〃", '"', '""', "''", "do.", "dto.", "ditto", "idem"))
PATHS = "columns path, level and name, such as Garden/Mowers,CATEGORY,Lawn mowers"


def check_file(
    hierarchy: Hierarchy, source: Source, found: FileFormat, options: FileOptions, *, ignore_unknown: bool = False
) -> None:
    """Raise Doubt for a file whose rows would become another tree than it has, unless this guess is taken.

    Raises BadInput for a table of paths with columns that have no place, unless they are to be ignored.
    """
    if found.is_own or options.tree:
        return
    taken = options.taken
    if (table := found.table) is not None:
        rows = first_rows(table.header, table.texts())
        if found.has_text_header and Guess.HEADER not in taken:
            _check_header(hierarchy, source.name, table.header, rows)
        if not found.keys:
            _check_paths(hierarchy, source.name, found, table, rows, taken, ignore_unknown=ignore_unknown)
        elif Guess.SHAPE not in taken:
            if not any(level.paths for level in found.levels):
                _refuse_parents(source.name, table.header, table.texts, found.keys)
                if len(found.keys) == 1:
                    _check_flat(source.name, table.header, rows, found.keys[0])
            _check_groups(hierarchy, source.name, found, table, rows, options)
    if Guess.SHAPE not in taken:
        check_keys(source.name, (row for _, row in found.format.read()), only_texts=found.has_lists)


def check_unmatched(hierarchy: Hierarchy, source: Source, table: Table, taken: Collection[Guess]) -> None:
    """Raise Doubt for a table without a column of a level that has no header, or that is a tree by parent ids."""
    if Guess.HEADER not in taken:
        _check_header(hierarchy, source.name, table.header, first_rows(table.header, table.texts()))
    if Guess.SHAPE not in taken:
        _refuse_parents(source.name, table.header, table.texts)


def check_table(name: str, export: Export, left_out: LeftOut) -> None:
    """Raise Doubt for a table of DynamoDB whose items refer to their parents by an id."""
    header = list(dict.fromkeys(column for item in first_items(export, SAMPLE_ROWS, left_out) for column in item))

    def rows() -> Iterator[list[str]]:
        for item in first_items(export, MAX_ROWS, left_out):
            yield [key_text(item.get(column)) for column in header]

    _refuse_parents(name, header, rows)


def check_keys(source: str, rows: Iterable[Row | Rejection], *, only_texts: bool = False) -> None:
    """Raise Doubt for rows in which the keys of a level are whole paths, or codes that begin with other ones.

    With `only_texts` paths that are lists of keys are taken as they are.
    """
    levels: dict[str, tuple[str, set[str]]] = {}
    of_paths: set[str] = set()  # columns whose cells are split
    roots: list[str] = []
    codes: list[str] = []  # of the roots: their ids, or their keys
    is_flat, has_columns, size = True, False, 0
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
            levels.setdefault(level, (column, set()))[1].add(str(key))
            if column and index and column == row.columns[index - 1]:
                of_paths.add(column)
        roots.append(str(row.path[0]))
        is_flat = is_flat and len(row.path) == 1 and bool(row.parts)
        has_columns = has_columns or bool(row.columns)
        if row.parts:
            codes.append(str(row.parts[0].id or roots[-1]) if len(row.path) == 1 else roots[-1])
    for level, (column, keys) in levels.items():
        place = f'Column "{column}" of {source}' if column else source
        if broken := next((key for key in keys if "\ufffd" in key), None):
            raise Doubt(Guess.ENCODING, f'{place} has broken characters, such as "{shorten(broken)}"; mend the file.')
        if column not in of_paths and (example := joined_path(keys)):
            raise Doubt(
                Guess.SHAPE,
                f'{place} has whole paths, such as "{shorten(example)}", where a key of one {level} belongs; '
                f"write a file with the {PATHS}, with / between the keys.",
            )
    if is_flat or (has_columns and not of_paths):  # paths are written as they are meant, unless all are roots
        _refuse_codes(source, {*codes})
    if is_flat:
        _refuse_codes(source, {code.partition(" ")[0] for code in codes})
        _refuse_outline(source, roots)


def _refuse_codes(place: str, codes: Collection[str]) -> None:
    if nested := nested_keys(codes):
        raise Doubt(
            Guess.SHAPE,
            f'{place} looks like a tree by codes: most begin with another one, such as "{shorten(nested[0])}" with '
            f'"{shorten(nested[1])}", and all would become siblings; write a file with the {PATHS}.',
        )


def _refuse_outline(place: str, texts: Sequence[str]) -> None:
    if (example := outlined(texts)) is not None:
        raise Doubt(
            Guess.SHAPE,
            f"{place} is an outline: {shorten(example)!r} begins with blanks or signs that may show its depth, and all "
            f"would become siblings; write a file with the {PATHS}.",
        )


def _check_flat(source: str, header: Sequence[str], rows: Sequence[Sequence[str]], key: str) -> None:
    """Raise Doubt for a table of roots whose tree is in another column, or in the blanks before the keys."""
    for index, column in enumerate(header):
        values = [row[index] for row in rows]
        place = f'Column "{shorten(column)}" of {source}'
        if column == key:
            _refuse_outline(place, values)
        elif _CODES.search(fold(column)) and len({*values}) == len(values):
            _refuse_codes(place, values)
        elif fold(column) in DEPTHS and len({*values}) > 1 and all(map(_DEPTH.fullmatch, values)):
            raise Doubt(
                Guess.SHAPE,
                f"{place} seems to have the depths of nodes, which are in their order below one another, and all would "
                f"become siblings; write a file with the {PATHS}.",
            )


def _check_header(hierarchy: Hierarchy, source: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    known = {fold(name) for level in hierarchy.levels.values() for name in (level.name, *level.attributes)}
    if (cell := data_in_header(header, rows, known)) is not None:
        raise Doubt(
            Guess.HEADER,
            f'The first row of {source} looks like data: "{shorten(cell)}" is no name of a column, by the rows below; '
            f"--columns names the {len(header):,} columns of a file without a header, such as --columns a,b,c.",
        )


def _refuse_parents(source: str, header: Sequence[str], rows: Rows, levels: Collection[str] = ()) -> None:
    if (found := parent_column(header, rows, levels)) is not None:
        parent, own = map(shorten, found)
        raise Doubt(
            Guess.SHAPE,
            f'{source} is a tree by parent ids: column "{parent}" has values of "{own}" '
            f"of other rows. Such trees are not imported; write a file with the {PATHS}.",
        )


def _check_paths(
    hierarchy: Hierarchy, source: str, found: FileFormat, table: Table, rows: Sequence[Sequence[str]],
    taken: Collection[Guess], *, ignore_unknown: bool,
) -> None:  # fmt: skip
    """Raise for a table whose columns are called path and level and mean something else, or that has other columns."""
    index = table.header.index("level")
    levels = [row[index].strip() for row in rows if len(row) > index]
    if levels and not any(map(hierarchy.find, levels)):
        if Guess.SHAPE not in taken:
            _refuse_parents(source, table.header, table.texts)
        raise BadInput(
            f'Column "level" of {source} has no level of {hierarchy.name}, such as "{shorten(levels[0])}"; the levels '
            f"are {', '.join(hierarchy.levels)}. Columns of other names are imported with --level."
        )
    known = found.places(hierarchy)
    for index, column in enumerate(table.header) if not ignore_unknown else ():
        is_known = column in known or column.startswith(JSON_REASON)
        if not is_known and any(len(row) > index and row[index].strip() for row in rows):
            level = hierarchy.levels[next(iter(hierarchy.levels))].name.lower()
            raise BadInput(
                f'Column "{shorten(column)}" of {source} is no attribute of a level of {hierarchy.name}; '
                f"{shlex.join(['--attr', f'{level}.ATTRIBUTE={column}'])} or "
                f"{shlex.join(['--name-in', f'{level}.LANGUAGE={column}'])} gives it a place, --ignore-unknown leaves "
                "it out."
            )


def _check_groups(
    hierarchy: Hierarchy, source: str, found: FileFormat, table: Table, rows: Sequence[Sequence[str]],
    options: FileOptions,
) -> None:  # fmt: skip
    cells, used = options.cells, found.places(hierarchy)
    filled, is_given = cells.fill_down, bool(options.columns.levels)
    if merged := [column for column in table.merged if column in used and column not in filled]:
        option = shlex.join(word for column in merged for word in ("--fill-down", column))
        raise Doubt(
            Guess.SHAPE,
            f'Column "{shorten(merged[0])}" of {source} has merged cells, and only the first of the merged ones has a '
            f"value; {option} gives it to all of them.",
        )
    for column in found.keys:
        values = {row[table.header.index(column)].strip() for row in rows}
        if is_given and column == found.keys[-1] and values == {""}:
            raise Doubt(Guess.SHAPE, f'Column "{shorten(column)}" of {source} has no values; leave its --level out.')
        if column != found.keys[-1] and (ditto := (values & DITTO) - cells.nulls_in(column)):
            null = shlex.join(["--null", f"{column}={min(ditto)}"])
            raise Doubt(
                Guess.SHAPE,
                f'Column "{shorten(column)}" of {source} has {shorten(min(ditto))} as a key; {null} takes it as no '
                f"value, and with --fill-down {shlex.quote(column)} it is the value above.",
            )
    levels: dict[str | None, str | None] = {one.key: one.level for one in found.levels} | {None: None}
    group = first_of_group(
        table.header,
        rows,
        [key for key in found.keys if key not in filled],
        lambda below, above: may_stand(hierarchy, levels[below] or "", levels[above]),
    )
    if group is not None:
        column, below, above = group
        raise Doubt(
            Guess.SHAPE,
            f'Column "{shorten(column)}" of {source} has values only in the first rows of groups: '
            f'"{shorten(below)}" stands below the row of "{shorten(above)}", and would skip this level; '
            f"--fill-down {shlex.quote(column)} gives empty cells the value above. Where such rows have "
            "none, --yes imports them so.",
        )


DESCRIBED_ROWS = 1_000
SHOWN_VALUES = 3
SHOWN_COLUMNS = 60
NULLS = ("NULL", "null", "\\N", "N/A", "n/a", "#N/A", "NaN", "nan", "None", "-", "--")


def describe_columns(table: Table, places: Mapping[str, str]) -> None:
    """Print the columns of a table with values of the first rows, and what becomes of them."""
    header = table.header
    sample = first_rows(header, islice(table.texts(), DESCRIBED_ROWS))
    if len(header) > SHOWN_COLUMNS:
        typer.echo(f"  {len(header):,} columns, the first {SHOWN_COLUMNS}:")
    for index, column in enumerate(header[:SHOWN_COLUMNS]):
        values = dict.fromkeys(row[index] for row in sample if index < len(row) and row[index])
        shown = ", ".join(shorten(value, 30) for value in list(values)[:SHOWN_VALUES])
        typer.echo(f"  {column}: {shown or 'no values'} ({places.get(column, 'not imported')})")


def describe_file(
    plan: ImportPlan, address: str, source: Source, format_name: str | None, options: FileOptions
) -> None:
    """Print the columns of a file, what was guessed, and a command that has passed the checks and a trial with a plan.

    Raises BadInput for a file that no command would import.
    """
    hierarchy = plan.hierarchy
    options = replace(options, taken={*options.taken, Guess.ENCODING})
    words = ["clade", "import", hierarchy.name, address, *(["--format", format_name] if format_name else [])]
    try:
        found = format_of(hierarchy, source.file, format_name, options)
    except NoLevels as error:
        describe_columns(error.table, {})
        check_unmatched(hierarchy, source, error.table, options.taken)
        raise
    for guess in found.guesses:
        typer.echo(f"{source.name}: {guess}")
    if (table := found.table) is not None:
        describe_columns(table, found.places(hierarchy))
        rows = first_rows(table.header, islice(table.texts(), DESCRIBED_ROWS))
        if not options.columns.levels:
            _refuse_ids(source.name, found.keys, table.header, rows)
        if found.keys and options.cells == PLAIN:
            options = replace(options, cells=_cells_of(found.options, table.header, rows))
            found = format_of(hierarchy, source.file, format_name, options)
    check_file(hierarchy, source, found, options, ignore_unknown=plan.ignore_unknown)
    if sentence := check_sample(plan, source.name, found.format):
        typer.echo(sentence)
    words += [*found.words, *(word for pair in found.options.pairs() for word in pair), *options.words()]
    words += ["--ignore-unknown"] if plan.ignore_unknown else []
    words += ["--level-ids"] if plan.level_ids else []
    words += ["--create-parents"] if plan.create_parents else []
    words += ["--yes"] if Guess.SHAPE in options.taken else []
    typer.echo(f"Proposed command:\n  {shlex.join(words)}")


def check_sample(plan: ImportPlan, source: str, form: Format, enough: int = 1) -> str | None:
    """How many of the first rows would be rejected, and the first reason; None if none. The rows are added to the plan.

    Raises Doubt where these are more than half of at least `enough` rows: the columns are not what they are taken for.
    """
    for row in islice(form.rows(), DESCRIBED_ROWS):
        plan.take(row)
    plan.check_ids()
    rejections = [one for part in (plan, *plan.versions.values()) for one in part.rejections]
    if not rejections:
        return None
    first = rejections[0]
    rows = f"{len(rejections):,} of the first {quantity(plan.rows, 'row')}"
    sentence = f"{rows} of {source} would be rejected; row {first.number}: {first.reason}"
    if plan.rows >= enough and len(rejections) * 2 > plan.rows:
        raise Doubt(Guess.SHAPE, sentence)
    return sentence


def _refuse_ids(source: str, keys: Sequence[str], header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Raise BadInput where a column that is named like a level has ids, which no proposed command takes for keys."""
    for column in keys:
        values = [cell for row in rows if (cell := row[header.index(column)].strip())]
        if len(values) > 1 and are_ids(values):
            raise BadInput(
                f'Column "{shorten(column)}" of {source} has ids, such as {shorten(values[0])}, and no keys; name the '
                "columns of keys with --level."
            )


def _cells_of(options: ColumnOptions, header: Sequence[str], rows: Sequence[Sequence[str]]) -> CellFormat:
    """The format of cells, where the sample has such cells in columns of attributes."""
    columns = {value.partition("=")[2] for value in options.attributes}
    indexes = [index for index, column in enumerate(header) if column in columns]
    cells = [(header[index], row[index].strip()) for row in rows for index in indexes if index < len(row)]
    nulls = [f"{column}={cell}" for column, cell in cells if cell in NULLS]
    numbers = [cell for _, cell in cells if re.fullmatch(r"[+-]?\d[\d.,' \u00a0\u202f]*", cell)]
    if any(not re.fullmatch(r"[+-]?\d+(\.\d+)?", cell) for cell in numbers):
        fitting = [example for example in EXAMPLES if all(_fits(example, cell) for cell in numbers)]
        return cell_format(nulls, next(iter(fitting), None))
    return cell_format(nulls, None)


def _fits(example: str, cell: str) -> bool:
    try:
        NumberFormat(example).plain(cell)
    except BadInput:
        return False
    return True
