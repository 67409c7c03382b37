"""`clade import`: its arguments and options, and the nodes of a file into the store."""

from typing import Annotated, Any, Literal, TypeAlias

import typer
from typer.core import TyperCommand, TyperOption

from commands.common import HierarchyName, StoreUrl, hierarchy_named
from commands.output import AsJson
from store.errors import BadInput, shorten

SourceName = Annotated[
    str,
    typer.Argument(
        help="File to import, such as stores.csv, .xlsx or .jsonl.gz; - for the standard input; "
        "a table such as dynamodb://ProductCatalog?region=eu-west-1; a folder of an export of a table to S3.",
        metavar="FILE",
    ),
]
FormatName = Literal["csv", "jsonl", "taxonomy", "excel", "parquet", "json", "geojson"]
Text: TypeAlias = str | None
Texts: TypeAlias = list[str] | None


PRUNE_ALL = "--prune-all"  # as which `--prune=all` is parsed, since a flag takes no value


class ImportCommand(TyperCommand):
    """The command, whose flag `--prune` may have a value, but not in an argument of its own: that may be the file."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for number, word in enumerate(args):
            option, _, value = word.partition("=")
            if option == "--prune" and value:
                if value != "all":
                    raise BadInput(f'--prune is given alone or as --prune=all, not as "{shorten(word)}".')
                args = [*args[:number], PRUNE_ALL, *args[number + 1 :]]
        return super().parse_args(ctx, args)


def _option(name: str, words: str, default: object = None, **more: Any) -> Any:
    """An option of a command, with its help."""
    return typer.Option(default, name, help=words, **more)


def import_file(
    context: typer.Context, hierarchy: HierarchyName, file: SourceName,
    levels: Texts = _option("--level", "Table: column of a level, such as city=City; repeatable, from the root down, "
        'also for one level. \'category=Path split " > "\' for paths, with each "|" for several in a cell, reversed '
        "for those that begin with the leaf; department,category=… for paths of several levels. By default columns are "
        "matched by their names."),
    tree: Text = _option("--tree-by", "How the file says its tree where levels have no columns: id=ID,parent=PARENT, "
        "prefix=CODE, left=LEFT,right=RIGHT of nested sets, also with tree=TREE, depth=COLUMN or indent=COLUMN of a "
        "table, each also with key=COLUMN and level=COLUMN, or level=COLUMN:VALUE=LEVEL,VALUE=LEVEL for values that "
        "are no names of levels, prefix with split=SIGN for signs around whole parts; indent of a text; children=NAME "
        "of JSON, also with key=NAME, name=NAME and id=NAME, where data.name is in an object."),
    names: Texts = _option("--name", "Table: column of names, such as city=City; the key by default."),
    names_in: Texts = _option("--name-in", "Table: column of names in a language, such as city.de=Stadt; repeatable."),
    ids: Texts = _option("--id", "Table: column of ids, such as city=Id; made from paths by default."),
    by: Text = _option("--by", "Rows change the stored nodes that have their ids, or values of a unique attribute, "
        "such as sku, whatever the paths; with =COLUMN for another column. Nothing is created or moved.",
        metavar="NAME[=COLUMN]"),
    level_ids: bool = _option("--level-ids", "Ids of the file are unique within a level only: each gets its level "
        "before it, such as city-30.", False),
    attributes: Texts = _option("--attr", "Table: column of an attribute, such as store.street=Street; repeatable."),
    case_insensitive: Texts = _option("--fold-case", "Table: level whose keys ignore case, such as city: OMAHA and "
        "Omaha are one node. With --tree-by id=ID,parent=PARENT also id: ids ignore case."),
    nulls: Texts = _option("--null", "Table: text that means no value, in all columns (NULL) or in one "
        "(Population=NA); repeatable."),
    numbers: Text = _option("--numbers", 'Table: format of numbers by an example: "1,234.56", "1.234,56", "1 234,56", '
        '"1\'234.56" or "1,23,456.00", perhaps with a sign of currency, such as "$1,234.56"; by default without '
        "thousands separators."),
    dates: Text = _option("--dates", "Table: format of dates by an example, such as 31.12.2026, 12/31/2026 or "
        "20261231; by default 2026-12-31."),
    separators: Texts = _option("--list-separator", 'Table: sign between the values of a list in a cell, such as "|", '
        'in all columns or in one ("Tags=|"); repeatable, ; by default.'),
    order: Text = _option("--order", "Order of siblings: file for that of the file, or a column of numbers or texts; "
        "by default by their keys.", metavar="file|COLUMN"),
    fill_down: Texts = _option("--fill-down", "Table: column whose empty cells have the value above, as merged cells "
        "of Excel have; repeatable."),
    delimiter: Text = _option("--delimiter", "CSV: character between columns, or tab; detected by default."),
    encoding: Text = _option("--encoding", "CSV, taxonomy: encoding, such as cp1251 or utf-16; UTF-8 and marked "
        "UTF-16 by default."),
    quote: Text = _option("--quote", "CSV: '\"' for cells in quotes, none for quotes that are text; detected by "
        "default."),
    header_row: int | None = _option("--header-row", "CSV, Excel: number of the line that names the columns; those "
        "above it are skipped. The first by default.", min=1),
    column_names: Text = _option("--columns", "CSV, Excel: names of the columns of a file without a header, such as "
        "Country,City."),
    sheet: Text = _option("--sheet", "Excel: name of the sheet; the first by default."),
    key: Texts = _option("--key", 'DynamoDB: levels in the keys, such as "CATEGORY#{category} / '
        'PRODUCT#{product}[#VARIANT#{variant}]"; repeatable, the first that matches is used.'),
    keys: Text = _option("--keys", "DynamoDB export: names of the key attributes, such as PK,SK; detected by default."),
    read_units: float | None = _option("--read-units", "DynamoDB table: maximum read units per second; no limit by "
        "default.", min=0.5),
    segments: int = _option("--segments", "DynamoDB table: segments to scan in parallel.", 4, min=1, max=64),
    skip: Texts = _option("--skip", "Column and value of rows to leave out, such as status=draft, of a DynamoDB table "
        "attribute and value of items; repeatable."),
    ttl: Text = _option("--ttl", "DynamoDB: attribute with the time at which an item expires; by default that of the "
        "table, which an export does not say."),
    keep_deleted: bool = _option("--keep-deleted", "DynamoDB: import items that have expired or are marked as "
        "deleted, too.", False),
    format_name: FormatName | None = _option("--format", "File format; from the file's extension by default."),
    ignore_unknown: bool = _option("--ignore-unknown", "Skip attributes that a level does not define.", False),
    describe: bool = _option("--describe", "Print the columns and a command that imports the file; import nothing.",
        False),
    dry_run: bool = _option("--dry-run", "Print the changes without writing them.", False),
    prune: bool = _option("--prune", "Delete stored nodes that the file does not have, below nodes that it has. More "
        "than 20 of them, and a fifth of those below, only with --prune=all.", False),
    prune_all: bool = _option(PRUNE_ALL, "Written as --prune=all.", False, hidden=True),
    moves: bool = _option("--moves", "Move stored nodes to the path that the file has for their id.", False),
    create_parents: bool = _option("--create-parents", "Create parents that the file only names in paths, and count "
        "them.", False),
    names_only: Text = _option("--names-only", "Add the names of the file in a language, such as de, to the stored "
        "nodes of its ids, and nothing else.", metavar="LANGUAGE"),
    allow_rejects: bool = _option("--allow-rejects", "Exit with status 0 despite rejected rows.", False),
    yes: bool = _option("--yes", "Import a file as it is guessed to be (encoding, header, quotes, shape, ids), or of "
        "which more than 500,000 rows are rejected.", False),
    as_json: AsJson = False, store: StoreUrl = None,
) -> None:  # fmt: skip
    """Import the nodes of a file or of a DynamoDB table into the store.

    Nodes that the file does not have stay. Importing the same file again changes nothing. Rejected rows are written to
    FILE.rejected.csv, or another extension, with their reasons, and the exit status is 1. That file can be corrected
    and imported with the same options.

    Example: clade import location stores.csv --level country=Country --level city=City --fold-case city
    """
    # With the formats and the transfer, which the help does without.
    from commands.importing.advice import Given
    from commands.importing.job import run_import

    options = [one for one in context.command.params if isinstance(one, TyperOption)]
    run_import(Given(context.params, options), hierarchy_named(hierarchy))
