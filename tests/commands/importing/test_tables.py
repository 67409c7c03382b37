"""`clade import` of DynamoDB tables and of their exports to S3.

The four tables have common key patterns, as their authors print them.
"""

import asyncio
import base64
import gzip
import hashlib
import json
import re
import shlex
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import aioboto3
import pytest
from boto3.dynamodb.types import TypeSerializer

from store.connect import open_store
from store.engine import ReadUsage
from store.errors import BadInput, NoTable
from store.metadata.history import current_key, revisions
from store.model.keys import id_key
from tests import engines, invariants
from tests.commands.conftest import Clade
from tests.proxy import Proxy, in_thread, refused

NOW = datetime(2026, 3, 1, tzinfo=UTC)

STORES = [
    {"Country": "USA", "State#City#Zip": "NE#OMAHA#68118", "street": "100 St Andrews lane", "squareFeet": 921},
    {"Country": "USA", "State#City#Zip": "NY#NEWYORKCITY#10001", "street": "675 6th Ave", "squareFeet": 1211},
    {"Country": "USA", "State#City#Zip": "NY#NEWYORKCITY#10019", "street": "1500 Broadway", "squareFeet": 1924},
    {
        "Country": "FRANCE",
        "State#City#Zip": "ILE-DE-FRANCE#PARIS#75001",
        "street": "26 Avenue de l'Opera",
        "squareFeet": 2102,
    },
]
PRODUCTS = [
    {"PK": "CATEGORY#Electronics", "SK": "PRODUCT#TV-LG-55", "productName": "LG 55-inch 4K Smart TV", "brand": "LG",
     "price": Decimal("799.99")},
    {"PK": "CATEGORY#Electronics", "SK": "PRODUCT#TV-LG-55#VARIANT#Black", "color": "Black", "stock": 15},
    {"PK": "CATEGORY#Electronics", "SK": "PRODUCT#TV-LG-55#VARIANT#Silver", "color": "Silver", "stock": 8},
    {"PK": "CATEGORY#Electronics", "SK": "PRODUCT#LAPTOP-DELL-XPS", "productName": "Dell XPS 13 Laptop",
     "brand": "Dell", "price": Decimal("1299.00")},
    {"PK": "CATEGORY#Electronics", "SK": "PRODUCT#LAPTOP-DELL-XPS#VARIANT#Silver", "color": "Silver", "stock": 25},
]  # fmt: skip
PRODUCT_KEYS = ["--key", "CATEGORY#{category} / PRODUCT#{product}[#VARIANT#{variant}]", "--name", "product=productName"]
FILES = [
    {"PK": "DRIVE#a91", "SK": path, **({"bytes": size} if size else {})}
    for path, size in {
        "root/": 0, "root/photos/": 0, "root/photos/2026/": 0, "root/photos/2026/beach.jpg": 284_910,
        "root/photos/2026/sunset.jpg": 512_004, "root/docs/": 0, "root/docs/taxes.pdf": 88_210,
    }.items()
]  # fmt: skip
AUDITS = [
    {"PK": "Equipment_1", "SK": "v0_Audit", "Latest": 3, "auditor": "Bo", "result": "PASSED", "findings": {"none"}},
    {"PK": "Equipment_1", "SK": "v001_Audit", "auditor": "Al", "result": "OPEN"},
    {"PK": "Equipment_1", "SK": "v002_Audit", "auditor": "Al", "result": "FAILED", "findings": {"rust"}},
    {"PK": "Equipment_1", "SK": "v003_Audit", "auditor": "Bo", "result": "PASSED", "findings": {"none"}},
]
SYSTEMS: dict[str, tuple[str, list[dict[str, Any]], list[str], dict[str, str]]] = {
    "stores": (
        "location", STORES,
        ["--key", "{country} / {state}#{city}#{postal_code}", "--level", "store=street"],
        {"COUNTRY": 2, "STATE": 3, "CITY": 3, "POSTAL_CODE": 4, "STORE": 4},
    ),
    "products": (
        "category", PRODUCTS,
        PRODUCT_KEYS,
        {"CATEGORY": 1, "PRODUCT": 2, "VARIANT": 3},
    ),
    "drives": (
        "drive", FILES, ["--key", "DRIVE#{drive} / root/{folder*}/[{file}]"], {"DRIVE": 1, "FOLDER": 3, "FILE": 3},
    ),
    "audits": ("asset", AUDITS, ["--key", "{equipment} / v{version}_{audit}"], {"EQUIPMENT": 1, "AUDIT": 1}),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _in_a_directory_with_four_hierarchies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hierarchies = "graph.hierarchies.locations,graph.hierarchies.categories,examples.drive,examples.asset"
    monkeypatch.setenv("CLADE_HIERARCHIES", hierarchies)


async def fill(engine: engines.Engine, name: str, items: list[dict[str, Any]], *, create: bool = True) -> None:
    """Make a table with plain aioboto3, its keys the first two attributes, and put the items into it."""
    session = aioboto3.Session(*engines.KEY_PAIR.values(), region_name="eu-west-1")
    async with session.resource("dynamodb", endpoint_url=engine.url) as dynamodb:
        if create:
            keys = list(items[0])[:2]
            await dynamodb.create_table(
                TableName=name,
                BillingMode="PAY_PER_REQUEST",
                AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
                KeySchema=[
                    {"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=True)
                ],
            )
        table = await dynamodb.Table(name)
        async with table.batch_writer() as batch:
            for item in items:
                await batch.put_item(Item=item)


@pytest.fixture
def table(engine: engines.Engine) -> Callable[[list[dict[str, Any]]], str]:
    """Makes a table of these items; returns its URL."""

    def make(items: list[dict[str, Any]]) -> str:
        name = f"theirs-{uuid.uuid4().hex}"
        asyncio.run(fill(engine, name, items))
        return engine.address(name)

    return make


def exported(clade: Clade, hierarchy: str) -> list[dict[str, Any]]:
    result = clade("export", hierarchy)
    assert result.exit_code == 0, result.output + repr(result.exception)
    return [json.loads(line) for line in result.stdout.splitlines()]


def imported(result: Any) -> str:
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout


def consistent(store_url: str) -> None:
    async def check() -> None:
        async with open_store(store_url) as store:
            await invariants.check(store)

    asyncio.run(check())


EACH = [pytest.param(one, marks=[] if number == 0 else pytest.mark.thorough) for number, one in enumerate(SYSTEMS)]


@pytest.mark.parametrize("system", EACH)
def test_a_table_comes_out_with_its_levels_and_counts_and_again_unchanged(
    clade: Clade, table: Callable[..., str], store_url: str, system: str, tmp_path: Path
) -> None:
    hierarchy, items, options, counts = SYSTEMS[system]
    url = table(items)
    result = clade("import", hierarchy, url, *options)
    assert f": {sum(counts.values())} (" in imported(result)
    for level, count in counts.items():
        assert f"{count} {level}" in result.stdout
    assert "The scan of theirs-" in result.stderr
    assert f"Read {len(items)} items with " in result.stderr
    assert not [*tmp_path.glob("*.scan-*")]
    nodes = exported(clade, hierarchy)
    assert {level: sum(node["level"] == level for node in nodes) for level in counts} == counts
    consistent(store_url)
    assert "Nothing changed." in imported(clade("import", hierarchy, url, *options))
    assert exported(clade, hierarchy) == nodes


def test_attributes_and_names_are_those_of_the_items(clade: Clade, table: Callable[..., str]) -> None:
    for system in ("stores", "products", "drives"):
        hierarchy, items, options, _ = SYSTEMS[system]
        imported(clade("import", hierarchy, table(items), *options))
    shop = exported(clade, "location")[-1]
    assert shop["path"] == ["USA", "NY", "NEWYORKCITY", "10019", "1500 Broadway"]
    assert shop["square_feet"] == 1924
    _, laptop, silver, tv, black, _ = exported(clade, "category")
    assert (laptop["name"], laptop["brand"], laptop["price"]) == ("Dell XPS 13 Laptop", "Dell", "1299")
    assert (silver["path"][1:], silver["stock"]) == (["LAPTOP-DELL-XPS", "Silver"], 25)
    assert (tv["price"], black["stock"], black["color"]) == ("799.99", 15, "Black")
    files = {"/".join(node["path"]): node.get("bytes") for node in exported(clade, "drive")}
    assert files == {
        "a91": None, "a91/photos": None, "a91/photos/2026": None, "a91/photos/2026/beach.jpg": 284_910,
        "a91/photos/2026/sunset.jpg": 512_004, "a91/docs": None, "a91/docs/taxes.pdf": 88_210,
    }  # fmt: skip


async def _history(store_url: str, node_id: str) -> list[tuple[Any, ...]]:
    async with open_store(store_url) as store:
        (item,) = await store.get([id_key(node_id)], ReadUsage(), strong=True)
        key = current_key(item)
        assert key is not None
        (node,) = await store.get([key], ReadUsage(), strong=True)
        assert node is not None
        former = await store.range(revisions(node_id, node["revision"]), ReadUsage())
        return [
            (one["revision"], one.get("auditor"), one.get("result"), one.get("findings")) for one in [*former, node]
        ]


def test_versions_become_the_history_and_new_ones_are_added(
    clade: Clade, table: Callable[..., str], engine: engines.Engine, store_url: str
) -> None:
    hierarchy, items, options, _ = SYSTEMS["audits"]
    url = table(items)
    dry = imported(clade("import", hierarchy, url, *options, "--dry-run"))
    assert "would be added: 2 (1 EQUIPMENT, 1 AUDIT)" in dry
    assert "would be changed: 2 (2 AUDIT)" in dry
    assert exported(clade, hierarchy) == []
    assert "changed: 2 (2 AUDIT)" in imported(clade("import", hierarchy, url, *options))
    node_id = f"asset:{exported(clade, hierarchy)[1]['id']}"
    expected = [(1, "Al", "OPEN", None), (2, "Al", "FAILED", ["rust"]), (3, "Bo", "PASSED", ["none"])]
    assert asyncio.run(_history(store_url, node_id)) == expected
    assert "Nothing changed." in imported(clade("import", hierarchy, url, *options))
    newer = {"PK": "Equipment_1", "auditor": "Cy", "result": "OPEN"}
    name = url.removeprefix("dynamodb://").partition("?")[0]
    changed = [{**newer, "SK": "v004_Audit"}, {**newer, "SK": "v0_Audit", "Latest": 4}]
    asyncio.run(fill(engine, name, changed, create=False))
    assert "changed: 1 (1 AUDIT)" in imported(clade("import", hierarchy, url, *options))
    assert asyncio.run(_history(store_url, node_id)) == [*expected, (4, "Cy", "OPEN", None)]
    consistent(store_url)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("wrong", [{"result": "UNKNOWN"}, {"EquipmentId": "another"}], ids=["a value", "the id above"])
def test_former_versions_wait_for_the_rows_of_the_present(
    clade: Clade, tmp_path: Path, store_url: str, wrong: dict[str, str]
) -> None:
    equipment, present = {"PK": "Equipment_1", "SK": "M", "EquipmentId": "e"}, {"PK": "Equipment_1", "SK": "v0_Audit"}
    options = ["--key", "{equipment} / M", *SYSTEMS["audits"][2], "--keys", "PK,SK", "--id", "equipment=EquipmentId"]
    imported(
        clade("import", "asset", export(tmp_path / "first", [items(equipment, {**present, "auditor": "Al"})]), *options)
    )
    before = exported(clade, "asset")
    newer = {"PK": "Equipment_1", "auditor": "Bo"}
    changed = items(
        {**equipment, **{name: text for name, text in wrong.items() if name in equipment}},
        {**newer, **wrong, "SK": "v0_Audit"}, {**newer, "SK": "v001_Audit"},
        {**newer, "auditor": "Cy", "SK": "v002_Audit"},
    )  # fmt: skip
    for dry_run in (["--dry-run"], []):
        result = clade("import", "asset", export(tmp_path / f"then {dry_run}", [changed]), *options, *dry_run)
        assert result.exit_code == 1
        assert exported(clade, "asset") == before, result.output
    assert "row 4: " in result.stderr
    consistent(store_url)


def test_items_that_do_not_match_are_rejected_with_their_keys_and_can_be_corrected(
    clade: Clade, table: Callable[..., str], tmp_path: Path
) -> None:
    hierarchy, items, options, _ = SYSTEMS["products"]
    strange = [
        {"PK": "ORDER#7", "SK": "LINE#1", "total": 7},
        {"PK": "CATEGORY#Electronics", "SK": "PRODUCT#TV#VARIANT#Red#EXTRA", "stock": 1},
        {"PK": "CATEGORY#Electronics", "SK": "PRODUCT#Radio", "price": "cheap", "weight": Decimal("1.5")},
    ]
    url = table([*items, *strange])
    name = url.removeprefix("dynamodb://").partition("?")[0]
    result = clade("import", hierarchy, url, *options)
    assert result.exit_code == 1
    assert "The keys PK = ORDER#7, SK = LINE#1 match no --key." in result.stderr
    assert "PK = CATEGORY#Electronics, SK = PRODUCT#TV#VARIANT#Red#EXTRA match no --key." in result.stderr
    assert 'price: "cheap" is not a number; write' in result.stderr
    assert "not imported: weight (1)" in result.stderr
    assert len(exported(clade, hierarchy)) == 6
    rejected = tmp_path / f"{name}.rejected.json"
    lines = rejected.read_text().splitlines()
    assert len(lines) == 6
    assert [json.loads(line)["Item"]["SK"]["S"] for line in lines[1::2]] != []
    rejected.write_text(rejected.read_text().replace('"cheap"', '"9.90"').replace("#EXTRA", ""))
    mended = clade("import", hierarchy, rejected.name, *options)
    assert "added: 3 (2 PRODUCT, 1 VARIANT)" in mended.stdout, mended.output + repr(mended.exception)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("system", EACH)
def test_the_described_command_imports_the_table(clade: Clade, table: Callable[..., str], system: str) -> None:
    hierarchy, items, options, _ = SYSTEMS[system]
    described = clade("import", hierarchy, table(items), "--describe")
    command = shlex.split(imported(described).splitlines()[-1])
    assert "would be rejected" not in described.stdout
    proposed = "Equipment_{equipment} / v{version}_{audit}" if system == "audits" else options[1]
    assert command[4:6] == ["--key", proposed]
    result = clade(*command[1:], "--ignore-unknown")
    assert "added: " in imported(result)
    assert exported(clade, hierarchy)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_dry_run_reads_one_page_and_writes_nothing(
    clade: Clade, table: Callable[..., str], engine: engines.Engine, exact: None
) -> None:
    items = [{"PK": "CATEGORY#A", "SK": f"PRODUCT#{n:03}", "brand": "x" * 10_000} for n in range(250)]
    url = table(items)
    options = ["--key", "CATEGORY#{category} / PRODUCT#{product}"]
    dry = clade("import", "category", url, *options, "--dry-run")
    assert "Reading the first page" in dry.stderr
    read = int(dry.stderr.partition("Read ")[2].split()[0])
    assert 90 <= read < 120, "a page has at most 1 MB"
    assert f"would be added: {read + 1} (1 CATEGORY, {read} PRODUCT)" in imported(dry)
    assert exported(clade, "category") == []
    assert "added: 251 " in imported(clade("import", "category", url, *options, "--segments", "3"))


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "A table needs --key with the levels in its keys, such as --key"),
        (["--key", "{planet}"], 'category has no level "planet"; it has CATEGORY, PRODUCT, VARIANT.'),
        (["--key", "a / b / c"], "has 3 parts; a table has one or two keys"),
        (["--key", "PRODUCT"], '--key "PRODUCT" names no level in braces'),
        (["--key", "{category}[#{product}"], "a [ has no ], or a ] no ["),
        (["--key", "{category}]"], "a [ has no ], or a ] no ["),
        (["--key", "{category"], 'a level is in braces, such as {city}, not "{category"'),
        (["--key", "{category}{product}"], "nothing stands between {category} and the next level"),
        (["--key", "{product*}/"], "PRODUCT cannot be under PRODUCT, so {product*} is not possible"),
        (["--key", "{category*}"], "{category*} has no delimiter; write {category*/} or {category*}/"),
        (["--key", "{category}", "--delimiter", ";"], "are for files, not for DynamoDB tables."),
        (["--key", "{category}", "--name", "variant=x"], "--name variant needs a column for this level"),
        (["--key", "{category}", "--prune", "--dry-run"], "--prune needs a whole table; this has a part of it."),
        (["--key", "{category}", "--skip", "status"], "--skip status has no column and value; use --skip"),
    ],
)
def test_a_wrong_option_is_one_sentence_and_costs_no_call(
    clade: Clade, engine: engines.Engine, options: list[str], message: str
) -> None:
    proxy = Proxy(engine.url)
    with in_thread(proxy):
        url = f"dynamodb://absent?region=eu-west-1&endpoint={proxy.url}"
        for more in ([], ["--dry-run"], ["--describe"]) if options and "--prune" not in options else ([],):
            result = clade("import", "category", url, *options, *more)
            assert isinstance(result.exception, BadInput), result.output + repr(result.exception)
            assert message in str(result.exception)
    assert proxy.calls == []


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_table_or_a_store_that_is_not_there_is_told_before_a_scan_costs_units(
    clade: Clade, table: Callable[..., str], engine: engines.Engine
) -> None:
    absent, options = engine.address("absent"), ["--key", "CATEGORY#{category} / PRODUCT#{product}"]
    for found in (
        clade("import", "category", absent, *options),
        clade("import", "category", table(PRODUCTS), *options, "--store", absent),
    ):
        assert isinstance(found.exception, NoTable), found.output + repr(found.exception)
        assert str(found.exception).startswith('There is no table "absent"')
        assert "The scan of" not in found.stderr


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_values_of_all_types_are_read_by_several_segments_within_a_limit_of_units(
    clade: Clade, table: Callable[..., str], tmp_path: Path, exact: None
) -> None:
    values: dict[str, Any] = {
        "list": ["a", 1, None, True], "map": {"x": {"y": 2}}, "set": {"a"}, "no": None, "empty": "", "bytes": b"\0x",
        "digits": 12345678901234567890123456789012345678,
    }  # fmt: skip
    url = table([{"PK": f"CATEGORY#{n}", "SK": "PRODUCT#p", "text": "x" * 8_000} for n in range(60)] + [
        {"PK": "another", "SK": "kind", **values}
    ])  # fmt: skip
    options = ["--key", "CATEGORY#{category} / PRODUCT#{product}", "--ignore-unknown", "--segments", "2"]
    started = time.monotonic()
    limited = clade("import", "category", url, *options, "--read-units", "25")
    assert "added: 120 (60 CATEGORY, 60 PRODUCT)" in limited.stdout, limited.output + repr(limited.exception)
    count, units = (float(word) for word in re.findall(r"Read (\d+) items with ([0-9.]+)", limited.stderr)[0])
    assert count == 61
    assert time.monotonic() - started >= (units - 27) / 25, "each page waits for those of all segments before it"
    (file,) = tmp_path.glob("*.rejected.json")
    item = json.loads(file.read_text().splitlines()[1])["Item"]
    assert item == {
        "PK": {"S": "another"}, "SK": {"S": "kind"}, "set": {"SS": ["a"]}, "no": {"NULL": True}, "empty": {"S": ""},
        "list": {"L": [{"S": "a"}, {"N": "1"}, {"NULL": True}, {"BOOL": True}]}, "bytes": {"B": "AHg="},
        "map": {"M": {"x": {"M": {"y": {"N": "2"}}}}}, "digits": {"N": "12345678901234567890123456789012345678"},
    }  # fmt: skip


