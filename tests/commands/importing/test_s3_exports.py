"""Exports of tables to S3: full and incremental ones, damaged files, and imports that are killed."""

import asyncio
import base64
import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from boto3.dynamodb.types import TypeSerializer

from store.connect import open_store
from store.errors import BadInput
from tests import invariants
from tests.commands.importing.killing import before_commit, killed
from tests.commands.importing.test_tables import PRODUCTS, _history, clade, consistent, exported, imported

OPTIONS = ["--key", "CATEGORY#{category} / PRODUCT#{product}[#VARIANT#{variant}]", "--name", "product=productName"]
__all__ = ["clade"]


def wire(item: dict[str, Any]) -> dict[str, Any]:
    return {name: TypeSerializer().serialize(value) for name, value in item.items()}


def change(item: dict[str, Any], *, is_deleted: bool = False) -> dict[str, Any]:
    """A line of an incremental export."""
    keys = wire({name: item[name] for name in ("PK", "SK")})
    line = {"Metadata": {"WriteTimestampMicros": {"N": "1"}}, "Keys": keys, "OldImage": keys}
    return line if is_deleted else {**line, "NewImage": wire(item)}


def export(folder: Path, files: list[list[dict[str, Any]]], *, kind: str = "FULL_EXPORT") -> Path:
    """An export as DynamoDB writes it, below AWSDynamoDB/."""
    top = folder / "AWSDynamoDB" / f"0169-{kind.lower()}"
    (top / "data").mkdir(parents=True)
    entries = []
    for number, lines in enumerate(files):
        content = gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode())
        (top / "data" / f"file{number}.json.gz").write_bytes(content)
        digest = base64.b64encode(hashlib.md5(content).digest()).decode()  # noqa: S324 - as DynamoDB does
        key = f"prefix/AWSDynamoDB/{top.name}/data/file{number}.json.gz"
        entries.append({"itemCount": len(lines), "md5Checksum": digest, "etag": "x", "dataFileS3Key": key})
    (top / "manifest-files.json").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/ProductCatalog"
    summary = {"tableArn": arn, "outputFormat": "DYNAMODB_JSON", "exportType": kind, "itemCount": sum(map(len, files))}
    (top / "manifest-summary.json").write_text(json.dumps(summary))
    (top / "manifest-summary.md5").write_text("x")
    return top


def items(*found: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"Item": wire(item)} for item in found]


def test_a_full_export_is_imported_from_its_folder_its_manifest_or_the_folder_above(
    clade: Callable[..., Any], tmp_path: Path, store_url: str
) -> None:
    top = export(tmp_path, [items(*PRODUCTS[:2]), [], items(*PRODUCTS[2:])])
    assert "added: 6 (1 CATEGORY, 2 PRODUCT, 3 VARIANT)" in imported(clade("import", "category", top, *OPTIONS))
    for path in (top / "manifest-files.json", top.parent, tmp_path / "AWSDynamoDB", top / "data"):
        assert "Nothing changed.\nunchanged: 6" in imported(clade("import", "category", path, *OPTIONS))
    one = top / "data" / "file0.json.gz"
    assert "unchanged: 3" in imported(clade("import", "category", one, *OPTIONS, "--keys", "PK,SK"))
    described = imported(clade("import", "category", top, "--describe"))
    assert f"--keys PK,SK --key '{OPTIONS[1]}' --name product=productName" in described
    consistent(store_url)


