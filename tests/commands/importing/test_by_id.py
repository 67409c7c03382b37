"""`clade import --by id`: names and attributes of stored nodes by the ids of a file, whatever their paths."""

import gzip
import json
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from commands.importing.command import import_file
from commands.importing.files import by_id_column
from store.errors import BadInput, NoTable
from tests.commands.conftest import Clade
from tests.commands.importing.files import parquet_file, written
from tests.commands.importing.test_excel import workbook

TREE: list[dict[str, object]] = [
    {"path": "Garden", "level": "CATEGORY", "id": "g"},
    {"path": "Garden/Mower", "level": "PRODUCT", "id": "m", "brand": "Nordlys", "price": "100.00"},
    {"path": "Garden/Mower/Red", "level": "VARIANT", "id": "m-1", "stock": 3, "price": "90.00"},
    {"path": "Garden/Mower/Blue", "level": "VARIANT", "id": "m-2", "stock": 4, "names": {"de": "Blau"}},
    {"path": "Tools", "level": "CATEGORY", "id": "t"},
    {"path": "Tools/Saw\u00ad", "level": "PRODUCT", "id": 'Sæge_"9"', "brand": "Halo", "price": "5"},
    {"path": "Tools/Axe", "level": "PRODUCT", "id": "0012", "price": "7"},
]
Nodes = dict[str, dict[str, Any]]


@pytest.fixture
def filled(clade: Clade, tmp_path: Path) -> Clade:
    """Runs a command on a table with nodes in two trees."""
    file = written(tmp_path / "tree.jsonl", "".join(json.dumps(one | {"undefined": {}}) + "\n" for one in TREE))
    assert clade("import", "category", file).exit_code == 0
    return clade


def nodes(clade: Clade, hierarchy: str = "category") -> Nodes:
    """The nodes by their ids."""
    return {one["id"]: one for one in map(json.loads, clade("export", hierarchy).stdout.splitlines())}


FEED = '''\
path,price,id,stock,name,level
x,120,m,,Robot mower,STORE
,91.5,m-1,0,,
x/y,,m-2,7,,
,8,"Sæge_""9""",,,
,1,gone,1,,
,,0012,,,
,1,,,,
,2,t,,,
,6 EUR,m-3,,,
'''


@pytest.mark.both_stores
def test_rows_change_the_nodes_of_their_ids_wherever_these_are(filled: Clade, tmp_path: Path) -> None:
    moved = {"path": ["Tools", "Robot"], "level": "PRODUCT", "id": "m"}
    assert filled("import", "category", written(tmp_path / "m.jsonl", json.dumps(moved)), "--moves").exit_code == 0
    before, file = nodes(filled), written(tmp_path / "feed.csv", FEED)
    planned = filled("import", "category", file, "--by", "id", "--dry-run", "--json")
    assert (nodes(filled), (tmp_path / "feed.rejected.csv").exists()) == (before, False)
    done = filled("import", "category", file, "--by", "id", "--json")
    report = json.loads(done.stdout)
    for one in (json.loads(planned.stdout), report):
        assert (one["rows"], one["nodes"], one["unchanged"]) == (9, 5, 0)
        assert (one["updated"], one["created"], one["moved"]) == ({"PRODUCT": 3, "VARIANT": 2}, {}, {})
    assert (done.exit_code, {one["row"]: one["reason"] for one in report["rejected"]}) == (1, {
        6: "No node has the id gone; import it with its path first.", 8: 'The row has no id in "id".',
        9: 'CATEGORY has no attribute "price"; it has none.',
        10: "No node has the id m-3; import it with its path first.",
    })  # fmt: skip
    expected = {node_id: dict(one) for node_id, one in before.items()}
    expected["m"] |= {"price": "120", "name": "Robot mower"}
    expected["m-1"] |= {"price": "91.5", "stock": 0}
    expected["m-2"] |= {"stock": 7}
    expected['Sæge_"9"'] |= {"price": "8"}
    del expected["0012"]["price"]
    assert nodes(filled) == expected
    assert expected["m-1"]["path"] == ["Tools", "Robot", "Red"]
    again = filled("import", "category", file, "--by", "id", "--allow-rejects")
    assert (again.exit_code, "Nothing changed.\nunchanged: 5" in again.stdout) == (0, True), again.output
    assert "no findings" in filled("check").stdout
    rejected = tmp_path / "feed.rejected.csv"
    assert rejected.read_text().splitlines()[0] == "path,price,id,stock,name,level,$reason"
    fixed = written(rejected, rejected.read_text().replace(",gone,", ",m-2,").replace("6 EUR,m-3", "6,m"))
    assert "changed: 2 (1 PRODUCT, 1 VARIANT)" in filled("import", "category", fixed, "--by", "id").stdout


