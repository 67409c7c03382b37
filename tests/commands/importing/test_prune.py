"""Pruning: what a file does not speak of, or speaks of in rows that are rejected, stays."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

Clade = Callable[..., Result]
Line = tuple[str, str] | tuple[str, str, dict[str, Any]]

SHOP: list[Line] = [
    ("S", "CATEGORY"), ("S/P", "PRODUCT", {"id": "p", "price": "5"}), ("S/P/V", "VARIANT"), ("S/P/W", "VARIANT"),
]  # fmt: skip
TOOLS: list[Line] = [
    ("Shop", "CATEGORY"), ("Shop/Tools", "CATEGORY", {"id": "z"}), ("Shop/Tools/Own", "CATEGORY"),
    ("Shop/Tools/Own/Deep", "CATEGORY"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(path: Path, lines: Sequence[Line]) -> str:
    rows = [{"path": path, "level": level, **(more[0] if more else {})} for path, level, *more in lines]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path.name


def paths(clade: Clade) -> list[str]:
    return ["/".join(json.loads(line)["path"]) for line in clade("export", "category").stdout.splitlines()]


@pytest.mark.parametrize(
    ("before", "after", "options", "rejected"),
    [
        (SHOP, [SHOP[0], ("S/Q", "PRODUCT", {"id": "p", "price": "5 EUR"}), ("S/Q/V", "VARIANT"),
                ("S/Q/W", "VARIANT")], ["--moves"], 3),
        (SHOP, [SHOP[0], ("S/Q", "PRODUCT", {"id": "p"}), ("S/Q/V", "VARIANT"), ("S/Q/X", "VARIANT")], [], 3),
        (SHOP, [SHOP[0], ("S/P", "CATEGORY"), ("S/P/V", "VARIANT"), ("S/P/X", "VARIANT")], [], 3),
        (SHOP, [SHOP[0], ("S/P", "PRODUCT", {"price": "5 EUR"}), ("S/P/X", "VARIANT")], [], 2),
        (TOOLS, [TOOLS[0], ("Shop/Tools", "CATEGORY", {"id": "a"}), ("Shop/Tools/Hand", "CATEGORY")], [], 2),
        (TOOLS, [TOOLS[0], ("Shop/Hand", "CATEGORY", {"id": 5}), ("Shop/Hand/Own", "CATEGORY")], [], 2),
        ([*SHOP, ("T", "CATEGORY"), ("T/Q", "CATEGORY", {"id": "q"}), ("T/Q/R", "CATEGORY")],
         [SHOP[0], ("S/Q", "PRODUCT", {"id": "q"}), *SHOP[1:], ("T", "CATEGORY")], ["--moves"], 1),
        ([SHOP[0], ("S/P", "PRODUCT", {"id": "product-5"}), SHOP[2]],
         [SHOP[0], ("S/Q", "PRODUKT", {"id": "5"}), ("S/Q/V", "VARIANT")], ["--level-ids"], 2),
        (SHOP[:2], [SHOP[0], ("S/P/V", "VARIANT", {"price": "5 EUR"})], [], 1),
        (SHOP[:2], [SHOP[0], ("S/P/V/W", "VARIANT")], [], 1),
    ],
    ids=["wrong value of a moved node", "id elsewhere", "other level", "wrong value", "other id", "invalid id",
         "move of another level", "id within no level", "wrong value below a node without a row",
         "no parent below a node without a row"],
)  # fmt: skip
@pytest.mark.parametrize("prune", [["--prune"], ["--prune=all"], []])
def test_nothing_below_a_rejected_row_is_removed_or_created(
    clade: Clade, tmp_path: Path, before: list[Line], after: list[Line], options: list[str], rejected: int,
    prune: list[str],
) -> None:  # fmt: skip
    assert clade("import", "category", written(tmp_path / "before.jsonl", before)).exit_code == 0
    there = paths(clade)
    words = ["import", "category", written(tmp_path / "after.jsonl", after), *options, *prune]
    for dry_run in (["--dry-run"], []):
        done = clade(*words, *dry_run)
        assert (done.exit_code, paths(clade)) == (1, there), done.output
        assert f"rejected: {rejected} row" in done.stderr
        assert f"Nothing {'would change' if dry_run else 'changed'}." in done.stdout


def test_a_renamed_city_keeps_its_stores_until_it_may_move(clade: Clade, tmp_path: Path) -> None:
    head = "CountryCode,StateCode,City,CityId,Shop\n"
    options = ["--level", "country=CountryCode", "--level", "state=StateCode", "--level", "city=City",
               "--level", "store=Shop", "--id", "city=CityId", "--prune"]  # fmt: skip
    for city, more, expected in (
        ("Lincoln", [], 0), ("Lincoln City", [], 1), ("Lincoln City", ["--moves"], 0), ("Lincoln City", [], 0)
    ):  # fmt: skip
        rows = [f"US,NE,{city},5,{shop}\n" for shop in ("a", "b")]
        (tmp_path / "shops.csv").write_text(head + "".join(rows))
        done = clade("import", "location", "shops.csv", *options, *more)
        assert (done.exit_code, "removed" in done.stdout) == (expected, False), done.output
    tree = clade("export", "location").stdout
    assert [json.loads(line)["path"][2:] for line in tree.splitlines()][2:] == [
        ["Lincoln City"], ["Lincoln City", "a"], ["Lincoln City", "b"],
    ]  # fmt: skip


@pytest.mark.parametrize("moves", [[], ["--moves"]])
def test_a_file_that_lacks_many_nodes_removes_none_until_all_is_meant(
    clade: Clade, tmp_path: Path, moves: list[str]
) -> None:
    whole: list[Line] = [("S", "CATEGORY"), *[(f"S/{n:03}", "PRODUCT", {"id": f"i{n}"}) for n in range(105)]]
    clade("import", "category", written(tmp_path / "a.jsonl", whole))
    for lacking, refused in ((20, False), (22, True)):
        part = [*whole[: len(whole) - lacking], ("S/new", "PRODUCT")]
        words = ["import", "category", written(tmp_path / "a.jsonl", part), *moves]
        before = paths(clade)
        for dry_run in (["--dry-run"], []):
            done = clade(*words, "--prune", *dry_run)
            if refused:
                sentence = f"a.jsonl lacks {lacking} of the 106 stored nodes that --prune may remove; nothing "
                assert str(done.exception).startswith(sentence + ("would be written." if dry_run else "was written."))
                assert paths(clade) == before
        assert f"removed: {lacking} ({lacking} PRODUCT)" in clade(*words, "--prune=all").stdout or not refused
        assert len(paths(clade)) == len(part)
        clade("import", "category", written(tmp_path / "a.jsonl", whole))


def test_prune_takes_no_other_value(clade: Clade, tmp_path: Path) -> None:
    written(tmp_path / "a.jsonl", SHOP)
    refused = clade("import", "category", "a.jsonl", "--prune=most").exception
    assert '--prune=all, not as "--prune=most".' in str(refused)
    assert clade("import", "category", "--prune", "a.jsonl").exit_code == 0
