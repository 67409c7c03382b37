"""File of an import: a path or the standard input (`-`, copied to a file first), and its table, in the format by the
extension and the options.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, NamedTuple

import typer

from store.errors import BadInput, shorten, shown_address
from store.model.attributes import Attribute
from store.model.hierarchy import Hierarchy
from store.transfer.formats.contents import MARKDOWN, readings, unread_kind
from store.transfer.formats.csv import Dialect, csv_table, looks_like_table
from store.transfer.formats.json import LINE_ENDINGS, geojson_table, json_table, lines_table
from store.transfer.formats.source import BLOCK_BYTES, Doubt, Guess, content_name
from store.transfer.formats.table import COMMENT, Table
from store.transfer.formats.text import text_table
from store.transfer.formats.workbooks import excel_table, parquet_table
from store.transfer.shapes.choice import shape_of
from store.transfer.shapes.columns import level_column
from store.transfer.shapes.paths import is_path_table
from store.transfer.shapes.shape import RowOptions, Shape

# Options that contradict `--by id`, by their parameters, each with the way out.
_NOT_BY_ID = {
    "levels": "--level: levels and paths are those of the stored nodes; leave it out",
    "tree": "--tree-by: paths are those of the stored nodes; leave it out",
    "ids": "--id: --by id=COLUMN names the column of ids",
    "level_ids": "--level-ids: write the ids as they are stored, such as city-30",
    "names_only": "--names-only: --name-in LEVEL.LANGUAGE=COLUMN adds names in a language",
    "prune": "--prune: clade delete removes nodes, or a file of all paths with --prune",
    "prune_all": "--prune: clade delete removes nodes, or a file of all paths with --prune",
    "moves": "--moves: a file of paths moves nodes",
    "create_parents": "--create-parents: a file of paths creates nodes",
    "order": "--order: paths are those of the stored nodes; leave it out",
    "describe": "--describe: --dry-run shows what would be changed",
}


def by_column(hierarchy: Hierarchy, text: str, params: Mapping[str, object]) -> tuple[str, Attribute | None]:
    """The column that `--by` names, and the unique attribute of its values, None for ids. Raises BadInput beside
    options that contradict it.
    """
    what, equals, column = map(str.strip, text.partition("="))
    known = hierarchy.unique
    what = next((name for name, one in known.items() if what in one.was), what)
    if (what != "id" and what not in known) or (equals and not column):
        names = "".join([f", {name} or {name}=COLUMN" for name in known])
        raise BadInput(f"--by is id or id=COLUMN{names}, not {shorten(text)}.")
    if contradiction := next((way for name, way in _NOT_BY_ID.items() if params[name]), None):
        raise BadInput(f"--by {what} changes stored nodes where they are, and excludes {contradiction}.")
    return column or text.strip(), None if what == "id" else known[what]


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


def check_address(address: str, command: str) -> None:
    """Raise BadInput for what is neither a file, a folder nor the standard input, from which the command reads.

    Unlike those of `Path`, the functions of `os.path` take an address that is longer than a file's name may be.
    """
    if address == STDIN or os.path.isfile(address) or os.path.isdir(address):
        return
    if os.path.exists(address):
        raise BadInput(
            f"{shorten(address, 200)} is a pipe or a device, which can be read only once; pipe it in: {command} < FILE."
        )
    if "://" in address:
        raise BadInput(
            f"{shown_address(address)} is an address, and only files are read; download it, or pipe it in: "
            f"curl -fL ADDRESS | {command}."
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
            raise BadInput(f"The standard input has more than {MAX_BYTES:,} bytes; give it as a file.")
        target.write(block)


ENDINGS = {
    ".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".txt": "taxonomy", ".xlsx": "excel",
    ".xlsm": "excel", ".xls": "excel", ".xlsb": "excel", ".ods": "excel", ".parquet": "parquet", ".json": "json",
    ".geojson": "geojson", ".geojsonl": "geojson", ".geojsons": "geojson", ".ndgeojson": "geojson",
}  # fmt: skip
NAMES = tuple(dict.fromkeys(ENDINGS.values()))


@dataclass(frozen=True)
class FileOptions(RowOptions):
    """The options about the content of a file.

    The line `header_row`, counted from 1, has the names of the columns, or `column_names` are those of a file without a
    header. Raises BadInput for both.
    """

    dialect: Dialect = field(default_factory=Dialect)
    sheet: str | None = None
    header_row: int | None = None
    column_names: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.header_row is not None and self.column_names:
            raise BadInput("--header-row is for a file with a header, --columns for one without; give one of them.")
        if "" in self.column_names:
            raise BadInput("--columns has an empty name; name all columns, such as --columns Country,City.")


def _csv(file: Path, options: FileOptions) -> Table:
    given = replace(options.dialect, header_row=options.header_row, columns=options.column_names)
    table = csv_table(file, given, options.taken)
    columns = {options.by_id, *(level_column(value)[1] for value in options.columns.levels)}
    is_header = options.header_row or options.column_names or not columns.isdisjoint(table.header)
    if not is_header and not is_path_table(table.header):
        table.check_titles()
    first = table.sample.texts[:1] if options.column_names and len(options.column_names) > 1 else []
    if first and COMMENT.match(first[0][0]) and not any(first[0][1:]) and Guess.SHAPE not in options.taken:
        raise _comment(file, first[0][0])
    return table


def _text(file: Path, options: FileOptions) -> Table:
    """The table of a text. Raises Doubt, unless the guess is taken, for comments above it that would become nodes."""
    table = text_table(file, options.dialect, options.taken)
    lines = [line for (line,) in table.sample.texts]
    below = next((line for line in lines if not COMMENT.match(line)), "")
    is_comment = bool(lines and COMMENT.match(lines[0])) and not content_name(file).lower().endswith(MARKDOWN)
    is_comment = is_comment and (options.tree is not None or not lines[0].startswith(("#", "//")))
    if is_comment and re.match(r"[^\s*+-]", below) and Guess.SHAPE not in options.taken:
        raise _comment(file, lines[0])
    return table


def _comment(file: Path, line: str) -> Doubt:
    seen = f'{file.name} begins with a comment, "{shorten(line)}", which would become a node'
    return Doubt(Guess.SHAPE, seen, other="remove the lines of comments")


FORMATS: Mapping[str, Callable[[Path, FileOptions], Table]] = {
    "csv": _csv,
    "jsonl": lambda file, _: lines_table(file),
    "taxonomy": _text,
    "excel": lambda file, options: excel_table(
        file, options.sheet, options.header_row, options.column_names, options.taken
    ),
    "parquet": lambda file, _: parquet_table(file),
    "json": lambda file, _: json_table(file),
    "geojson": lambda file, _: geojson_table(file, is_lines=content_name(file).lower().endswith(LINE_ENDINGS)),
}


def shape_of_file(hierarchy: Hierarchy, file: Path, name: str | None, options: FileOptions) -> Shape:
    """The shape of a file in the format of this name, by default that of its extension. Raises BadInput for options of
    another format, and what `shape_of` raises.
    """
    is_outline = options.tree is not None and options.tree.parts.get("indent") == ""
    is_text = is_outline and ENDINGS.get(Path(content_name(file)).suffix.lower(), "taxonomy") == "taxonomy"
    if name is None:
        name = _checked("taxonomy" if is_text else name_of(file), file, options)
    if name != "csv" and options.dialect != Dialect(options.dialect.encoding if name == "taxonomy" else None):
        raise BadInput("--delimiter, --encoding and --quote need a CSV file; add --format csv if it is one.")
    if name != "excel" and options.sheet is not None:
        raise BadInput("--sheet needs an Excel file; add --format excel if it is one.")
    if name not in ("csv", "excel") and (options.header_row is not None or options.column_names):
        raise BadInput("--header-row and --columns need a CSV or an Excel file; add --format csv if it is one.")
    table = FORMATS[name](file, options)
    try:
        return shape_of(hierarchy, table, options)
    except BadInput as error:
        if table.doubt:
            error.args = (f"{error} {table.doubt}.",)
        raise


def _checked(name: str | None, file: Path, options: FileOptions) -> str:
    """The format of a file whose extension has this name of one, by its content without one.

    Raises BadInput for a file of a kind that is not read, and Doubt, unless the guess is taken, for one whose content
    is of another format.
    """
    if kind := unread_kind(file):
        raise BadInput(
            f"{file.name} is {kind}, which is not read; write it as CSV or JSON with an id, the "
            "id of the parent and a name in each row, by an export or a script."
        )
    fitting = readings(file, is_known=name is not None) if name not in ("excel", "parquet", "geojson") else []
    if Guess.SHAPE not in options.taken and fitting and ("--format", name) not in fitting:
        names = {"indent": "an outline", "taxonomy": "paths", "jsonl": "a JSON document on each line", "csv": "a table"}
        what = " or ".join(names.get(value, value) for _, value in fitting)
        has = "no extension of a format" if name is None else "another content than its extension says"
        raise Doubt(Guess.SHAPE, f"{file.name} has {has}: {what}", *fitting)
    if name is None and not fitting:
        raise BadInput(
            f"{file.name} has no known extension, and its content no format that is read; write it as CSV or JSON."
        )
    return name or next((value for option, value in fitting if option == "--format"), "taxonomy")


def name_of(file: Path) -> str | None:
    """The format by the extension of a file, of a compressed one by that of what is in it; None where unknown.

    A text file is a taxonomy, or a table by its delimiters.
    """
    name = ENDINGS.get(Path(content_name(file)).suffix.lower())
    return "csv" if name == "taxonomy" and looks_like_table(file) else name
