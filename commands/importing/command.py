"""`clade import`: the nodes of a file into the store."""

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
    Yes,
)
from commands.options import HierarchyName, StoreUrl, hierarchy_named, store_url


def import_file(
    hierarchy: HierarchyName, file: SourceName, levels: Levels = None, names: Names = None, names_in: NamesIn = None,
    ids: Ids = None, attributes: Attributes = None, case_insensitive: CaseInsensitive = None, nulls: Nulls = None,
    numbers: Numbers = None, delimiter: Delimiter = None, encoding: Encoding = None, sheet: Sheet = None,
    key: KeyTemplates = None, keys: KeyNames = None, read_units: ReadUnits = None, segments: Segments = 4,
    format_name: FormatName = None, ignore_unknown: IgnoreUnknown = False, describe: Describe = False,
    dry_run: DryRun = False, prune: Prune = False, moves: Moves = False, allow_rejects: AllowRejects = False,
    yes: Yes = False, store: StoreUrl = None,
) -> None:  # fmt: skip
    """Import the nodes of a file or of a DynamoDB table into the store.

    Nodes that the file does not have stay. Importing the same file again changes nothing. Rejected rows are written to
    FILE.rejected.csv, or another extension, with their reasons, and the exit status is 1. That file can be corrected
    and imported with the same options.

    Example: clade import location stores.csv --level country=Country --level city=City --fold-case city
    """
    # With the formats and the transfer, which the help does without.
    from commands.importing.file_format import FileOptions
    from commands.importing.run import ImportTarget, cell_format, run_import
    from commands.importing.tables import TableOptions
    from store.transfer.formats.dialect import Dialect, delimiter_named
    from store.transfer.formats.matching import ColumnOptions
    from store.transfer.rows import ImportPlan

    definition = hierarchy_named(hierarchy)
    columns = ColumnOptions(
        levels or [], names or [], ids or [], attributes or [], case_insensitive or [], names_in or []
    )
    dialect = Dialect(encoding, delimiter_named(delimiter))
    options = FileOptions(columns, dialect, cell_format(nulls or [], numbers), sheet)
    key_names = [name.strip() for name in (keys or "").split(",") if name.strip()]
    table_options = TableOptions(key or [], key_names, read_units, segments)
    plan = ImportPlan(definition, ignore_unknown=ignore_unknown)
    target = ImportTarget(plan, store_url(store), prune, moves, dry_run, allow_rejects, yes)
    run_import(file, format_name, options, table_options, target, describe=describe)
