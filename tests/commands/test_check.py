"""`clade check` and `clade repair`: output and exit status."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from store.connect import open_store
from store.engine import Store
from store.errors import BadInput, NoTable
from store.model.keys import tree_version_key
from tests import invariants
from tests.commands.conftest import Clade
from tests.commands.importing.test_command import OPTIONS, shops  # noqa: F401 - a fixture
from tests.store.checking.broken import at, change


@pytest.fixture
def filled(clade: Clade, shops: Path) -> Clade:  # noqa: F811 - fixtures
    """Runs a command on a table with eight nodes."""
    assert clade("import", "location", shops, *OPTIONS).exit_code == 0
    return clade


def within(url: str, work: Callable[[Store], Awaitable[None]]) -> None:
    async def run() -> None:
        async with open_store(url) as store:
            await work(store)

    asyncio.run(run())


def without_time(text: str) -> list[str]:
    return re.sub(r"in [0-9.]+ s", "in T s", text).splitlines()


def test_a_consistent_table_has_no_findings(filled: Clade) -> None:
    for command in ("check", "repair"):
        done = filled(command)
        assert done.exit_code == 0, done.output
        assert without_time(done.stdout) == ["location, category: 8 nodes in T s, no findings."]


def test_a_finding_is_printed_then_repaired_then_gone(filled: Clade, store_url: str) -> None:
    within(store_url, lambda store: change(store, at("US/NE"), kids={"CITY": 7}))
    line = "location US/NE: attribute `kids` is 7 CITY, expected 1 CITY"
    done = filled("check", "location")
    assert done.exit_code == 1
    assert without_time(done.stdout) == [
        line, "location: 8 nodes in T s, 1 finding; run clade repair to repair what can be repaired.",
    ]  # fmt: skip
    done = filled("repair", "location")
    assert done.exit_code == 0
    assert without_time(done.stdout) == [f"repaired: {line}", "location: 8 nodes in T s, 1 repaired."]
    assert filled("check").exit_code == 0
    within(store_url, invariants.check)
    within(store_url, lambda store: change(store, tree_version_key("location#SG"), aliases="x"))
    assert (filled("check", "category").exit_code, filled("check").exit_code) == (0, 1)


def test_a_finding_that_cannot_be_repaired_is_printed_with_exit_status_1(filled: Clade, store_url: str) -> None:
    within(store_url, lambda store: change(store, at("US/NE"), updated_at=None, tier="nowhere"))
    done = filled("repair")
    assert done.exit_code == 1
    # The words of a node that cannot be read are found no more.
    lines = [line for line in without_time(done.stdout)[:-1] if "search item" not in line]
    assert lines == [
        "repaired: location US/NE: attribute `tier` is 'nowhere', expected 'location#US@STATE@1'",
        "cannot repair: location US/NE: attribute `updated_at` is absent, expected a time in UTC (RFC 3339)",
    ]
    assert " repaired, 1 cannot be repaired" in done.stdout
    assert filled("check").exit_code == 1


@pytest.mark.parametrize("command", ["check", "repair"])
def test_an_unknown_hierarchy_or_a_missing_table_is_an_error(clade: Clade, tmp_path: Path, command: str) -> None:
    assert isinstance(clade(command, "planets").exception, BadInput)
    assert isinstance(clade(command, "--store", f"sqlite:///{tmp_path}/none.db").exception, NoTable)


def test_undefined_attributes_are_counted_by_check_and_export(filled: Clade, store_url: str) -> None:
    within(store_url, lambda store: change(store, at("US/NE"), color="red"))
    line = "location: 1 node has a value of color, which STATE does not define."
    done = filled("check", "location")
    assert done.exit_code == 0
    assert without_time(done.stdout) == ["location: 8 nodes in T s, no findings.", line]
    done = filled("export", "location", "US/NE")
    assert '"undefined":{"color":"red"}' in done.stdout.splitlines()[0]
    assert done.stderr == f"{line}\n"


# -- former names -----------------------------------------------------------------------------------------------------

BEFORE, AFTER = "tests.classes.land_before", "tests.classes.land_after"
LINES = [
    {"path": "DE", "level": "COUNTRY"},
    {"path": "DE/Bonn", "level": "TOWN", "people": 7, "gone": "x"},
    {"path": "DE/Ulm", "level": "TOWN", "mayor": "Ann"},
]


def test_former_names_are_counted(clade: Clade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "nodes.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    monkeypatch.setenv("CLADE_HIERARCHIES", BEFORE)
    assert clade("import", "land", file).exit_code == 0
    monkeypatch.setenv("CLADE_HIERARCHIES", AFTER)
    assert clade("tree", "land", "DE").output.splitlines()[0] == "DE COUNTRY (2 CITY)"
    checked = clade("check", "land")
    assert checked.exit_code == 0
    assert "land: 1 node of CITY has population under its former name people." in checked.output
    assert "land: 1 node has a value of gone, which CITY does not define." in checked.output
    exported = [json.loads(line) for line in clade("export", "land").output.splitlines() if line.startswith("{")]
    assert [(one["level"], one.get("population"), one.get("major")) for one in exported] == [
        ("COUNTRY", None, None), ("CITY", 7, None), ("CITY", None, "Ann"),
    ]  # fmt: skip


# -- for programs, and hierarchies that are not served ----------------------------------------------------------------


def test_json_has_a_line_for_each_finding_then_the_summary(filled: Clade, store_url: str) -> None:
    within(store_url, lambda store: change(store, at("US/NE"), kids={"CITY": 7}, color="red"))
    done = filled("check", "--json")
    assert (done.exit_code, done.stderr) == (1, "")
    finding, summary = map(json.loads, done.stdout.splitlines())
    assert finding == {
        "hierarchy": "location", "path": "US/NE", "problem": "attribute `kids` is 7 CITY, expected 1 CITY",
    }  # fmt: skip
    assert 0 <= summary.pop("seconds") < 600
    assert summary == {
        "hierarchies": ["location", "category"], "nodes": 8, "findings": 1, "notServed": [],
        "undefined": [
            {
                "hierarchy": "location", "level": "STATE", "problem": "UNDEFINED_ATTRIBUTE", "attribute": "color",
                "nodes": 1,
            }
        ],
    }  # fmt: skip


def test_nodes_of_hierarchies_that_are_not_served_are_counted_and_no_error(
    filled: Clade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tree.txt"
    file.write_text("Tools\nTools > Saws\n")
    assert filled("import", "category", file).exit_code == 0
    assert "not served" not in filled("check", "location").stdout, "category is, though this run leaves it out"
    monkeypatch.setenv("CLADE_HIERARCHIES", "tests.classes.land_before")
    sentence = " of a hierarchy that is not served. Add its classes to CLADE_HIERARCHIES, "
    done = filled("check")
    assert done.exit_code == 0, done.output
    assert [line.partition(sentence)[0] for line in done.stdout.splitlines()[1:]] == [
        "category: 2 nodes", "location: 8 nodes",
    ]  # fmt: skip
    assert json.loads(filled("check", "--json").stdout)["notServed"] == [
        {"hierarchy": "category", "nodes": 2}, {"hierarchy": "location", "nodes": 8},
    ]  # fmt: skip
