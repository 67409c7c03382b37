"""`clade import`: its arguments and options, and the nodes of a file into the store."""

import csv
from typing import Annotated, Literal

import typer

from commands.common import HierarchyName, StoreUrl, hierarchy_named, store_url
from commands.output import AsJson
from store.errors import BadInput

SourceName = Annotated[
    str,
    typer.Argument(
        help="File to import, such as stores.csv, .xlsx or .jsonl.gz; - for the standard input; "
        "a table such as dynamodb://ProductCatalog?region=eu-west-1; a folder of an export of a table to S3.",
        metavar="FILE",
    ),
]
Levels = Annotated[
    list[str] | None,
    typer.Option(
        "--level",
        help="Table: column of a level, such as city=City; repeatable, from the root down, also for one level. "
        '\'category=Path split " > "\' for paths, with each "|" for several in a cell. By default columns are '
        "matched by their names.",
    ),
]
TreeParts = Annotated[
    str | None,
    typer.Option(
        "--tree-by",
        help="How the file says its tree where levels have no columns: id=ID,parent=PARENT, prefix=CODE, depth=COLUMN "
        "or indent=COLUMN of a table, each also with key=COLUMN and level=COLUMN; indent of a text; children=NAME of "
        "JSON, also with key=NAME, name=NAME and id=NAME.",
    ),
]
Names = Annotated[
    list[str] | None, typer.Option("--name", help="Table: column of names, such as city=City; the key by default.")
]
NamesIn = Annotated[
    list[str] | None,
    typer.Option("--name-in", help="Table: column of names in a language, such as city.de=Stadt; repeatable."),
]
Ids = Annotated[
    list[str] | None, typer.Option("--id", help="Table: column of ids, such as city=Id; made from paths by default.")
]
LevelIds = Annotated[
    bool,
    typer.Option(
        "--level-ids",
        help="Ids of the file are unique within a level only: each gets its level before it, such as city-30.",
    ),
]
NamesOnly = Annotated[
    str | None,
    typer.Option(
        "--names-only",
        help="Add the names of the file in a language, such as de, to the stored nodes of its ids, and nothing else.",
        metavar="LANGUAGE",
    ),
]
Attributes = Annotated[
    list[str] | None,
    typer.Option("--attr", help="Table: column of an attribute, such as store.street=Street; repeatable."),
]
CaseInsensitive = Annotated[
    list[str] | None,
    typer.Option(
        "--fold-case", help="Table: level whose keys ignore case, such as city: OMAHA and Omaha are one node."
    ),
]
Nulls = Annotated[
    list[str] | None,
    typer.Option(
        "--null",
        help="Table: text that means no value, in all columns (NULL) or in one (Population=NA); repeatable.",
    ),
]
Numbers = Annotated[
    str | None,
    typer.Option(
        "--numbers",
        help='Table: format of numbers by an example: "1,234.56", "1.234,56", "1 234,56" or "1\'234.56"; by default '
        "without thousands separators.",
    ),
]
FillDown = Annotated[
    list[str] | None,
    typer.Option(
        "--fill-down",
        help="Table: column whose empty cells have the value above, as merged cells of Excel have; repeatable.",
    ),
]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", help="CSV: character between columns, or tab; detected by default.")
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding", help="CSV, taxonomy: encoding, such as cp1251 or utf-16; UTF-8 and marked UTF-16 by default."
    ),
]
Quote = Annotated[
    str | None,
    typer.Option(
        "--quote",
        help="CSV: '\"' for cells in quotes, none for quotes that are text; detected by default.",
    ),
]
HeaderRow = Annotated[
    int | None,
    typer.Option(
        "--header-row",
        help="CSV, Excel: number of the line that names the columns; those above it are skipped. The first by default.",
        min=1,
    ),
]
ColumnNames = Annotated[
    str | None,
    typer.Option(
        "--columns", help="CSV, Excel: names of the columns of a file without a header, such as Country,City."
    ),
]
Sheet = Annotated[str | None, typer.Option("--sheet", help="Excel: name of the sheet; the first by default.")]
FormatName = Annotated[
    Literal["csv", "jsonl", "taxonomy", "excel", "parquet", "json", "geojson"] | None,
    typer.Option("--format", help="File format; from the file's extension by default."),
]
KeyTemplates = Annotated[
    list[str] | None,
    typer.Option(
        "--key",
        help='DynamoDB: levels in the keys, such as "CATEGORY#{category} / PRODUCT#{product}[#VARIANT#{variant}]"; '
        "repeatable, the first that matches is used.",
    ),
]
KeyNames = Annotated[
    str | None,
    typer.Option("--keys", help="DynamoDB export: names of the key attributes, such as PK,SK; detected by default."),
]
ReadUnits = Annotated[
    float | None,
    typer.Option("--read-units", help="DynamoDB table: maximum read units per second; no limit by default.", min=0.5),
]
Segments = Annotated[
    int, typer.Option("--segments", help="DynamoDB table: segments to scan in parallel.", min=1, max=64)
]
Skipped = Annotated[
    list[str] | None,
    typer.Option(
        "--skip", help="DynamoDB: attribute and value of items to leave out, such as __typename=Order; repeatable."
    ),
]
Ttl = Annotated[
    str | None,
    typer.Option(
        "--ttl",
        help="DynamoDB: attribute with the time at which an item expires; by default that of the table, which an "
        "export does not say.",
    ),
]
KeepDeleted = Annotated[
    bool,
    typer.Option("--keep-deleted", help="DynamoDB: import items that have expired or are marked as deleted, too."),
]
IgnoreUnknown = Annotated[bool, typer.Option("--ignore-unknown", help="Skip attributes that a level does not define.")]
Describe = Annotated[
    bool, typer.Option("--describe", help="Print the columns and a command that imports the file; import nothing.")
]
Yes = Annotated[
    bool,
    typer.Option(
        "--yes",
        help="Import a file as it is guessed to be (encoding, header, quotes, shape, ids), or of which more than "
        "500,000 rows are rejected.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the changes without writing them.")]