# -- exports to S3 -----------------------------------------------------------------------------------------------------


def wire(item: dict[str, Any]) -> dict[str, Any]:
    return {name: TypeSerializer().serialize(value) for name, value in item.items()}


def change(item: dict[str, Any], *, is_deleted: bool = False) -> dict[str, Any]:
    """A line of an incremental export."""
    keys = wire({name: item[name] for name in ("PK", "SK")})
    line = {"Metadata": {"WriteTimestampMicros": {"N": "1"}}, "Keys": keys, "OldImage": keys}
    return line if is_deleted else {**line, "NewImage": wire(item)}


def export(folder: Path, files: list[list[dict[str, Any]]], *, kind: str = "FULL_EXPORT", time: datetime = NOW) -> Path:
    """An export as DynamoDB writes it, below AWSDynamoDB/, of the table at a time."""
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
    summary["exportToTime" if kind.startswith("INCREMENTAL") else "exportTime"] = time.isoformat().replace(
        "+00:00", "Z"
    )
    (top / "manifest-summary.json").write_text(json.dumps(summary))
    (top / "manifest-summary.md5").write_text("x")
    return top


def items(*found: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"Item": wire(item)} for item in found]


def test_a_full_export_is_imported_from_its_folder_its_manifest_or_the_folder_above(
    clade: Clade, tmp_path: Path, store_url: str
) -> None:
    top = export(tmp_path, [items(*PRODUCTS[:2]), [], items(*PRODUCTS[2:])])
    assert "added: 6 (1 CATEGORY, 2 PRODUCT, 3 VARIANT)" in imported(clade("import", "category", top, *PRODUCT_KEYS))
    for path in (top / "manifest-files.json", tmp_path / "AWSDynamoDB", top / "data"):
        assert "Nothing changed.\nunchanged: 6" in imported(clade("import", "category", path, *PRODUCT_KEYS))
    one = top / "data" / "file0.json.gz"
    assert "unchanged: 3" in imported(clade("import", "category", one, *PRODUCT_KEYS, "--keys", "PK,SK"))
    described = imported(clade("import", "category", top, "--describe"))
    assert described == imported(clade("import", "category", top, "--describe", "--keys", "PK,SK"))
    assert f"--keys PK,SK --key '{PRODUCT_KEYS[1]}' --name product=productName" in described
    consistent(store_url)


