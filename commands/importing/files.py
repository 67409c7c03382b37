"""File of an import, and its format: a path or the standard input (`-`, copied to a file first), its format by the
extension and the options, and the column options of a table, such as `--level city=City`.
"""

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, NamedTuple

import typer

from store.errors import BadInput, shorten, shown_address
from store.model.hierarchy import Hierarchy
from store.model.names import canonical_language
from store.transfer.formats.columns import (
    NUMERIC,
    PLAIN,
    CellFormat,
    ColumnOptions,
    LevelColumns,
    check_columns,
    match_columns,
    named,
)
from store.transfer.formats.csv import (
    Dialect,
    cell_rows,
    csv_header,
    looks_like_table,
    read_csv,
    read_path_csv,
    rejected_csv,
)
from store.transfer.formats.json import (
    LINE_ENDINGS,
    check_lists,
    check_nodes,
    geojson_table,
    is_nodes,
    json_table,
    read_nodes,
    read_objects,
)
from store.transfer.formats.lines import read_jsonl, read_taxonomy, taxonomy_level
from store.transfer.formats.source import (
    BLOCK_BYTES,
    JSON_REASON,
    Format,
    Guess,
    content_name,
    rejected_json,
    rejected_table,
    rejected_taxonomy,
)
from store.transfer.formats.tables import Table, is_path_table, path_header, read_path_table, read_table
from store.transfer.formats.workbooks import excel_table, parquet_table


class NoLevels(BadInput):
    """A table without a column of a level."""


def columns(hierarchy: Hierarchy, options: ColumnOptions, in_keys: Iterable[str] = ()) -> list[LevelColumns]:
    """The columns that the options describe, by level. Raises BadInput for the first wrong option.

    Levels that are `in_keys` have no column of their own.
    """
    mapping = _level_columns(hierarchy, options.levels, in_keys)

    def mapped(option: str, name: str) -> LevelColumns:
        level = hierarchy.level(name)
        if level.name not in mapping:
            raise BadInput(f"{option} {name} needs a column for this level; add --level {name}=Column.")
        return mapping[level.name]

    for option in options.names:
        name, column = _split("--name", option)
        mapped("--name", name).name = column
    for option in options.names_in:
        name, language, column = _split_target("--name-in", option, "no language", 'city.de="Column"')
        mapped("--name-in", name).names[canonical_language(language)] = column
    for option in options.ids:
        name, column = _split("--id", option)
        mapped("--id", name).id = column
    for option in options.attributes:
        name, attribute, column = _split_target("--attr", option, "no attribute", 'store.street="Column"')
        level = mapped("--attr", name)
        defined = hierarchy.levels[level.level].attributes
        if attribute not in defined:
            raise BadInput(f'{level.level} has no attribute "{attribute}"; it has {", ".join(defined) or "none"}.')
        level.attributes[attribute] = column
    for name in options.case_insensitive:
        mapped("--fold-case", name).fold = True
    return list(mapping.values())


def _level_columns(hierarchy: Hierarchy, options: Iterable[str], in_keys: Iterable[str]) -> dict[str, LevelColumns]:
    """The columns of `--level` by level; each level must be allowed below an earlier one, as in the rows."""
    mapping = {name: LevelColumns(name, "") for name in in_keys}
    for option in options:
        name, column = _split("--level", option)
        level = hierarchy.level(name)
        if level.name in mapping:
            raise BadInput(
                f"--level {name} is given twice. Nodes of one level in several columns, such as category, subcategory, "
                "are imported by their paths: write a file with the columns path, level and name."
            )
        if not level.under & {None, *mapping}:
            places = ", ".join(sorted(above or "the root" for above in level.under))
            raise BadInput(f"--level {name} is in the wrong position: {level.name} is allowed under {places}.")
        numeric = frozenset(name for name, attribute in level.attributes.items() if attribute.kind in NUMERIC)
        mapping[level.name] = LevelColumns(level.name, column, numeric=numeric)
    if not mapping:
        raise NoLevels(
            f"No column is named like a level of {hierarchy.name}; name the columns of its levels from the root down, "
            'such as --level country="Country" --level city=City.'
        )
    return mapping


def _split_target(option: str, value: str, lacks: str, example: str) -> tuple[str, str, str]:
    """The level, what is named of it, and the column of `level.what=column`."""
    target, column = _split(option, value)
    level, dot, what = target.partition(".")
    if not dot:
        raise BadInput(f"{option} {value} has {lacks}; use {option} {example}.")
    return level, what, column


