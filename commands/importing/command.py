"""`clade import`: the nodes of a file into the store."""

import typer

from commands.importing.describe import describe_file
from commands.importing.file_format import FileOptions, format_of
from commands.importing.job import ImportJob
from commands.importing.options import (
    AllowRejects,
    Attributes,
    CaseInsensitive,
    Delimiter,
    Describe,
    DryRun,
    Encoding,
    FormatName,
    Ids,
    IgnoreUnknown,
    Levels,
    Moves,
    Names,
    NamesIn,
    Nulls,
    Numbers,
    Prune,
    Sheet,
    SourceName,
)
from commands.importing.source import source_at
from commands.options import HierarchyName, StoreUrl, hierarchy_named
from graph.settings import Settings
from store.transfer.formats.dialect import Dialect, delimiter_named
from store.transfer.formats.matching import ColumnOptions
from store.transfer.formats.numbers import NumberFormat
from store.transfer.formats.row_reader import CellFormat
from store.transfer.rows import ImportPlan

EXIT_REJECTED = 1


def import_file(
    hierarchy: HierarchyName, file: SourceName, levels: Levels = None, names: Names = None, names_in: NamesIn = None,
    ids: Ids = None, attributes: Attributes = None, case_insensitive: CaseInsensitive = None, nulls: Nulls = None,
    numbers: Numbers = None, delimiter: Delimiter = None, encoding: Encoding = None, sheet: Sheet = None,
    format_name: FormatName = None, ignore_unknown: IgnoreUnknown = False, describe: Describe = False,
    dry_run: DryRun = False, prune: Prune = False, moves: Moves = False, allow_rejects: AllowRejects = False,
    store: StoreUrl = None,
) -> None:  # fmt: skip
    """Import the nodes of a file into the store.

    Nodes that the file does not have stay. Importing the same file again changes nothing. Rejected rows are written to
    FILE.rejected.csv, or another extension, with their reasons, and the exit status is 1. That file can be corrected
    and imported with the same options.

    Example: clade import location stores.csv --level country=Country --level city=City --fold-case city
    """
    definition = hierarchy_named(hierarchy)
    columns = ColumnOptions(
        levels or [], names or [], ids or [], attributes or [], case_insensitive or [], names_in or []
    )
    options = FileOptions(columns, Dialect(encoding, delimiter_named(delimiter)), _cells(nulls or [], numbers), sheet)
    with source_at(file) as source:
        found = format_of(definition, source.file, format_name, options)
        if describe:
            return describe_file(hierarchy, file, source, found, options)
        for guess in found.guesses:
            typer.echo(f"{source.name}: {guess}", err=True)
        plan = ImportPlan(definition, ignore_unknown=ignore_unknown)
        job = ImportJob(source, found.format, plan, store or Settings().store, prune, moves, dry_run)
        job.run()
        job.report()
        if job.outcome.rejections and not allow_rejects:
            raise typer.Exit(EXIT_REJECTED)


def _cells(nulls: list[str], numbers: str | None) -> CellFormat:
    """The format of cells by `--null` and `--numbers`."""
    everywhere = frozenset(null for null in nulls if "=" not in null)
    columns: dict[str, frozenset[str]] = {}
    for null in nulls:
        column, equals, text = null.partition("=")
        if equals:
            columns[column] = columns.get(column, frozenset()) | {text}
    return CellFormat(everywhere, columns, NumberFormat(numbers) if numbers is not None else None)
