"""Arguments and options of `clade import`."""

from typing import Annotated, Literal

import typer

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
        help="Table: column of a level, such as city=City; repeatable, from the root down. By default columns are "
        "matched by their names.",
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
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", help="CSV: character between columns, or tab; detected by default.")
]
Encoding = Annotated[
    str | None,
    typer.Option("--encoding", help="CSV: encoding, such as utf-8, utf-16 or cp1252; detected by default."),
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
IgnoreUnknown = Annotated[bool, typer.Option("--ignore-unknown", help="Skip attributes that a level does not define.")]
Describe = Annotated[
    bool, typer.Option("--describe", help="Print the columns and a command that imports the file; import nothing.")
]
Yes = Annotated[
    bool,
    typer.Option(
        "--yes",
        help="Import a file that looks like another kind (a tree by parent ids, paths in a column, no header), or of "
        "which most rows are rejected.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the changes without writing them.")]
Prune = Annotated[
    bool, typer.Option("--prune", help="Delete stored nodes that the file does not have, below nodes that it has.")
]
Moves = Annotated[bool, typer.Option("--moves", help="Move stored nodes to the path that the file has for their id.")]
AllowRejects = Annotated[bool, typer.Option("--allow-rejects", help="Exit with status 0 despite rejected rows.")]