def _split(option: str, value: str) -> tuple[str, str]:
    left, equals, column = value.partition("=")
    if not (left.strip() and equals and column.strip()):
        raise BadInput(f'{option} {value} has no column; use {option} {left or "city"}="Column".')
    return left.strip(), column.strip()


STDIN = "-"
MAX_BYTES = 4_000_000_000  # of the standard input
MAX_NAME_BYTES = 200  # of a file; most systems take 255


class Source(NamedTuple):
    """A file to import, its name in messages, and the folder of its rejected rows."""

    file: Path
    name: str
    folder: Path

    def rejected(self, ending: str) -> Path:
        """The file of its rejected rows."""
        stem = "".join([c if c.isprintable() else "_" for c in Path(content_name(self.file)).stem])
        return self.folder / f"{stem.encode()[:MAX_NAME_BYTES].decode(errors='ignore')}.rejected{ending}"


def check_address(address: str) -> None:
    """Raise BadInput for what is neither a file, a folder nor the standard input.

    Unlike those of `Path`, the functions of `os.path` take an address that is longer than a file's name may be.
    """
    if address == STDIN or os.path.isfile(address) or os.path.isdir(address):
        return
    if os.path.exists(address):
        raise BadInput(
            f"{shorten(address, 200)} is a pipe or a device, which can be read only once; pipe it in: "
            "clade import HIERARCHY - --format csv < FILE."
        )
    if "://" in address:
        raise BadInput(
            f"{shown_address(address)} is an address, and only files are imported; download it, or pipe it in: "
            "curl -fL ADDRESS | clade import HIERARCHY - --format csv."
        )
    raise typer.BadParameter(f"file '{shorten(address, 200)}' does not exist.", param_hint="FILE")


@contextmanager
def source_at(address: str) -> Iterator[Source]:
    """The source at an address, which `check_address` has passed, while the block runs. Raises BadInput."""
    if address != STDIN:
        file = Path(address)
        yield Source(file, file.name, file.parent)
        return
    with TemporaryDirectory(prefix="clade-") as folder:
        file = Path(folder) / "stdin"
        with file.open("xb") as target:
            _copy_stdin(target)
        yield Source(file, file.name, Path())


def _copy_stdin(target: BinaryIO) -> None:
    size = 0
    while block := sys.stdin.buffer.read(BLOCK_BYTES):
        size += len(block)
        if size > MAX_BYTES:
            raise BadInput(f"The standard input has more than {MAX_BYTES:,} bytes; import it as a file.")
        target.write(block)


ENDINGS = {
    ".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".txt": "taxonomy", ".xlsx": "excel",
    ".parquet": "parquet", ".json": "json", ".geojson": "geojson", ".geojsonl": "geojson", ".geojsons": "geojson",
    ".ndgeojson": "geojson",
}  # fmt: skip
NAMES = tuple(dict.fromkeys(ENDINGS.values()))


@dataclass(frozen=True)
class FileOptions:
    """The options about the content of a file, and the guesses that are `taken` without a doubt."""

    columns: ColumnOptions = field(default_factory=ColumnOptions)
    dialect: Dialect = field(default_factory=Dialect)
    cells: CellFormat = PLAIN
    sheet: str | None = None
    taken: Collection[Guess] = ()


@dataclass(frozen=True)
class FileFormat:
    """The format of a file, what was guessed about it, and, of a table, its columns and its rows as texts.

    The header of CSV and Excel is a row. Paths in JSON may be lists of keys. A file that is Clade's own is an export.
    """

    format: Format
    guesses: Sequence[str] = ()
    options: ColumnOptions | None = None
    header: Sequence[str] = ()
    rows: Callable[[], Iterator[Sequence[str]]] | None = None
    has_text_header: bool = False
    has_lists: bool = False
    is_own: bool = False


def format_of(hierarchy: Hierarchy, file: Path, name: str | None, options: FileOptions) -> FileFormat:
    """The format of this name, by default that of the file's extension. Raises BadInput for options of another one."""
    name = name or name_of(file)
    if name is None:
        raise BadInput(f'Unknown extension of "{file.name}"; add --format with one of {", ".join(NAMES)}.')
    if name != "csv" and options.dialect != Dialect():
        raise BadInput("--delimiter and --encoding need a CSV file; add --format csv if it is one.")
    if name != "excel" and options.sheet is not None:
        raise BadInput("--sheet needs an Excel file; add --format excel if it is one.")
    if name == "csv":
        return _csv(hierarchy, file, options)
    if name in ("excel", "parquet", "geojson"):
        return _table(hierarchy, name, _read_table(file, name, options), options)
    if name == "json":
        return _json(hierarchy, file, options)
    _refuse_columns(options)
    if name == "jsonl":
        return FileFormat(Format(lambda: read_jsonl(file), rejected_json()), has_lists=True)
    level = taxonomy_level(hierarchy)
    return FileFormat(Format(lambda: read_taxonomy(level, file), rejected_taxonomy()))


