"""Commands in a directory of their own, what they store, and contents of files of every format."""

import csv
import json
import shlex
import zipfile
from collections.abc import Callable, Iterable, Sequence
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

Clade = Callable[..., Result]


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
        book.active.append(row)
    for name, others in (sheets or {}).items():
        sheet = book.create_sheet(name)
        for row in others:
            sheet.append(row)
    file = BytesIO()
    book.save(file)
    return file.getvalue()


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