def test_an_incremental_export_brings_changes_and_deletions(clade: Clade, tmp_path: Path, store_url: str) -> None:
    imported(clade("import", "category", export(tmp_path / "full", [items(*PRODUCTS)]), *PRODUCT_KEYS))
    lines = [
        change({**PRODUCTS[0], "brand": "LG Electronics"}),
        change(PRODUCTS[1], is_deleted=True),
        change(PRODUCTS[3], is_deleted=True),  # a product whose variant stays
        change({**PRODUCTS[2], "SK": "PRODUCT#TV-LG-55#VARIANT#White", "color": "White"}),
        change({**PRODUCTS[2], "SK": "PRODUCT#absent"}, is_deleted=True),
    ]
    later = export(tmp_path / "later", [lines[:2], lines[2:]], kind="INCREMENTAL_EXPORT")
    dry = imported(clade("import", "category", later, *PRODUCT_KEYS, "--dry-run"))
    assert "would be removed: 1 (1 VARIANT)" in dry
    assert len(exported(clade, "category")) == 6
    output = imported(clade("import", "category", later, *PRODUCT_KEYS))
    assert "added: 1 (1 VARIANT)\nchanged: 1 (1 PRODUCT)\nremoved: 1 (1 VARIANT)" in output
    assert "not removed: 1 node, whose items were deleted, since other items lie below." in output
    assert [node["path"][1:] for node in exported(clade, "category")] == [
        [], ["LAPTOP-DELL-XPS"], ["LAPTOP-DELL-XPS", "Silver"], ["TV-LG-55"], ["TV-LG-55", "Silver"],
        ["TV-LG-55", "White"],
    ]  # fmt: skip
    assert "Nothing changed." in imported(clade("import", "category", later, *PRODUCT_KEYS))
    assert "--prune needs a whole table" in str(clade("import", "category", later, *PRODUCT_KEYS, "--prune").exception)
    consistent(store_url)