@pytest.mark.parametrize("lines", [["m,1", "m,2", "t,"], ["m,1", "t,", "m,1"], ["m,x", "m,2", "t,"]])
def test_all_rows_of_an_id_that_several_have_are_rejected(filled: Clade, tmp_path: Path, lines: list[str]) -> None:
    before = filled("export", "category").stdout
    file = written(tmp_path / "a.csv", "\n".join(["id,price", *lines, "m,3"]))
    done = filled("import", "category", file, "--by", "id", "--json")
    report = json.loads(done.stdout)
    first, second = (number for number, line in enumerate(lines, start=2) if line.startswith("m"))
    reasons = {one["row"]: one["reason"] for one in report["rejected"]}
    assert (done.exit_code, report["nodes"], report["unchanged"], {*reasons}) == (1, 1, 1, {first, second, 5})
    twice = "Row {} has the id m, too; write one row for each id."
    assert reasons[second] == reasons[5] == twice.format(first)
    assert reasons[first] == twice.format(second) or "x" in lines[0]
    assert filled("export", "category").stdout == before


GERMAN = [["Nr", "Preis", "Lager", "Bezeichnung"], ["m", "1.120,50", "", ""], ["m-1", "90,00", "12", "Rot"],
          ["0012", "n/a", "", "Axt"]]  # fmt: skip
COLUMNS = ["--by", "id=Nr", "--attr", "product.price=Preis", "--attr", "variant.price=Preis",
           "--attr", "variant.stock=Lager", "--name-in", "product.de=Bezeichnung",
           "--name-in", "variant.de=Bezeichnung"]  # fmt: skip
TYPED: list[list[Any]] = [["Nr", "Preis", "Lager", "Bezeichnung"], ["m", 1120.5, None, None], ["m-1", 90, 12, "Rot"],
         ["0012", None, None, "Axt"]]  # fmt: skip
OBJECTS = [{name: value for name, value in zip(TYPED[0], row, strict=True) if name != "Lager" or value is not None}
           for row in TYPED[1:]]  # fmt: skip


@pytest.mark.parametrize("form", ["csv", "utf-16", "cp1252", "gz", "xlsx", "parquet", "jsonl", "json"])
def test_every_table_is_taken_with_columns_of_any_name(filled: Clade, tmp_path: Path, form: str) -> None:
    file, more = tmp_path / f"feed.{form}", list[str]()
    if form in ("csv", "utf-16", "cp1252"):
        text = "".join(";".join(row) + "\n" for row in [*GERMAN, ["ß", "1,00", "", ""]])
        file = tmp_path / "feed.csv"
        file.write_bytes(text.encode("utf-8-sig" if form == "csv" else form))
        more = ["--numbers", "1.234,56", "--null", "Preis=n/a", "--allow-rejects"]
        more += ["--encoding", form] if form == "cp1252" else []
    elif form == "xlsx":
        workbook(file, TYPED, {"B3": "0.00"})
    elif form == "parquet":
        file.write_bytes(parquet_file([dict(zip(TYPED[0], row, strict=True)) for row in TYPED[1:]]))
    elif form == "json":
        file.write_text(json.dumps({"items": OBJECTS}))
    else:
        lines = "".join(json.dumps(one) + "\n" for one in OBJECTS)
        file = tmp_path / ("feed.jsonl.gz" if form == "gz" else "feed.jsonl")
        file.write_bytes(gzip.compress(lines.encode()) if form == "gz" else lines.encode())
    done = filled("import", "category", file, *COLUMNS, *more)
    assert (done.exit_code, "changed: 3 (2 PRODUCT, 1 VARIANT)" in done.stdout) == (0, True), done.output
    found = nodes(filled)
    assert [float(found["m"]["price"]), found["m"].get("names")] == [1120.5, None]
    assert [float(found["m-1"]["price"]), found["m-1"]["stock"], found["m-1"]["names"]] == [90, 12, {"de": "Rot"}]
    assert ("price" in found["0012"], found["0012"]["names"]) == (False, {"de": "Axt"})
    assert found["m-2"]["names"] == {"de": "Blau"}


