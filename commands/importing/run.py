"""Imports of files and of DynamoDB tables: from a source with its options to an import job."""

from collections.abc import Sequence
from pathlib import Path

import typer

from commands import interrupt
from commands.importing.describe import describe_file
from commands.importing.file_format import FileOptions, format_of
from commands.importing.job import ImportJob
from commands.importing.misread import check_file, check_keys, check_table
from commands.importing.source import source_at
from commands.importing.tables import (
    NO_TEMPLATE,
    SCHEME,
    TableOptions,
    describe_table,
    is_table,
    item_columns,
    table_at,
    table_format,
)
from store.connect import DynamoDBUrl, opened
from store.errors import BadInput
from store.transfer.formats.columns import CellFormat
from store.transfer.formats.source import NumberFormat
from store.transfer.tables.scan import find_export


def run_import(
    address: str, name: str | None, options: FileOptions, table_options: TableOptions, job: ImportJob, *,
    describe: bool,
) -> None:  # fmt: skip
    """Import the file or the table at an address, or only describe it; `name` is that of the file's format."""
    if is_table(address, table_options):
        _import_table(address, options, table_options, job, describe=describe)
    else:
        _import_file(address, name, options, job, describe=describe)


def _import_file(
    address: str, format_name: str | None, options: FileOptions, job: ImportJob, *, describe: bool
) -> None:
    hierarchy = job.plan.hierarchy
    with source_at(address) as source:
        found = format_of(hierarchy, source.file, format_name, options)

        def check() -> None:
            if not job.is_confirmed:
                check_file(hierarchy, source, found)

        if describe:
            return describe_file(hierarchy.name, address, source, found, check)
        for guess in found.guesses:
            typer.echo(f"{source.name}: {guess}", err=True)
        check()
        job.run(source, found.format)


def _import_table(
    address: str, options: FileOptions, table_options: TableOptions, job: ImportJob, *, describe: bool
) -> None:
    hierarchy = job.plan.hierarchy
    if options != FileOptions(options.columns):
        raise BadInput("--null, --numbers, --delimiter, --encoding and --sheet are for files, not for DynamoDB tables.")
    if not describe:
        if not table_options.templates:
            if not address.startswith(SCHEME):
                find_export(Path(address))  # a folder that has none needs no template
            raise BadInput(NO_TEMPLATE)
        templates, columns = item_columns(hierarchy, options.columns, table_options)
        if address.startswith(SCHEME) and not job.dry_run:
            DynamoDBUrl.parse(address.removeprefix(SCHEME))  # so that a wrong address leaves no store behind
            interrupt.run(_find_store(job.url))
    with table_at(address, table_options, one_page=job.dry_run or describe) as table:

        def check() -> None:
            if not job.is_confirmed:
                check_table(table)

        if describe:
            return describe_table(hierarchy, address, table, table_options, check)
        if job.prune and (table.export.is_incremental or (job.dry_run and address.startswith(SCHEME))):
            raise BadInput("--prune needs a whole table; this has a part of it.")
        form, reader = table_format(hierarchy, table, templates, columns)
        check()
        if not job.is_confirmed:
            check_keys(table.source.name, (row for _, row in form.read()))
        try:
            job.run(table.source, form)
        finally:
            for sentence in reader.sentences():
                typer.echo(sentence, err=True)


async def _find_store(url: str) -> None:
    """Raise NoTable or Unavailable where there is no store, before a scan costs read units."""
    async with opened(url, make=True):
        pass


def cell_format(nulls: Sequence[str], numbers: str | None) -> CellFormat:
    """The format of cells by `--null` and `--numbers`."""
    everywhere = frozenset(null for null in nulls if "=" not in null)
    columns: dict[str, frozenset[str]] = {}
    for null in nulls:
        column, equals, text = null.partition("=")
        if equals:
            columns[column] = columns.get(column, frozenset()) | {text}
    return CellFormat(everywhere, columns, NumberFormat(numbers) if numbers is not None else None)