def name_of(file: Path) -> str | None:
    """The format by the extension of a file, of a compressed one by that of what is in it; None where unknown.

    A text file is a taxonomy, or a table by its delimiters.
    """
    name = ENDINGS.get(Path(content_name(file)).suffix.lower())
    return "csv" if name == "taxonomy" and looks_like_table(file) else name


def _csv(hierarchy: Hierarchy, file: Path, options: FileOptions) -> FileFormat:
    dialect = options.dialect.resolved(file)
    header = csv_header(file, dialect)
    said = [sentence] if (sentence := dialect.sentence(options.dialect)) else []
    if is_path_table(header) and not options.columns.levels:
        _refuse_columns(options)
        return FileFormat(
            Format(
                lambda: read_path_csv(hierarchy, file, dialect),
                rejected_csv(file, dialect, JSON_REASON),
            ),
            said,
            is_own=header == path_header(hierarchy),
        )
    found, levels, guesses = _columns(hierarchy, header, options.columns)
    return FileFormat(
        Format(
            lambda: read_csv(levels, file, dialect, options.cells),
            rejected_csv(file, dialect),
        ),
        [*said, *guesses],
        found,
        header,
        lambda: cell_rows(file, dialect),
        has_text_header=True,
    )


def _json(hierarchy: Hierarchy, file: Path, options: FileOptions) -> FileFormat:
    """A tree, or a table where the nodes have columns. Raises Doubt for a tree in lists of another name."""
    objects, is_taken = read_objects(file), Guess.SHAPE in options.taken
    if is_nodes(objects) and not options.columns.levels:
        _refuse_columns(options)
        if not is_taken:
            check_nodes(hierarchy, file, objects)
        return FileFormat(Format(lambda: read_nodes(hierarchy, objects), rejected_json()), has_lists=True)
    table, lists = json_table(file, objects)
    if not is_taken:
        levels = options.columns.levels or match_columns(hierarchy, table.header).levels
        check_lists(file, lists, [level.partition("=")[2] for level in levels])
    return _table(hierarchy, "json", table, options)


def _table(hierarchy: Hierarchy, name: str, table: Table, options: FileOptions) -> FileFormat:
    if is_path_table(table.header) and not options.columns.levels:
        _refuse_columns(options)
        return FileFormat(
            Format(lambda: read_path_table(hierarchy, table), rejected_table(table.header, JSON_REASON)),
            is_own=table.header == path_header(hierarchy),
        )
    found, levels, guesses = _columns(hierarchy, table.header, options.columns)
    return FileFormat(
        Format(lambda: read_table(levels, table, options.cells), rejected_table(table.header)),
        guesses,
        found,
        table.header,
        table.texts,
        has_text_header=name == "excel",
    )


def _read_table(file: Path, name: str, options: FileOptions) -> Table:
    match name:
        case "excel":
            return excel_table(file, options.sheet)
        case "parquet":
            return parquet_table(file)
        case _:
            return geojson_table(file, is_lines=content_name(file).lower().endswith(LINE_ENDINGS))


def _columns(
    hierarchy: Hierarchy, header: Sequence[str], given: ColumnOptions
) -> tuple[ColumnOptions, list[LevelColumns], list[str]]:
    """The options with those that follow from the names of the columns, where none of a level is given."""
    found = given if given.levels else given.merged(match_columns(hierarchy, header))
    try:
        levels = columns(hierarchy, found)
    except NoLevels as error:
        raise BadInput(f"{error} The file has {named(header)}.") from None
    check_columns(header, levels)
    if given.levels:
        return found, levels, []
    words = " ".join(f"{option} {value}" for option, value in found.pairs())
    used = {value.partition("=")[2] for _, value in found.pairs()}
    others = [column for column in header if column and column not in used]
    left_out = f" Not imported: {named(others)}." if others else ""
    return found, levels, [f"columns {words}, by their names; --level sets them.{left_out}"]


def _refuse_columns(options: FileOptions) -> None:
    if any(options.columns.pairs()) or options.cells != PLAIN:
        raise BadInput(
            "--level, --name, --name-in, --id, --attr, --fold-case, --null and --numbers need a table, such as a CSV "
            "file; add --format csv if it is one."
        )