def test_ids_in_json_may_be_numbers_and_fields_that_an_object_lacks_stay(filled: Clade, tmp_path: Path) -> None:
    lines = [
        {"id": "m", "price": None}, {"id": 12.5, "price": 1}, {"id": True}, {"id": ["m"]}, {"price": 1}, [],
        {"id": "category:m-1", "stock": 1}, {"id": "m-1", "stock": 2**63 - 1}, {"id": "m-2", "color": "x", "size": 1},
    ]  # fmt: skip
    file = written(tmp_path / "feed.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    done = filled("import", "category", file, "--by", "id", "--json")
    reasons = {one["row"]: one["reason"] for one in json.loads(done.stdout)["rejected"]}
    for number, reason in {
        2: "The id is 12.5, which", 3: "The id is true, which", 4: 'The id is ["m"], which',
        5: 'The row has no id in "id".', 6: "The line is not a JSON object",
        7: 'The id "category:m-1" has', 8: "stock", 9: "VARIANT has no attribute",
    }.items():  # fmt: skip
        assert reason in reasons.pop(number)
    assert (reasons, nodes(filled)["m"]) == ({}, {
        "path": ["Garden", "Mower"], "level": "PRODUCT", "name": "Mower", "id": "m", "brand": "Nordlys",
    })  # fmt: skip
    assert filled("import", "category", file, "--by", "id", "--ignore-unknown").exit_code == 1
    assert nodes(filled)["m-2"]["color"] == "x"


SHOPS = [
    ["New", "", "Ann", "12.5", "", "", ""], ["", '{"de":"Neu"}', "Ann", "", "", "", ""],
    ["", "", "", "", "", "", ""], ["", "", "ann", "", "", "", ""], ["", "", "Ann", "5 EUR", "", "", ""],
    ["", "", "Ann", "", "", "", "3"], ["", "", "Ann", "0.4", "", "", ""], ["", "", "Ann", "", '["a","b"]', "", ""],
    ["", "", "Bob", "", "a;b", "", ""], ['" a"', "", '"Ann"', "", "", "", ""], ["", "", "Ann", "9" * 400, "", "", ""],
    ["", "{", "Ann", "", "", "", ""], ["", "", "Ann", "", "", "1889-01-01", ""], ["x" * 400_000, "", "Ann", *[""] * 4],
    ["", "", "Ann", "1e400", "", "9999-12-31", ""], ["", '{"de":null}', "Ann", "", "A;b", "", ""],
]  # fmt: skip
HEAD = ["name", "names", "owner", "area", "codes", "opened", "floors"]


@pytest.mark.parametrize("owner", ["owner", "keeper"])
def test_values_are_taken_and_refused_as_in_a_file_of_paths(
    clade: Clade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: str
) -> None:
    monkeypatch.setenv("CLADE_HIERARCHIES", "tests.classes.shops")
    shop: dict[str, object] = {"level": "SHOP", "owner": "Eve", "area": "7", "codes": ["x"], "names": {"de": "alt"}}
    tree: list[dict[str, object]] = [{"path": "M", "level": "MALL", "id": "mall", "floors": 4}]
    tree += [shop | {"path": f"M/{n}", "id": f"s{n}"} for n in range(len(SHOPS))]
    assert clade("import", "place", written(tmp_path / "t.jsonl", "\n".join(map(json.dumps, tree)))).exit_code == 0
    rows = {f"s{n}": cells for n, cells in enumerate(SHOPS)} | {"mall": ["", "", "", "", "", "", "9"]}
    head = [owner if name == "owner" else name for name in HEAD]
    files = {"ids": [["id", *head]], "paths": [["path", "level", *head]]}
    for node_id, cells in rows.items():
        files["ids"].append([node_id, *cells])
        files["paths"].append([*(["M", "MALL"] if node_id == "mall" else [f"M/{node_id[1:]}", "SHOP"]), *cells])
    words = {}
    for name, lines in files.items():
        quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in line) for line in lines]
        words[name] = ["import", "place", written(tmp_path / f"{name}.csv", "\n".join(quoted)), "--json", "--yes"]
        words[name] += ["--ignore-unknown"] if owner == "keeper" else []
    words["ids"] += ["--by", "id"]

    def report(name: str, *more: str) -> dict[str, Any]:
        found = json.loads(clade(*words[name], *more).stdout)
        return {key: found[key] for key in ("rows", "nodes", "updated", "unchanged", "rejected", "undefined")}

    by_paths = report("paths", "--dry-run")
    assert (by_paths, len(by_paths["rejected"]) > 5) == (report("ids"), True)
    assert (report("ids")["updated"], report("paths")["updated"]) == ({}, {})


