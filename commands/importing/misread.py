"""Checks of files that an import would misread: trees by parent id, paths in one column, no header."""

from collections.abc import Iterable, Iterator
from itertools import islice

from commands.importing.file_format import FileFormat
from commands.importing.source import Source
from commands.importing.tables import TableSource
from store.errors import BadInput, shorten
from store.model.hierarchy import Hierarchy
from store.transfer.formats.columns import fold
from store.transfer.formats.shapes import (
    MAX_ROWS,
    SAMPLE_CHARACTERS,
    SAMPLE_ROWS,
    ParentColumn,
    data_in_header,
    joined_path,
    parent_column,
)
from store.transfer.rows import Rejection, Row
from store.transfer.tables.items import key_text
from store.transfer.tables.scan import first_items, sample_items

PATHS = "columns path, level and name, such as Garden/Mowers,CATEGORY,Lawn mowers"
OVERRIDE = "If the file only looks so, --yes imports it as it is."


def check_file(hierarchy: Hierarchy, source: Source, found: FileFormat) -> None:
    """Raise BadInput for a file whose rows would become another tree than it has."""
    if found.rows is not None and found.options is not None:
        levels = [value.partition("=")[2] for value in found.options.levels]
        if found.has_text_header:
            known = {fold(name) for level in hierarchy.levels.values() for name in (level.name, *level.attributes)}
            if (cell := data_in_header(found.header, found.rows(), known)) is not None:
                raise BadInput(
                    f'The first row of {source.name} looks like data: "{shorten(cell)}" is no name of a column, by the '
                    f"rows below; add a line above it that names the columns. {OVERRIDE}"
                )
        _refuse_parents(source.name, parent_column(found.header, found.rows, levels))
    if not found.is_own:
        check_keys(source.name, (row for _, row in found.format.read()), only_texts=found.has_lists)


def check_table(table: TableSource) -> None:
    """Raise BadInput for a table of DynamoDB whose items refer to their parents by an id."""
    header = list(dict.fromkeys(name for item in sample_items(table.export, SAMPLE_ROWS) for name in item))

    def rows() -> Iterator[list[str]]:
        for item in first_items(table.export, MAX_ROWS):
            yield [key_text(item.get(name)) for name in header]

    _refuse_parents(table.source.name, parent_column(header, rows))


def check_keys(source: str, rows: Iterable[Row | Rejection], *, only_texts: bool = False) -> None:
    """Raise BadInput for rows in which the keys of a level are whole paths.

    With `only_texts` paths that are lists of keys are taken as they are.
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
            levels.setdefault(level, (column, set()))[1].add(str(key))
    for level, (column, keys) in levels.items():
        if found := joined_path(keys):
            place = f'Column "{column}" of {source}' if column else source
            raise BadInput(
                f'{place} has whole paths, such as "{shorten(found.example)}", where a key of one {level} belongs; '
                f"write a file with the {PATHS}, with / between the keys. {OVERRIDE}"
            )


def _refuse_parents(source: str, found: ParentColumn | None) -> None:
    if found is not None:
        raise BadInput(
            f'{source} is a tree by parent ids: column "{shorten(found.parent)}" has values of "{shorten(found.id)}" '
            f"of other rows. Such trees are not imported; write a file with the {PATHS}. {OVERRIDE}"
        )
