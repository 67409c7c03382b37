"""`clade import --names-only`: names in one more language by ids, from the same tree in that language."""

import json
from pathlib import Path

import pytest

from store.errors import BadInput, NoTable
from tests.commands.conftest import Clade
from tests.commands.importing.files import written

TREE = [
    {"path": "12", "level": "CATEGORY", "name": "Tools", "id": "a-12"},
    {"path": "12/Saws\u00ad", "level": "CATEGORY", "name": "Saws", "id": "a-34", "names": {"fr": "Scies", "de": "alt"}},
    {"path": "12/Saws\u00ad/X", "level": "PRODUCT", "name": "X", "id": "X9", "names": {"de": "Säge X"}},
    {"path": "Garden", "level": "CATEGORY", "id": "7"},
]


@pytest.fixture
def filled(clade: Clade, tmp_path: Path) -> Clade:
    """Runs a command on a table with four nodes, one of which has a character that nobody sees in its key."""
    file = written(tmp_path / "tree.jsonl", "".join(json.dumps({**one, "undefined": {}}) + "\n" for one in TREE))
    assert clade("import", "category", file).exit_code == 0
    return clade


def names(clade: Clade) -> dict[str, tuple[str, dict[str, str]]]:
    """Names by id."""
    lines = map(json.loads, clade("export", "category").stdout.splitlines())
    return {line["id"]: (line["name"], line.get("names", {})) for line in lines}


TAXONOMY = "a-12 - Werkzeug\na-34 - Werkzeug > Sägen\nX9 - Werkzeug > Sägen > Säge X\n"
TABLE = "Kategorie,Produkt,Name,Nr,Nr2,Preis\nWZ,,Werkzeug,a-12,,x\nS,,Sägen,a-34,,\nS,SX,Sägen,a-34,X9,y\nG,,,7,,\n"
PARENTS = "Nr,Oben,Name,Art\nX9,a-12,Säge X,PRODUCT\na-12,,Werkzeug,CATEGORY\na-34,a-12,Sägen,CATEGORY\n"
LINES = "".join(
    json.dumps(line) + "\n"
    for line in [
        {"path": "Säge X", "level": "NOWHERE", "id": "X9", "color": 1},
        {"path": ["ohne Eltern", "S"], "level": "", "name": "Sägen", "id": "a-34"},
        {"path": "x", "level": "CATEGORY", "name": "Werkzeug", "id": "a-12", "names": {"fr": "lost"}},
    ]
)
LEAF = {"name": "Säge X", "id": "X9", "level": "PRODUCT"}
NESTED = [{"name": "Werkzeug", "id": "a-12", "level": "CATEGORY", "children": [
    {"name": "Sägen", "id": "a-34", "level": "CATEGORY", "children": [LEAF]},
]}]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("german.txt", TAXONOMY, []),
        ("german.jsonl", LINES, []),
        ("german.json", json.dumps(NESTED), []),
        (
            "parents.csv", PARENTS,
            ["--tree-by", "id=Nr,parent=Oben,level=Art"],
        ),
        (
            "german.csv", TABLE,
            ["--level", "category=Kategorie", "--level", "product=Produkt", "--id", "category=Nr",
             "--id", "product=Nr2", "--name", "category=Name"],
        ),
    ],
)  # fmt: skip
def test_the_same_tree_in_any_form_adds_names_by_id_and_nothing_else(
    filled: Clade, tmp_path: Path, name: str, content: str, options: list[str]
) -> None:
    file = written(tmp_path / name, content)
    if name == "german.csv":
        file = written(file, content.replace("SX", "Säge X"))
    before = filled("export", "category").stdout
    words = ["import", "category", file, *options, "--names-only", "DE"]
    dry = filled(*words, "--dry-run")
    assert (dry.exit_code, "would be changed: 2 (2 CATEGORY)" in dry.stdout) == (0, True), dry.output
    assert filled("export", "category").stdout == before
    done = filled(*words)
    assert (done.exit_code, "changed: 2 (2 CATEGORY)\nunchanged: 1" in done.stdout) == (0, True), done.output
    assert names(filled) == {
        "a-12": ("Tools", {"de": "Werkzeug"}), "a-34": ("Saws", {"fr": "Scies", "de": "Sägen"}),
        "X9": ("X", {"de": "Säge X"}), "7": ("Garden", {}),
    }  # fmt: skip
    assert [json.loads(line)["path"] for line in filled("export", "category").stdout.splitlines()] == [
        json.loads(line)["path"] for line in before.splitlines()
    ]
    assert "Nothing changed.\nunchanged: 3" in filled(*words).stdout
    assert "no findings" in filled("check").stdout


def test_rows_without_a_stored_id_are_rejected_with_their_lines(filled: Clade, tmp_path: Path) -> None:
    lines: list[object] = [
        {"path": "W", "level": "CATEGORY", "id": "none"}, {"path": "W", "level": "CATEGORY"},
        {"path": "W", "level": "CATEGORY", "id": "a 12"}, {"path": "W", "level": "CATEGORY", "id": 12},
        {"path": "W", "level": "CATEGORY", "id": "a-12"}, {"path": "V", "level": "CATEGORY", "id": "a-12"},
        {"path": "S", "level": "CATEGORY", "id": "a-34", "name": "x" * 100_000}, [],
    ]  # fmt: skip
    file = written(tmp_path / "german.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    done = filled("import", "category", file, "--names-only", "de", "--json")
    assert done.exit_code == 1
    report = json.loads(done.stdout)
    assert (report["rows"], report["updated"]) == (8, {"CATEGORY": 1})
    reasons = {one["row"]: one["reason"] for one in report["rejected"]}
    for number, reason in {
        1: "No node has the id none; import it with its path first.", 2: "No node of the row has an id.",
        3: 'The id "a 12" has a blank', 4: "The id is 12, which is not a text",
        6: "12 has the name in de W in row 5 already, not V.", 7: "The name has 100,000 characters",
        8: "The line is not a JSON object",
    }.items():  # fmt: skip
        assert reasons.pop(number).startswith(reason)
    assert reasons == {}
    assert names(filled)["a-12"] == ("Tools", {"de": "W"})


def test_ids_of_a_level_are_found_with_their_level(clade: Clade, tmp_path: Path) -> None:
    words = ["--level", "country=C", "--level", "city=T", "--id", "country=I", "--id", "city=J", "--level-ids"]
    file = written(tmp_path / "places.csv", "C,T,I,J\nAT,,30,\nAT,Vienna,30,30\n")
    assert clade("import", "location", file, *words).exit_code == 0
    written(file, "C,T,I,J\nÖsterreich,,30,\nÖsterreich,Wien,30,30\n")
    done = clade("import", "location", file, *words, "--names-only", "de")
    assert (done.exit_code, "changed: 2 (1 COUNTRY, 1 CITY)" in done.stdout) == (0, True), done.output


def test_what_does_not_fit_is_refused_before_the_file_is_read(clade: Clade, tmp_path: Path) -> None:
    file = written(tmp_path / "german.txt", TAXONOMY)
    words = ["import", "category", file, "--names-only"]
    for option in ("--prune", "--moves", "--describe"):
        assert "leave --prune, --moves and --describe out" in str(clade(*words, "de", option).exception)
    assert "is not a language tag" in str(clade(*words, "d").exception)
    assert isinstance(clade(*words, "de", "--store", f"sqlite:///{tmp_path}/none.db").exception, NoTable)
    assert not (tmp_path / "none.db").exists()
    assert isinstance(clade("import", "category", file, "--describe", "--json").exception, BadInput)
