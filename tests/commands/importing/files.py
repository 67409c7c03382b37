"""Commands in a directory of their own, what they store, and contents of files of every format."""

import codecs
import csv
import datetime
import gzip
import json
import re
import shlex
import zipfile
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow
import pytest
from boto3.dynamodb.types import TypeSerializer
from click.testing import Result
from pyarrow import parquet
from typer.testing import CliRunner

from tests.cli import app_of
from tests.real_files import STARBUCKS, TAXONOMY, real_file

MAX_PRUNED, MAX_PRUNED_PART = 20, 0.2  # of what --prune may remove, as docs/reference/commands.md says

Clade = Callable[..., Result]
Keys = tuple[str, ...]


@pytest.fixture
def clade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clade:
    """Runs a command in a directory of its own, on a store that is made by the first import."""
    monkeypatch.chdir(tmp_path)
    environment = {"CLADE_STORE": f"sqlite:///{tmp_path}/clade.db"}
    return lambda *words, stdin=None: CliRunner().invoke(
        app_of(words[:1]), [*map(str, words)], input=stdin, env=environment
    )


def stored(clade: Clade, hierarchy: str) -> dict[str, dict[str, Any]]:
    """The nodes by their paths."""
    return nodes_of(clade("export", hierarchy).stdout)


def replaced(clade: Clade, words: Sequence[object], before: Collection[Keys], after: Collection[Keys]) -> Result:
    """The result of an import with --prune that makes one tree out of another with the same roots.

    Where that removes so much that the file may have been cut off, it is first refused, and then made as it is meant.
    """
    gone, prunable = len({*before} - {*after}), sum(len(path) > 1 for path in before)
    if gone <= max(MAX_PRUNED, MAX_PRUNED_PART * prunable):
        return clade(*words, "--prune")
    refused = clade(*words, "--prune")
    assert f"lacks {gone} of the {prunable} stored nodes that --prune may remove" in str(refused.exception), refused
    assert {tuple(node["path"]) for node in stored(clade, str(words[1])).values()} == {*before}
    return clade(*words, "--prune=all")


def nodes_of(exported: str) -> dict[str, dict[str, Any]]:
    """The nodes of an export by their paths."""
    nodes = [json.loads(line) for line in exported.splitlines()]
    return {path_of(node["path"]): node for node in nodes}


def path_of(keys: Sequence[str]) -> str:
    return "/".join(key.replace("/", "%2F") for key in keys)


def split(options: str) -> tuple[str, list[str]]:
    """The hierarchy of a case, location unless its options begin with another, and the options."""
    return ("category" if options.startswith("category") else "location"), shlex.split(options.removeprefix("category"))


def written(file: Path, content: str) -> Path:
    file.write_text(content, encoding="utf-8")
    return file


# -- contents ----------------------------------------------------------------------------------------------------------


def table(rows: Iterable[Sequence[object]]) -> bytes:
    output = StringIO()
    csv.writer(output).writerows(rows)
    return output.getvalue().encode()


def excel(rows: list[list[Any]], sheets: dict[str, list[list[Any]]] | None = None, title: str = "First") -> bytes:
    book = openpyxl.Workbook()
    book.active.title = title
    for row in rows:
        _append(book.active, row)
    for name, others in (sheets or {}).items():
        sheet = book.create_sheet(name)
        for row in others:
            _append(sheet, row)
    file = BytesIO()
    book.save(file)
    return file.getvalue()


def _append(sheet: Any, row: Any) -> None:
    """Add a row of values, or of texts with indents; an object has the row, its group, and where details are."""
    given = row if isinstance(row, dict) else {"cells": row}
    sheet.append([one["text"] if isinstance(one, dict) else one for one in given["cells"]])
    for at, one in enumerate(given["cells"], start=1):
        if isinstance(one, dict):
            alignment = openpyxl.styles.Alignment(indent=one["indent"], horizontal=one.get("align"))
            sheet.cell(sheet.max_row, at).alignment = alignment
    if "group" in given:
        sheet.row_dimensions[sheet.max_row].outlineLevel = given["group"]
    sheet.sheet_properties.outlinePr.summaryBelow &= given.get("details") != "below"


def parquet_file(rows: list[dict[str, Any]]) -> bytes:
    file = BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    return file.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


def items(*found: dict[str, Any]) -> bytes:
    """The items of a DynamoDB table as in an export to S3."""
    serialize = TypeSerializer().serialize
    lines = [{"Item": {name: serialize(value) for name, value in item.items()}} for item in found]
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


# -- files of cases ----------------------------------------------------------------------------------------------------

REAL = {"starbucks": STARBUCKS, "taxonomy": TAXONOMY}
FLAGS = {"crlf", "no-end", "gz", "escaped", "bytes", "items", "python"}


@dataclass(frozen=True)
class File:
    name: str
    flags: set[str]
    encoding: str = "utf-8"
    real: str = ""
    lines: list[str] = field(default_factory=list)

    def content(self) -> bytes:
        if self.real:
            return real_file(self.real).read_bytes()
        found = self._found()
        content = found.encode(self.encoding) if isinstance(found, str) else found
        return gzip.compress(content) if "gz" in self.flags else content

    def _found(self) -> str | bytes:
        end = "\r\n" if "crlf" in self.flags else "\n"
        text = end.join(self.lines) + end * (self.lines != [] and "no-end" not in self.flags)
        if "escaped" in self.flags:
            return decoded(text)
        if "bytes" in self.flags:
            return codecs.escape_decode(text.encode())[0]
        if "python" in self.flags:
            rows = eval(text, {"gzip": gzip, "json": json, "zipped": zipped, **vars(datetime)})  # noqa: S307 - of this repository
            if isinstance(rows, str | bytes):
                return rows
        elif "items" in self.flags or self.name.endswith((".xlsx", ".parquet")):
            rows = [json.loads(line) for line in self.lines]
        else:
            return text
        if "items" in self.flags:
            return items(*rows)
        return parquet_file(rows) if self.name.endswith(".parquet") else _workbook(rows)


def decoded(text: str) -> str:
    """The text with Python's escapes decoded, whatever other characters it has."""
    escape = r"\\(x..|u.{4}|U.{8}|N\{.+?\}|.)"
    return re.sub(escape, lambda found: found.group().encode("ascii").decode("unicode_escape"), text)


def _workbook(rows: list[Any]) -> bytes:
    sheets: dict[str, list[list[Any]]] = {}
    for row in rows if rows and "sheet" in rows[0] else [{"sheet": "First"}, *rows]:
        if isinstance(row, dict) and "sheet" in row:
            sheets[title := row["sheet"]] = []
        else:
            sheets[title].append(row)
    first = next(iter(sheets))
    return excel(sheets.pop(first), sheets, first)


def file_of(name: str, *modifiers: str) -> File:
    """The file of a name and modifiers, as `cases/README.md` has them. Raises ValueError or LookupError."""
    if modifiers[:1] == ("=",):
        return File(name, set(), real=REAL[" ".join(modifiers[1:])])
    encodings = [codecs.lookup(one) and one for one in modifiers if one not in FLAGS]
    if len(encodings) > 1:
        raise ValueError(f"{name} has several encodings")
    return File(name, FLAGS.intersection(modifiers), *encodings)