def test_an_incremental_export_brings_changes_and_deletions(
    clade: Callable[..., Any], tmp_path: Path, store_url: str
) -> None:
    imported(clade("import", "category", export(tmp_path / "full", [items(*PRODUCTS)]), *OPTIONS))
    lines = [
        change({**PRODUCTS[0], "brand": "LG Electronics"}),
        change(PRODUCTS[1], is_deleted=True),
        change(PRODUCTS[3], is_deleted=True),  # a product whose variant stays
        change({**PRODUCTS[2], "SK": "PRODUCT#TV-LG-55#VARIANT#White", "color": "White"}),
        change({**PRODUCTS[2], "SK": "PRODUCT#absent"}, is_deleted=True),
    ]
    later = export(tmp_path / "later", [lines[:2], lines[2:]], kind="INCREMENTAL_EXPORT")
    dry = imported(clade("import", "category", later, *OPTIONS, "--dry-run"))
    assert "would be removed: 1 (1 VARIANT)" in dry
    assert len(exported(clade, "category")) == 6
    output = imported(clade("import", "category", later, *OPTIONS))
    assert "added: 1 (1 VARIANT)\nchanged: 1 (1 PRODUCT)\nremoved: 1 (1 VARIANT)" in output
    assert "not removed: 1 node, whose items were deleted, since other items lie below." in output
    assert [node["path"][1:] for node in exported(clade, "category")] == [
        [], ["LAPTOP-DELL-XPS"], ["LAPTOP-DELL-XPS", "Silver"], ["TV-LG-55"], ["TV-LG-55", "Silver"],
        ["TV-LG-55", "White"],
    ]  # fmt: skip
    assert "Nothing changed." in imported(clade("import", "category", later, *OPTIONS))
    assert "--prune needs a whole table" in str(clade("import", "category", later, *OPTIONS, "--prune").exception)
    consistent(store_url)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_lines_that_are_no_items_are_rejected_with_file_and_line(clade: Callable[..., Any], tmp_path: Path) -> None:
    top = export(tmp_path, [items(*PRODUCTS), [{"Item": {"PK": "text"}}, {"Thing": 1}, *items({"PK": 7, "SK": "x"})]])
    result = clade("import", "category", top, *OPTIONS, "--keys", "PK,SK")
    assert result.exit_code == 1
    assert 'row 6: file1.json.gz, line 1: The line has no "Item" in DynamoDB JSON.' in result.stderr
    assert 'row 7: file1.json.gz, line 2: The line has no "Item" in DynamoDB JSON.' in result.stderr
    assert "row 8: file1.json.gz, line 3: The keys PK = 7, SK = x match no --key." in result.stderr
    assert (tmp_path / "ProductCatalog.rejected.json").read_text().count("$reason") == 3


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("truncated", "is damaged: its checksum is not that of the manifest; copy it again."),
        ("missing", "is missing; the manifest names it."),
        ("count", "file0.json.gz has 5 items, 6 by the manifest; copy it again."),
        ("ion", "The export is in the format ION; export the table as DYNAMODB_JSON."),
        ("manifest", "manifest-files.json, line 1 names no data file"),
        ("empty", "is not an export of a DynamoDB table"),
        ("two", "has 2 exports"),
    ],
)
def test_a_damaged_export_stops_before_anything_is_written(
    clade: Callable[..., Any], tmp_path: Path, damage: str, message: str
) -> None:
    top = export(tmp_path, [items(*PRODUCTS)])
    file, manifest, summary = top / "data" / "file0.json.gz", top / "manifest-files.json", top / "manifest-summary.json"
    match damage:
        case "truncated":
            file.write_bytes(file.read_bytes()[:-9])
        case "missing":
            file.unlink()
        case "count":
            manifest.write_text(manifest.read_text().replace('"itemCount": 5', '"itemCount": 6'))
        case "ion":
            summary.write_text(summary.read_text().replace("DYNAMODB_JSON", "ION"))
        case "manifest":
            manifest.write_text("{}\n")
        case "empty":
            top = tmp_path / "nothing"
            top.mkdir()
        case "two":
            export(tmp_path, [items(*PRODUCTS)], kind="INCREMENTAL_EXPORT")
            top = tmp_path
    result = clade("import", "category", top, *OPTIONS)
    assert isinstance(result.exception, BadInput), result.output + repr(result.exception)
    assert message in str(result.exception)
    assert exported(clade, "category") == []


# -- killed -----------------------------------------------------------------------------------------------------------


async def checked(store_url: str) -> None:
    async with open_store(store_url) as store:
        await invariants.check(store)


def test_an_import_that_is_killed_anywhere_goes_on_with_the_same_command(
    clade: Callable[..., Any], tmp_path: Path, store_url: str
) -> None:
    count = 50
    audits = [
        {"PK": f"Equipment_{number}", "SK": f"v{version:03}_Audit", "auditor": f"auditor {version}"}
        for number in range(count) for version in (1, 2, 3)
    ]  # fmt: skip
    audits += [{**audits[3 * number + 2], "SK": "v0_Audit"} for number in range(count)]
    top = export(tmp_path, [items(*audits)])
    words = ["import", "asset", str(top), "--key", "{equipment} / v{version}_{audit}", "--keys", "PK,SK"]
    for number in (2, 1, 2):  # the first commit of the second process is not made, either
        killed(store_url, before_commit(store_url, number), *words)
        asyncio.run(checked(store_url))
    imported(clade(*words))
    assert "Nothing changed." in imported(clade(*words))
    nodes = exported(clade, "asset")
    assert [node["level"] for node in nodes] == ["EQUIPMENT", "AUDIT"] * count
    for node in nodes[1::2]:
        expected = [(version, f"auditor {version}", None, None) for version in (1, 2, 3)]
        assert asyncio.run(_history(store_url, f"asset:{node['id']}")) == expected
    consistent(store_url)
