"""`clade import`: the nodes of a file into the store."""

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from commands.importing.columns import columns
from commands.importing.job import ImportJob
from commands.options import HierarchyName, StoreUrl, hierarchy_named
from graph.settings import Settings
from store.errors import BadInput
from store.model.hierarchy import Hierarchy
from store.transfer import formats
from store.transfer.formats import Format
from store.transfer.formats.columns import read_csv
from store.transfer.formats.lines import read_jsonl, read_taxonomy, taxonomy_level
from store.transfer.rows import ImportPlan

EXIT_REJECTED = 1

File = Annotated[
    Path,
    typer.Argument(
        help="File to import, such as stores.csv, .tsv, .jsonl or .txt.", exists=True, dir_okay=False, metavar="FILE"
    ),
]
Levels = Annotated[
    list[str] | None,
    typer.Option("--level", help="CSV: column of a level, such as city=City; repeatable, from the root down."),
]
Names = Annotated[
    list[str] | None, typer.Option("--name", help="CSV: column of names, such as city=City; the key by default.")
]
NamesIn = Annotated[
    list[str] | None,
    typer.Option("--name-in", help="CSV: column of names in a language, such as city.de=Stadt; repeatable."),
]
Ids = Annotated[
    list[str] | None, typer.Option("--id", help="CSV: column of ids, such as city=Id; made from paths by default.")
]
Attributes = Annotated[
    list[str] | None,
    typer.Option("--attr", help="CSV: column of an attribute, such as store.street=Street; repeatable."),
]
CaseInsensitive = Annotated[
    list[str] | None,
    typer.Option("--fold-case", help="CSV: level whose keys ignore case, such as city: OMAHA and Omaha are one node."),
]
FormatName = Annotated[
    Literal["csv", "jsonl", "taxonomy"] | None,
    typer.Option("--format", help="File format; from the file's extension by default."),
]
IgnoreUnknown = Annotated[bool, typer.Option("--ignore-unknown", help="Skip attributes that a level does not define.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the changes without writing them.")]
Prune = Annotated[
    bool, typer.Option("--prune", help="Delete stored nodes that the file does not have, below nodes that it has.")
]
Moves = Annotated[
    bool, typer.Option("--moves", help="Move stored nodes whose id the file has at another path to that path.")
]
AllowRejects = Annotated[bool, typer.Option("--allow-rejects", help="Exit with status 0 despite rejected rows.")]


def import_file(
    hierarchy: HierarchyName,
    file: File,
    levels: Levels = None,
    names: Names = None,
    names_in: NamesIn = None,
    ids: Ids = None,
    attributes: Attributes = None,
    case_insensitive: CaseInsensitive = None,
    format_name: FormatName = None,
    ignore_unknown: IgnoreUnknown = False,
    dry_run: DryRun = False,
    prune: Prune = False,
    moves: Moves = False,
    allow_rejects: AllowRejects = False,
    store: StoreUrl = None,
) -> None:
    """Import the nodes of a file into the store.

    Nodes that the file does not have stay. Importing the same file again changes nothing. Rejected rows are written to
    FILE.rejected.csv with their reasons, and the exit status is 1.

    Example: clade import location stores.csv --level country=Country --level city=City --fold-case city
    """
    definition = hierarchy_named(hierarchy)
    options = [levels or [], names or [], ids or [], attributes or [], case_insensitive or [], names_in or []]
    job = ImportJob(
        file,
        _format(definition, file, format_name or formats.name_of(file), options),
        ImportPlan(definition, ignore_unknown=ignore_unknown),
        store or Settings().store,
        prune=prune,
        moves=moves,
        dry_run=dry_run,
    )
    job.run()
    job.report()
    if job.outcome.rejections and not allow_rejects:
        raise typer.Exit(EXIT_REJECTED)


def _format(hierarchy: Hierarchy, file: Path, name: str | None, options: list[list[str]]) -> Format:
    if name != "csv" and any(options):
        raise BadInput(
            "--level, --name, --name-in, --id, --attr and --fold-case need a CSV file; add --format csv if it is one."
        )
    match name:
        case "csv":
            return partial(read_csv, columns(hierarchy, *options))
        case "jsonl":
            return read_jsonl
        case "taxonomy":
            return partial(read_taxonomy, taxonomy_level(hierarchy))
        case _:
            raise BadInput(f'Unknown extension of "{file.name}"; add --format {", ".join(formats.NAMES)}.')
