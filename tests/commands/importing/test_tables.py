"""`clade import` of DynamoDB tables: four tables of common key patterns, made as their authors print them."""

import asyncio
import json
import shlex
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import aioboto3
import pytest
from typer.testing import CliRunner

from commands.main import app_of
from store.connect import open_store
from store.engine.usage import ReadUsage
from store.errors import BadInput, NoTable
from store.metadata.history import current_key, revisions
from store.model.keys import id_key
from tests import engines, invariants

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
        ["--key", "CATEGORY#{category} / PRODUCT#{product}[#VARIANT#{variant}]", "--name", "product=productName"],
        {"CATEGORY": 1, "PRODUCT": 2, "VARIANT": 3},
    ),
    "drives": (
        "drive", FILES, ["--key", "DRIVE#{drive} / root/{folder*}/[{file}]"], {"DRIVE": 1, "FOLDER": 3, "FILE": 3},
    ),
    "audits": ("asset", AUDITS, ["--key", "{equipment} / v{version}_{audit}"], {"EQUIPMENT": 1, "AUDIT": 1}),
}  # fmt: skip


@pytest.fixture
def clade(store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs a command on a table of its own, in a directory of its own."""

    async def create() -> None:
        async with open_store(store_url) as store:
            await store.create()

    asyncio.run(create())
    monkeypatch.chdir(tmp_path)
    hierarchies = "graph.hierarchies.locations,graph.hierarchies.categories,clade.examples.drive,clade.examples.asset"
    environment = {"CLADE_STORE": store_url, "CLADE_HIERARCHIES": hierarchies}
    monkeypatch.setenv("CLADE_HIERARCHIES", hierarchies)
    return lambda *words: CliRunner().invoke(app_of(), [str(word) for word in words], env=environment)


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


def exported(clade: Callable[..., Any], hierarchy: str) -> list[dict[str, Any]]:
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
    clade: Callable[..., Any], table: Callable[..., str], store_url: str, system: str
) -> None:
    hierarchy, items, options, counts = SYSTEMS[system]
    url = table(items)
    result = clade("import", hierarchy, url, *options)
    assert f": {sum(counts.values())} (" in imported(result)
    for level, count in counts.items():
        assert f"{count} {level}" in result.stdout
    assert "The scan of theirs-" in result.stderr
    assert f"Read {len(items)} items with " in result.stderr
    nodes = exported(clade, hierarchy)
    assert {level: sum(node["level"] == level for node in nodes) for level in counts} == counts
    consistent(store_url)
    assert "Nothing changed." in imported(clade("import", hierarchy, url, *options))
    assert exported(clade, hierarchy) == nodes


def test_attributes_and_names_are_those_of_the_items(clade: Callable[..., Any], table: Callable[..., str]) -> None:
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
    clade: Callable[..., Any], table: Callable[..., str], engine: engines.Engine, store_url: str
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


def test_what_has_changed_comes_with_the_same_command(
    clade: Callable[..., Any], table: Callable[..., str], engine: engines.Engine
) -> None:
    hierarchy, items, options, _ = SYSTEMS["products"]
    url = table(items)
    imported(clade("import", hierarchy, url, *options))
    name = url.removeprefix("dynamodb://").partition("?")[0]
    asyncio.run(fill(engine, name, [{**items[0], "price": Decimal("749.5")}], create=False))
    assert "changed: 1 (1 PRODUCT)\nunchanged: 5" in imported(clade("import", hierarchy, url, *options))


def test_items_that_do_not_match_are_rejected_with_their_keys_and_can_be_corrected(
    clade: Callable[..., Any], table: Callable[..., str], tmp_path: Path
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
    assert "price: 'cheap' is not a valid Decimal." in result.stderr
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
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_described_command_imports_the_table(
    clade: Callable[..., Any], table: Callable[..., str], system: str
) -> None:
    hierarchy, items, options, _ = SYSTEMS[system]
    described = clade("import", hierarchy, table(items), "--describe")
    command = shlex.split(imported(described).splitlines()[-1])
    assert f"The template matches {len(items)} of {len(items)} items." in described.stdout
    proposed = "Equipment_{equipment} / v{version}_{audit}" if system == "audits" else options[1]
    assert command[4:6] == ["--key", proposed]
    result = clade(*command[1:], "--ignore-unknown")
    assert "added: " in imported(result)
    assert exported(clade, hierarchy)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_dry_run_reads_one_page_and_writes_nothing(
    clade: Callable[..., Any], table: Callable[..., str], engine: engines.Engine, exact: None
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
        (["--key", "{category}[#{product}"], "a [ has no ]"),
        (["--key", "{category}]"], "a ] has no ["),
        (["--key", "{category"], 'a level is in braces, such as {city}, not "{category"'),
        (["--key", "{category}{product}"], "nothing stands between {category} and the next level"),
        (["--key", "{product*}/"], "PRODUCT cannot be under PRODUCT, so {product*} is not possible"),
        (["--key", "{category*}"], "{category*} has no delimiter; write {category*/} or {category*}/"),
        (["--key", "{category}", "--delimiter", ";"], "are for files, not for DynamoDB tables."),
        (["--key", "{category}", "--name", "variant=x"], "--name variant needs a column for this level"),
        (["--key", "{category}", "--prune", "--dry-run"], "--prune needs a whole table; this has a part of it."),
    ],
)
def test_a_wrong_option_is_one_sentence(
    clade: Callable[..., Any], table: Callable[..., str], options: list[str], message: str
) -> None:
    result = clade("import", "category", table(PRODUCTS), *options)
    assert isinstance(result.exception, BadInput), result.output + repr(result.exception)
    assert message in str(result.exception)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_table_that_is_not_there_is_one_sentence(clade: Callable[..., Any], engine: engines.Engine) -> None:
    result = clade("import", "category", engine.address("absent"), "--key", "{category} / {product}")
    assert isinstance(result.exception, NoTable)
    assert str(result.exception) == 'There is no table "absent" in this region and account.'


# -- items that refer to their parents ---------------------------------------------------------------------------------

GROUPS = [
    {"PK": "g3", "SK": "META", "parentId": "g2", "title": "Robots", "warehouse": "B7"},
    {"PK": "g1", "SK": "META", "title": "Garden"},
    {"PK": "g2", "SK": "META", "parentId": "g1", "title": "Mowers"},
    {"PK": "g4", "SK": "META", "parentId": "g1", "title": "Hoses", "made": {"in": "Kyiv", "year": Decimal(2024)}},
    {"PK": "g5", "SK": "META", "parentId": "g3", "title": "R1 / red"},
]  # fmt: skip
GROUP_PATHS = {
    "Garden": "g1", "Garden/Hoses": "g4", "Garden/Mowers": "g2", "Garden/Mowers/Robots": "g3",
    "Garden/Mowers/Robots/R1 %2F red": "g5",
}  # fmt: skip
BY = ["--tree-by", "id=PK,parent=parentId"]


def by_path(clade: Callable[..., Any], hierarchy: str = "category") -> dict[str, str]:
    return {
        "/".join(one.replace("/", "%2F") for one in node["path"]): node["id"] for node in exported(clade, hierarchy)
    }


def test_items_that_refer_to_their_parents_are_the_tree_that_they_say(
    clade: Callable[..., Any], table: Callable[..., str], store_url: str
) -> None:
    url = table(GROUPS)
    done = clade("import", "category", url, *BY)
    assert "added: 5 (5 CATEGORY)" in imported(done)
    assert "1 root; nodes by depth: 1, 2, 1, 1" in done.stdout
    assert 'not imported: "SK", "made.in", "made.year", "warehouse".' in done.stderr
    assert "Read 5 items with " in done.stderr
    assert by_path(clade) == GROUP_PATHS
    consistent(store_url)
    assert "Nothing changed.\nunchanged: 5" in imported(clade("import", "category", url, *BY))


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_table_moves_nodes_whose_items_have_another_parent_and_prunes_those_without_an_item(
    clade: Callable[..., Any], table: Callable[..., str], engine: engines.Engine, tmp_path: Path
) -> None:
    imported(clade("import", "category", table(GROUPS), *BY))
    later = [{**GROUPS[0], "parentId": "g4"}, GROUPS[1], GROUPS[3], GROUPS[4]]
    url = table(later)
    assert "would be moved: 1 (1 CATEGORY)" in imported(clade("import", "category", url, *BY, "--prune", "--dry-run"))
    assert by_path(clade) == GROUP_PATHS
    imported(clade("import", "category", url, *BY, "--prune"))
    assert by_path(clade) == {
        "Garden": "g1", "Garden/Hoses": "g4", "Garden/Hoses/Robots": "g3", "Garden/Hoses/Robots/R1 %2F red": "g5",
    }  # fmt: skip
    assert not [*tmp_path.glob("*.scan")]


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_levels_keys_and_values_of_items_are_as_in_files(clade: Callable[..., Any], table: Callable[..., str]) -> None:
    items = [
        {"nr": "2", "kind": "p", "above": "1", "code": "TV", "price": Decimal("799.99"), "maker": "LG", "label": "Set"},
        {"nr": "1", "kind": "c", "above": "NONE!", "code": "Electronics", "label": "Electronics"},
        {"nr": "3", "kind": "v", "above": "2", "code": "Black", "stock": Decimal(15), "color": "Black"},
    ]
    words = ["--tree-by", "id=nr,parent=above,key=code,level=kind", "--level", "category=c", "--level", "product=p"]
    words += ["--level", "variant=v", "--attr", "product.brand=maker", "--null", "above=NONE!", "--numbers", "1.234,56"]
    imported(clade("import", "category", table(items), *words))
    nodes = {"/".join(node["path"]): node for node in exported(clade, "category")}
    assert [*nodes] == ["Electronics", "Electronics/TV", "Electronics/TV/Black"]
    product, variant = nodes["Electronics/TV"], nodes["Electronics/TV/Black"]
    assert (product["name"], product["price"], product["brand"], variant["stock"]) == ("Set", "799.99", "LG", 15)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_rejected_items_of_a_tree_can_be_corrected(
    clade: Callable[..., Any], table: Callable[..., str], tmp_path: Path
) -> None:
    strange = [
        {"PK": "x1", "SK": "META", "parentId": "x2", "title": "Egg"},
        {"PK": "x2", "SK": "META", "parentId": "x1", "title": "Hen"},
        {"PK": "x3", "SK": "META", "parentId": "gone", "title": "Lost"},
    ]
    url = table([*GROUPS, *strange])
    name = url.removeprefix("dynamodb://").partition("?")[0]
    done = clade("import", "category", url, *BY)
    assert done.exit_code == 1
    assert "The parents are a circle: " in done.stderr
    assert 'No row has the id of its parent, "gone"' in done.stderr
    assert by_path(clade) == GROUP_PATHS
    rejected = tmp_path / f"{name}.rejected.json"
    text = rejected.read_text()
    assert [json.loads(line)["Item"]["PK"]["S"] for line in text.splitlines()[1::2] if line] != []
    rejected.write_text(text.replace('"gone"', '"g2"').replace('"parentId":{"S":"x2"}', '"parentId":{"S":"g4"}'))
    assert "added: 3 (3 CATEGORY)" in imported(clade("import", "category", rejected.name, *BY))
    paths = by_path(clade)
    assert (paths["Garden/Hoses/Egg/Hen"], paths["Garden/Mowers/Lost"]) == ("x2", "x3")


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_described_tree_of_items_is_imported_by_the_proposed_command(
    clade: Callable[..., Any], table: Callable[..., str]
) -> None:
    described = clade("import", "category", table(GROUPS), "--describe")
    command = shlex.split(imported(described).splitlines()[-1])
    assert command[4:] == BY
    assert "  made.in: Kyiv (not imported)" in described.stdout
    imported(clade(*command[1:]))
    assert by_path(clade) == GROUP_PATHS


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_dry_run_of_a_tree_reads_the_whole_table_since_parents_may_be_on_any_page(
    clade: Callable[..., Any], table: Callable[..., str], exact: None
) -> None:
    items = [
        {"PK": f"g{n:03}", "SK": "META", **({"parentId": f"g{(n * 7) % n:03}"} if n else {}), "title": f"N {n}",
         "text": "x" * 10_000} for n in range(250)
    ]  # fmt: skip
    dry = clade("import", "category", table(items), *BY, "--dry-run")
    assert "would be added: 250 (250 CATEGORY)" in imported(dry)
    assert exported(clade, "category") == []


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([*BY, "--key", "{category}"], "--key and --tree-by both say where items are in the tree; give one of them."),
        (["--tree-by", "id=PK"], "--tree-by id=PK is not understood; use --tree-by id=ID,parent=PARENT"),
        (["--tree-by", "id=PK,parent=mother"], 'The file has no column "mother"; it has "PK", "SK"'),
        ([*BY, "--delimiter", ";"], "are for files, not for DynamoDB tables."),
        ([*BY, "--format", "jsonl"], "--format is for files, and dynamodb://"),
        ([*BY, "--keys", "PK,SK"], "--keys names the keys that --key has levels of; leave it out with --tree-by"),
        (["--key", "{category}", "--null", "x"], "--null and --numbers are for files, and for DynamoDB tables without"),
        (["--key", "{category} / {product}"], "use --tree-by id=PK,parent=parentId instead of --key"),
    ],
)
def test_a_wrong_option_for_a_tree_of_items_is_one_sentence_and_nothing_is_written(
    clade: Callable[..., Any], table: Callable[..., str], options: list[str], message: str
) -> None:
    result = clade("import", "category", table(GROUPS), *options)
    assert isinstance(result.exception, BadInput), result.output + repr(result.exception)
    assert message in str(result.exception)
    assert exported(clade, "category") == []


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_scan_is_not_paid_for_again_after_a_mistyped_attribute(
    clade: Callable[..., Any], table: Callable[..., str]
) -> None:
    url = table(GROUPS)
    assert isinstance(clade("import", "category", url, "--tree-by", "id=PK,parent=parentid").exception, BadInput)
    done = clade("import", "category", url, *BY)
    assert "added: 5" in imported(done)
    assert "Read 0 items with 0.0 read units." in done.stderr


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_attributes_of_items_may_be_the_levels(clade: Callable[..., Any], table: Callable[..., str]) -> None:
    items = [
        {"id": "a7", "made": "2024", "country": "UA", "city": "Kyiv", "area": Decimal(839)},
        {"id": "a8", "made": "2024", "country": "UA", "city": "Lviv", "area": Decimal(149)},
    ]
    url = table(items)
    words = ["--level", "country=country", "--level", "city=city", "--id", "city=id"]
    described = imported(clade("import", "location", url, *words, "--describe"))
    assert shlex.split(described.splitlines()[-1])[4:] == words
    assert "  made: 2024 (not imported)" in described
    assert "added: 3 (1 COUNTRY, 2 CITY)" in imported(clade("import", "location", url, *words))
    assert ["/".join(node["path"]) for node in exported(clade, "location")] == ["UA", "UA/Kyiv", "UA/Lviv"]


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_table_that_no_command_imports_is_not_described_as_a_success(
    clade: Callable[..., Any], table: Callable[..., str]
) -> None:
    for items in (
        [{"pk": f"a{n}#b#c#d#e#f", "sk": f"e{n}#f#g#h#i", "path": "a", "level": "b"} for n in range(5)],
        [{"id": f"k{n}", "parentId": f"k{n // 2}", "path": "a", "level": "CITY"} for n in range(9)],
    ):
        described = clade("import", "location", table(items), "--describe")
        assert isinstance(described.exception, BadInput), described.output
        assert "Proposed command" not in described.stdout


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("way", [BY, ["--keys", "PK,SK", "--key", "{category} / {product}"]], ids=["tree", "keys"])
def test_what_is_no_dynamodb_json_is_rejected(clade: Callable[..., Any], tmp_path: Path, way: list[str]) -> None:
    wrong = [{"M": "x"}, {"L": "x"}, {"SS": "abc"}, {"NS": [1]}, {"S": 7}, {"N": 7}, {"S": "x", "N": "7"}, {}, "DEEP"]
    items = [{"PK": {"S": "A"}, "SK": {"S": f"x{n}"}, "brand": value} for n, value in enumerate(wrong)]
    items.append({"PK": {"S": "B"}, "SK": {"S": "y"}, "brand": {"S": "Sony"}, "parentId": {"NULL": True}})
    lines = "".join(json.dumps({"Item": item}) + "\n" for item in items)
    deep = '{"M":{"a":' * 480 + '{"S":"x"}' + "}}" * 480
    (tmp_path / "x.json").write_text(lines.replace('"DEEP"', deep) + "not JSON\n")
    done = clade("import", "category", "x.json", *way)
    assert done.exit_code == 1
    assert "rejected: 10 rows" in done.stderr, done.output + repr(done.exception)
    assert "{'M': 'x'} is no value in DynamoDB JSON." in done.stderr
    assert "B" in {node["path"][0] for node in exported(clade, "category")}


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_the_scan_of_an_empty_table_is_not_continued_later(
    clade: Callable[..., Any], table: Callable[..., str], engine: engines.Engine
) -> None:
    url = table([GROUPS[1]])
    name = url.removeprefix("dynamodb://").partition("?")[0]

    async def change(method: str, **words: Any) -> None:
        session = aioboto3.Session(*engines.KEY_PAIR.values(), region_name="eu-west-1")
        async with session.resource("dynamodb", endpoint_url=engine.url) as dynamodb:
            await getattr(await dynamodb.Table(name), method)(**words)

    asyncio.run(change("delete_item", Key={"PK": "g1", "SK": "META"}))
    empty = clade("import", "category", url, *BY)
    assert f"{name} has no items." in str(empty.exception)
    asyncio.run(change("put_item", Item={**GROUPS[1], "parentId": "0"}))
    assert "added: 1 (1 CATEGORY)" in imported(clade("import", "category", url, *BY))