def test_a_file_that_is_not_by_ids_is_refused_before_anything_is_written(filled: Clade, tmp_path: Path) -> None:
    def refusal(text: str, *more: str, name: str = "feed.csv") -> str:
        done = filled("import", "category", written(tmp_path / name, text), "--by", *(more or ["id"]))
        assert isinstance(done.exception, BadInput), done.output
        return str(done.exception)

    before = filled("export", "category").stdout
    assert 'no column "id" of ids; it has "sku", "price". --by id=COLUMN' in refusal("sku,price\nm,1\n")
    assert 'no column "SKU" of ids' in refusal("sku,price\nm,1\n", "id=SKU")
    assert '2 columns "id"' in refusal("id,id,price\nm,m,1\n")
    for column in ("colour", "id"):
        assert f'Column "{column}" of feed.csv is no attribute of a level of category' in refusal(
            f"sku,{column},price\nm,x,1\n", "id=sku"
        )
    assert "--by id needs a table" in refusal("1 - Tools\n2 - Saws\n", name="feed.txt")
    assert "would be rejected; row 2: No node has the id x0" in refusal(
        "id,price\n" + "".join(f"x{number},1\n" for number in range(150)) + "m,1\n"
    )
    assert "--by is id or id=COLUMN, not key" in refusal("id\nm\n", "key")
    assert "--by is id or id=COLUMN, not id=" in refusal("id\nm\n", "id=")
    for options in ("--prune=all", "--fold-case product", "--fill-down price"):
        assert options.split("=")[0].split()[0] in refusal("id,price\nm,1\n", "id", *options.split())
    assert "are for the cells of tables" in refusal('{"id": "m"}', "id", "--null", "x", name="feed.jsonl")
    assert "not a DynamoDB table" in str(filled("import", "category", "dynamodb://Shop", "--by", "id").exception)
    missing = filled("import", "category", tmp_path / "feed.csv", "--by", "id", "--dry-run", "--store",
                     f"sqlite:///{tmp_path}/none.db")  # fmt: skip
    assert (type(missing.exception), (tmp_path / "none.db").exists()) == (NoTable, False)
    assert filled("export", "category").stdout == before