# -- items that are left out -------------------------------------------------------------------------------------------


def toys(**products: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"PK": "CATEGORY#Toys", "SK": f"PRODUCT#{name}", **values} for name, values in products.items()]


def seconds(**ago: float) -> int:
    return int((NOW - timedelta(**ago)).timestamp())


KEY = ["--key", "CATEGORY#{category} / PRODUCT#{product}", "--keys", "PK,SK"]


def keys(clade: Clade, hierarchy: str = "category") -> list[str]:
    return sorted(node["path"][-1] for node in exported(clade, hierarchy))


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_the_time_to_live_is_that_of_the_table_or_unknown(
    clade: Clade, table: Callable[..., str], engine: engines.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commands.importing.tables.time", SimpleNamespace(time=NOW.timestamp))
    name = table(toys(A={}, B={"until": seconds(days=2)}, C={"expires": seconds(days=2)})).partition("?")[0]
    proxy = Proxy(engine.url)
    with in_thread(proxy):
        url = f"{name}?region=eu-west-1&endpoint={proxy.url}"
        assert "added: 4 " in imported(clade("import", "category", url, *KEY[:2], "--dry-run"))
        proxy.spoil("DescribeTimeToLive", refused("AccessDeniedException"))
        unknown = clade("import", "category", url, *KEY[:2], "--dry-run")
        assert "is unknown, since DescribeTimeToLive is not allowed; --ttl names it." in unknown.stderr
        assert '1 item may have expired by "expires"' in str(unknown.exception)
        asyncio.run(enable_ttl(engine, name.removeprefix("dynamodb://"), "until"))
        result = clade("import", "category", url, *KEY[:2])
        assert "added: 3 " in imported(result)
        assert '1 item is past the time of expiry in "until"' in result.stderr
        assert keys(clade) == ["A", "C", "Toys"]
        calls = len(proxy.calls)
        imported(clade("import", "category", url, *KEY[:2], "--ttl", "expires", "--dry-run"))
        assert [call.operation for call in proxy.calls[calls:]] == ["DescribeTable", "Scan"]


async def enable_ttl(engine: engines.Engine, name: str, attribute: str) -> None:
    session = aioboto3.Session(*engines.KEY_PAIR.values(), region_name="eu-west-1")
    async with session.client("dynamodb", endpoint_url=engine.url) as client:
        await client.update_time_to_live(
            TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": attribute}
        )


class RandomTable:
    """A random tree as items of one key pattern, with items that are deleted, expired, skipped or foreign."""

    def __init__(self, random: Random) -> None:
        self.random = random
        mark, other = random.sample("#|:/_~", 2)
        place = "|".join(random.choices("abc", k=2))
        patterns: list[tuple[str, list[str], int, Callable[[list[str]], dict[str, str]]]] = [
            (
                "category", ["--key", f"C{mark}{{category}} / [P{mark}{{product}}[{other}V{mark}{{variant}}]]"], 3,
                lambda path: {"PK": f"C{mark}{path[0]}", "SK": other.join(
                    f"{kind}{mark}{key}" for kind, key in zip("PV", path[1:], strict=False)) or "x"},
            ),
            (
                "category", ["--key", f"{place} / {{category*{mark}}}"], 5,
                lambda path: {"PK": place, "SK": mark.join(path)},
            ),
            (
                "location", ["--key", "@{country} / x", "--key", f"@{{country}} / {{state}}[{mark}{{city}}]"], 3,
                lambda path: {"PK": f"@{path[0]}", "SK": mark.join(path[1:]) or "x"},
            ),
            (
                "location", ["--level", "country=c", "--level", "state=s", "--level", "city=t"], 3,
                lambda path: {"PK": "-".join(path), "SK": "x", **dict(zip("cst", path, strict=False))},
            ),
        ]  # fmt: skip
        self.hierarchy, self.options, depth, keys = random.choice(patterns)
        self.options = [*self.options, "--keys", "PK,SK", "--skip", "kind=draft", "--skip", "kind=7"]
        if self.hierarchy == "category" and depth == 3:
            self.options += ["--key", f"C{mark}{{category}} / x"]
        paths: list[list[str]] = [[]]
        for number in range(random.randrange(3, 14)):
            above = random.choice([path for path in paths if len(path) < depth])
            paths.append([*above, f"{random.choice('kÄ日 ')}{number}".strip()])
        self.ttl = random.choice(["ttl", "_ttl", "expiresAt"])
        self.items: list[dict[str, Any]] = [{**keys(["y0"]), "kind": "live"}]
        self.tree, self.counts = {("y0",)}, {"deleted": 0, "past": 0, "with kind": 0, "foreign": 0}
        for path in paths[1:]:
            why, values = random.choice([*LIVE, *LEFT_OUT])
            values = {self.ttl if name == "time" else name: value for name, value in values.items()}
            self.items.append({**keys(path), **values})
            if why:
                self.counts[why] += 1
            else:
                self.tree |= {tuple(path[: length + 1]) for length in range(len(path))}
        if random.random() < 0.3:
            self.items.append({"PK": "?", "SK": "?", "total": 7})
            self.counts["foreign"] += 1
        self.options += ["--ttl", self.ttl] if any(self.ttl in item for item in self.items) else []
        random.shuffle(self.items)


LIVE: list[tuple[str, dict[str, Any]]] = [
    ("", {}), ("", {"_deleted": False}), ("", {"_deleted": 0, "kind": "live"}), ("", {"time": seconds(days=-9)}),
    ("", {"time": seconds(days=6 * 366)}),
]  # fmt: skip
LEFT_OUT = [
    ("deleted", {"_deleted": True}), ("deleted", {"_deleted": 1}), ("deleted", {"_deleted": "true"}),
    ("past", {"time": seconds(days=3)}), ("with kind", {"kind": "draft"}), ("with kind", {"kind": 7}),
]  # fmt: skip


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_random_tables_are_imported_as_their_trees(clade: Clade, tmp_path: Path) -> None:
    for seed in range(12):
        made = RandomTable(Random(seed))  # noqa: S311
        top = export(tmp_path / str(seed), [items(*made.items)])
        store = ["--store", f"sqlite:///{tmp_path / str(seed)}.db"]
        words = ["import", made.hierarchy, top, *made.options, *store]
        # Nodes of items that are left out are there at first, and pruned.
        result = clade(*words[:3], *made.options, "--keep-deleted", *store) if seed % 2 else None
        assert result is None or result.exit_code == made.counts["foreign"], result.output
        result = clade(*words, *(["--prune"] if seed % 2 else []))
        assert result.exit_code == made.counts["foreign"], (seed, result.output, result.exception)
        if made.counts["foreign"] and seed % 2:
            continue  # nothing is pruned, since such a row has no path
        found = clade("export", made.hierarchy, *store)
        assert {tuple(json.loads(line)["path"]) for line in found.stdout.splitlines()} == made.tree, seed
        sentences = {"deleted": "deleted (_deleted)", "past": f'in "{made.ttl}"', "with kind": "by --skip."}
        for word, sentence in sentences.items():
            lines = [line for line in result.stderr.splitlines() if sentence in line and line[0].isdecimal()]
            assert sum(int(line.split()[0]) for line in lines) == made.counts[word], (seed, result.stderr)
            assert all(word in line for line in lines)