Prune = Annotated[
    bool, typer.Option("--prune", help="Delete stored nodes that the file does not have, below nodes that it has.")
]
Moves = Annotated[bool, typer.Option("--moves", help="Move stored nodes to the path that the file has for their id.")]
CreateParents = Annotated[
    bool, typer.Option("--create-parents", help="Create parents that the file only names in paths, and count them.")
]
AllowRejects = Annotated[bool, typer.Option("--allow-rejects", help="Exit with status 0 despite rejected rows.")]


def import_file(
    hierarchy: HierarchyName, file: SourceName, levels: Levels = None, tree: TreeParts = None, names: Names = None,
    names_in: NamesIn = None, ids: Ids = None, level_ids: LevelIds = False, attributes: Attributes = None,
    case_insensitive: CaseInsensitive = None, nulls: Nulls = None, numbers: Numbers = None,
    fill_down: FillDown = None, delimiter: Delimiter = None, encoding: Encoding = None, quote: Quote = None,
    header_row: HeaderRow = None, column_names: ColumnNames = None, sheet: Sheet = None, key: KeyTemplates = None,
    keys: KeyNames = None, read_units: ReadUnits = None, segments: Segments = 4, skip: Skipped = None,
    ttl: Ttl = None, keep_deleted: KeepDeleted = False, format_name: FormatName = None,
    ignore_unknown: IgnoreUnknown = False, describe: Describe = False, dry_run: DryRun = False, prune: Prune = False,
    moves: Moves = False, create_parents: CreateParents = False, names_only: NamesOnly = None,
    allow_rejects: AllowRejects = False, yes: Yes = False, as_json: AsJson = False, store: StoreUrl = None,
) -> None:  # fmt: skip
    """Import the nodes of a file or of a DynamoDB table into the store.

    Nodes that the file does not have stay. Importing the same file again changes nothing. Rejected rows are written to
    FILE.rejected.csv, or another extension, with their reasons, and the exit status is 1. That file can be corrected
    and imported with the same options.

    Example: clade import location stores.csv --level country=Country --level city=City --fold-case city
    """
    # With the formats and the transfer, which the help does without.
    from commands.importing.files import FileOptions, cell_format, tree_by
    from commands.importing.job import ImportJob, run_import
    from commands.importing.tables import TableOptions
    from store.model.names import canonical_language
    from store.transfer.formats.columns import ColumnOptions
    from store.transfer.formats.csv import Dialect, delimiter_named

    definition = hierarchy_named(hierarchy)
    if names_only is not None and (prune or moves or describe):
        raise BadInput("--names-only adds names to stored nodes; leave --prune, --moves and --describe out.")
    if as_json and describe:
        raise BadInput("--describe prints text; leave --json out.")
    columns = ColumnOptions(
        levels or [], names or [], ids or [], attributes or [], case_insensitive or [], names_in or []
    )
    dialect = Dialect(encoding, delimiter_named(delimiter), quote)
    names_of_columns = tuple([name.strip() for name in next(csv.reader([column_names or ""]), [])])
    cells = cell_format(nulls or [], numbers, fill_down or [])
    options = FileOptions(columns, dialect, cells, sheet, header_row, names_of_columns, tree=tree_by(tree))
    key_names = [name.strip() for name in (keys or "").split(",") if name.strip()]
    table_options = TableOptions(key or [], key_names, read_units, segments, skip or [], ttl, keep_deleted)
    job = ImportJob(
        definition, ignore_unknown, store_url(store), prune, moves, dry_run, allow_rejects, yes, level_ids,
        create_parents, as_json, None if names_only is None else canonical_language(names_only),
    )  # fmt: skip
    run_import(file, format_name, options, table_options, job, describe=describe)
