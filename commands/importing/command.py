"""`clade import`: the nodes of a file into the store."""

from typing import NamedTuple

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
    KeyNames,
    KeyTemplates,
    Levels,
    Moves,
    Names,
    NamesIn,
    Nulls,
    Numbers,
    Prune,
    ReadUnits,
    Segments,
    Sheet,
    SourceName,
)
from commands.importing.source import Source, source_at
from commands.importing.tables import (
    NO_TEMPLATE,
    SCHEME,
    TableOptions,
    describe_table,
    is_table,
    table_at,
    table_format,
)
from commands.options import HierarchyName, StoreUrl, hierarchy_named
from graph.settings import Settings
from store.errors import BadInput
from store.transfer.formats import Format
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
    key: KeyTemplates = None, keys: KeyNames = None, read_units: ReadUnits = None, segments: Segments = 4,
    format_name: FormatName = None, ignore_unknown: IgnoreUnknown = False, describe: Describe = False,
    dry_run: DryRun = False, prune: Prune = False, moves: Moves = False, allow_rejects: AllowRejects = False,
    store: StoreUrl = None,
) -> None:  # fmt: skip
    """Import the nodes of a file or of a DynamoDB table into the store.

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
    key_names = [name.strip() for name in (keys or "").split(",") if name.strip()]
    table_options = TableOptions(key or [], key_names, read_units, segments)
    plan = ImportPlan(definition, ignore_unknown=ignore_unknown)
    target = ImportTarget(plan, store or Settings().store, prune, moves, dry_run, allow_rejects)
    if is_table(file, table_options):
        _import_table(file, options, table_options, target, describe=describe)
    else:
        _import_file(file, format_name, options, target, describe=describe)


class ImportTarget(NamedTuple):
    """Where an import goes, and how."""

    plan: ImportPlan
    store: str
    prune: bool
    moves: bool
    dry_run: bool
    allow_rejects: bool

    def load(self, source: Source, form: Format) -> None:
        """Import a source and report it; ends the command with status 1 where rows were rejected."""
        job = ImportJob(source, form, self.plan, self.store, self.prune, self.moves, self.dry_run)
        job.run()
        job.report()
        if job.outcome.rejections and not self.allow_rejects:
            raise typer.Exit(EXIT_REJECTED)


def _import_file(
    address: str, format_name: str | None, options: FileOptions, target: ImportTarget, *, describe: bool
) -> None:
    hierarchy = target.plan.hierarchy
    with source_at(address) as source:
        found = format_of(hierarchy, source.file, format_name, options)
        if describe:
            return describe_file(hierarchy.name, address, source, found)
        for guess in found.guesses:
            typer.echo(f"{source.name}: {guess}", err=True)
        target.load(source, found.format)


def _import_table(
    address: str, options: FileOptions, table_options: TableOptions, target: ImportTarget, *, describe: bool
) -> None:
    hierarchy = target.plan.hierarchy
    if options != FileOptions(options.columns):
        raise BadInput("--null, --numbers, --delimiter, --encoding and --sheet are for files, not for DynamoDB tables.")
    if not describe and not table_options.templates:
        raise BadInput(NO_TEMPLATE)
    with table_at(address, table_options, one_page=target.dry_run or describe) as table:
        if describe:
            return describe_table(hierarchy, address, table, table_options)
        if target.prune and (table.export.is_incremental or (target.dry_run and address.startswith(SCHEME))):
            raise BadInput("--prune needs a whole table; this has a part of it.")
        form, reader = table_format(hierarchy, table, options.columns, table_options)
        try:
            target.load(table.source, form)
        finally:
            for sentence in reader.sentences():
                typer.echo(sentence, err=True)


def _cells(nulls: list[str], numbers: str | None) -> CellFormat:
    """The format of cells by `--null` and `--numbers`."""
    everywhere = frozenset(null for null in nulls if "=" not in null)
    columns: dict[str, frozenset[str]] = {}
    for null in nulls:
        column, equals, text = null.partition("=")
        if equals:
            columns[column] = columns.get(column, frozenset()) | {text}
    return CellFormat(everywhere, columns, NumberFormat(numbers) if numbers is not None else None)