@pytest.mark.parametrize(
    ("option", "way_out"),
    [
        ("levels", "--level: levels and paths are those of the stored nodes"), ("tree", "--tree-by: paths are those"),
        ("ids", "--id: --by id=COLUMN names"), ("level_ids", "as they are stored, such as city-30"),
        ("names_only", "--name-in LEVEL.LANGUAGE=COLUMN"), ("prune", "clade delete removes nodes"),
        ("prune_all", "--prune: clade delete"), ("moves", "--moves: a file of paths moves nodes"),
        ("create_parents", "a file of paths creates nodes"), ("describe", "--dry-run shows what would be changed"),
    ],
)  # fmt: skip
def test_options_that_contradict_ids_are_refused_with_the_way_out(option: str, way_out: str) -> None:
    known = signature(import_file).parameters
    with pytest.raises(BadInput, match=f"changes stored nodes where they are, and excludes .*{way_out}"):
        by_id_column("id", dict.fromkeys(known) | {option: True})
    assert option in known


def test_a_row_that_is_rejected_rejects_none_below_its_node(filled: Clade, tmp_path: Path) -> None:
    file = written(tmp_path / "feed.csv", "id,price,stock\nm,6 EUR,\nm-1,1,\nm-2,,2\n")
    done = filled("import", "category", file, "--by", "id")
    assert "changed: 2 (2 VARIANT)" in done.stdout
    assert "rejected: 1 row" in done.stderr


def test_ids_of_another_hierarchy_are_unknown(filled: Clade, tmp_path: Path) -> None:
    written(tmp_path / "city.jsonl", '{"path": "US", "level": "COUNTRY", "id": "m"}\n')
    assert filled("import", "location", tmp_path / "city.jsonl").exit_code == 0
    file = written(tmp_path / "feed.csv", "id,name\nm,USA\ng,x\n")
    done = filled("import", "location", file, "--by", "id")
    assert ("changed: 1 (1 COUNTRY)" in done.stdout, "No node has the id g" in done.stderr) == (True, True)
    assert nodes(filled)["m"]["name"] == "Mower"


PATHS, IDS = ["path,level,", "Garden/Mower,PRODUCT,", "Garden/Mower/Red,VARIANT,"], ["id,", "m,", "m-1,"]


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("form", ["paths", "ids", "ids in JSON"])
def test_a_column_of_one_level_alone_rejects_rows_of_others_with_a_value_unless_unknown_ones_are_ignored(
    filled: Clade, tmp_path: Path, form: str
) -> None:
    heads, by = (PATHS, []) if form == "paths" else (IDS, ["--by", "id"])
    lines = [f"{heads[0]}Lager,color", f"{heads[1]}4,", f"{heads[2]}5,red"]
    file = written(tmp_path / "stock.csv", "\n".join(lines))
    if form == "ids in JSON":
        objects = [{"id": "m", "Lager": 4}, {"id": "m-1", "Lager": 5}]
        file = written(tmp_path / "stock.jsonl", "".join(json.dumps(one) + "\n" for one in objects))
    command = ["import", "category", file, *by, "--attr", "variant.stock=Lager", "--json"]
    report = json.loads(filled(*command, "--dry-run").stdout)
    assert report["updated"] == ({} if form == "paths" else {"VARIANT": 1})  # a rejected row rejects those below it
    assert report["rejected"][0]["reason"].startswith('PRODUCT has no attribute "Lager"')
    report = json.loads(filled(*command, "--ignore-unknown").stdout)
    assert (report["updated"], report["unchanged"], report["rejected"]) == ({"VARIANT": 1}, 1, [])


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("heads", [PATHS, IDS])
def test_a_column_that_is_there_twice_and_a_name_of_blanks_are_refused(
    filled: Clade, tmp_path: Path, heads: list[str]
) -> None:
    by = [] if heads is PATHS else ["--by", "id"]
    twice = written(tmp_path / "twice.csv", f"{heads[0]}stock,,stock,\n{heads[2]}1,,2,\n")
    refused = filled("import", "category", twice, *by)
    assert '2 columns "stock"' in str(refused.exception)
    blank = written(tmp_path / "blank.csv", f"{heads[0]}name\n{heads[2]}  \n{heads[1]}\u3000\n")
    report = json.loads(filled("import", "category", blank, *by, "--json").stdout)
    assert [one["reason"] for one in report["rejected"]] == ["The name is empty; write a text."] * 2
