"""Stability: nothing that a release promised is broken by the code, and both stores read what a release wrote."""

import ast
import asyncio
import copy
import inspect
import json
import re
import shutil
import uuid
from pathlib import Path

import pytest

import clade
from store.model.attributes import Kind
from tests.golden import promises
from tests.golden.__main__ import write
from tests.golden.asking import asking, command
from tests.golden.data import load_table
from tests.golden.promises import bare, broken, broken_in_schema, in_force, may_break, names, schemas, version

RELEASES = in_force(version())
MAX_BYTES = 300_000
WAY_OUT = (
    "This breaks a promise of docs/stability.md: deprecate it instead, or raise the version in pyproject.toml as that "
    "page says, and run `python -m tests.golden`."
)
releases = pytest.mark.parametrize("release", RELEASES, ids=lambda folder: folder.name)


@pytest.fixture(scope="module")
def present():
    return {"names": names(), "schemas": schemas()}


def promised(release: Path) -> dict:
    return json.loads((release / "names.json").read_text("utf-8"))


# -- what the code keeps -----------------------------------------------------------------------------------------------


def test_a_release_has_promised_something():
    assert RELEASES, f"The version {version()} may break all releases: run `python -m tests.golden`."


@releases
@pytest.mark.parametrize("schema", ["demo", "golden", "subgraph"])
def test_no_schema_breaks_what_a_release_promised(release, schema, present):
    assert broken_in_schema((release / f"{schema}.graphql").read_text("utf-8"), present["schemas"][schema]) == [], (
        WAY_OUT
    )


@releases
@pytest.mark.parametrize("section", ["command", "setting", "python", "error code", "metric"])
def test_no_name_breaks_what_a_release_promised(release, section, present):
    assert [*broken(promised(release)[section], present["names"][section], section)] == [], WAY_OUT


# -- what breaks -------------------------------------------------------------------------------------------------------


def without(facts, *place):
    changed = copy.deepcopy(facts)
    inner = changed
    for name in place[:-1]:
        inner = inner[name]
    del inner[place[-1]]
    return changed


def with_fact(facts, value, *place):
    changed = without(facts, *place)
    inner = changed
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    return changed


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        (("command", "export"), "command export was removed."),
        (("command", "import", "--prune"), "command import --prune was removed."),
        (("command", "import", "--format", "choices", "csv"), "command import --format choices csv was removed."),
        (("setting", "max_nodes"), "setting max_nodes was removed."),
        (("setting", "reads", "choices", "granted"), "setting reads choices granted was removed."),
        (("python", "Money"), "python Money was removed."),
        (("python", "attribute", "pattern"), "python attribute pattern was removed."),
        (("python", "Node", "location"), "python Node location was removed."),
        (("python", "create_app", "result", "lifespan"), "python create_app result lifespan was removed."),
        (("error code", "CONFLICT"), "error code CONFLICT was removed."),
        (("metric", "clade_cache_hits", "label cache"), "metric clade_cache_hits label cache was removed."),
    ],
)
def test_a_removed_name_breaks_a_promise(place, sentence, present):
    assert [*broken(present["names"], without(present["names"], *place))] == [sentence]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("command", "serve", "--port", "default"), 8080),
        (("setting", "max_nodes", "default"), 9_999),
        (("setting", "drain_seconds", "maximum"), 500),
        (("python", "attribute", "max_length", "default"), "1000"),
        (("python", "Date", "type"), "date"),
        (("error code", "OVERLOADED", "status"), "200"),
    ],
)
def test_a_changed_default_type_or_bound_breaks_a_promise(place, value, present):
    (sentence,) = broken(present["names"], with_fact(present["names"], value, *place))
    assert re.fullmatch(rf"{' '.join(place)} has changed from .* to {value!r}\.", sentence)


def test_what_is_newly_required_breaks_a_promise(present):
    older = without(present["names"], "command", "import", "argument 2")
    assert [*broken(older, present["names"])] == ["command import argument 2 was added and is required."]
    older = with_fact(present["names"], {}, "python", "attribute", "description")
    assert len([*broken(older, present["names"])]) == 2  # it is required, and was a keyword


@pytest.mark.parametrize(
    "place",
    [
        ("command", "export"), ("command", "import", "--prune"), ("setting", "max_nodes"), ("python", "Money"),
        ("python", "attribute", "pattern"), ("error code", "CONFLICT"),
    ],
)  # fmt: skip
def test_additions_break_nothing(place, present):
    assert [*broken(without(present["names"], *place), present["names"])] == []


def test_a_wider_bound_breaks_nothing_and_a_new_one_does(present):
    older = with_fact(present["names"], 500, "setting", "drain_seconds", "maximum")
    assert [*broken(older, present["names"])] == []
    older = without(present["names"], "setting", "drain_seconds", "maximum")
    assert [*broken(older, present["names"])] == ["setting drain_seconds maximum has changed from None to 600."]


@pytest.mark.parametrize(
    ("older", "newer", "sentence"),
    [
        ("a: Int b: Int", "a: Int", "Field Query.b was removed."),
        ("a(b: Int): Int", "a: Int", "Argument Query.a(b:) was removed."),
        ("a: Int!", "a: Int", "Field Query.a changed type from Int! to Int."),
        ("a(b: Int = 1): Int", "a(b: Int = 2): Int", "Query.a(b:) has changed defaultValue from 1 to 2."),
        ("a: Int @shareable", "a: Int", "Query.a is no longer @shareable."),
    ],
)
def test_a_changed_field_breaks_a_promise(older, newer, sentence):
    sdl = 'extend schema @link(url: "x") type Query {{ {} }}'
    assert broken_in_schema(sdl.format(older), sdl.format(newer)) == [sentence]
    assert broken_in_schema(sdl.format(older), sdl.format(older + " c: Int")) == []


def test_a_removed_field_of_a_golden_level_breaks_a_promise(present):
    golden = present["schemas"]["golden"]
    less = re.sub(r"(type Town [^}]*?)  mayor: String\n", r"\1", golden)
    assert broken_in_schema(golden, less) == ["Field Town.mayor was removed."]


def test_descriptions_are_not_promised():
    assert bare('"A."\ntype Query {\n  "B."\n  a("C." b: Int): Int\n}') == "type Query {\n  a(b: Int): Int\n}\n"


@pytest.mark.parametrize(
    ("promise", "now", "may"),
    [
        ("0.1.0", "0.1.0", False), ("0.1.0", "0.1.9", False), ("0.1.0", "0.2.0", True), ("0.9.3", "0.10.0", True),
        ("0.2.0", "0.1.0", False), ("0.9.0", "1.0.0", True), ("1.0.0", "1.9.0", False), ("1.0.0", "2.0.0", True),
    ],
)  # fmt: skip
def test_a_minor_version_may_break_before_1_and_a_major_one_afterwards(promise, now, may):
    assert may_break(promise, now) is may


def test_a_version_that_may_break_everything_is_compared_with_nothing():
    assert in_force("999.0.0") == []
    assert in_force("0.0.1") == sorted(folder.parent for folder in promises.GOLDEN.glob("*/names.json"))


# -- what the golden classes use ---------------------------------------------------------------------------------------


def test_the_golden_classes_use_every_option_and_every_type():
    tree = ast.parse((promises.GOLDEN / "hierarchies.py").read_text("utf-8"))
    used = {keyword.arg for node in ast.walk(tree) for keyword in getattr(node, "keywords", [])}
    for takes in (clade.attribute, clade.computed, clade.Node.__init_subclass__):
        parameters = inspect.signature(takes).parameters.values()
        options = {one.name for one in parameters if one.kind is not one.VAR_KEYWORD}
        assert options - {"description"} <= used
    (sample,) = [cls for cls in promises.served(promises.CLASSES) if cls.name == "thing"]
    kinds = {(one.kind, one.many) for _, one in sample.levels["SAMPLE"].attributes.values()}
    assert kinds == {(kind, many) for kind in Kind for many in (False, True)} - {(Kind.LOCALIZED, True)}


# -- what releases wrote -----------------------------------------------------------------------------------------------


@releases
def test_golden_data_is_small(release):
    assert (release / "store.db").stat().st_size < MAX_BYTES


@releases
def test_golden_data_has_items_of_every_kind(release):
    lines = (release / "table.jsonl").read_text("utf-8").splitlines()
    items = [json.loads(line) for line in lines]
    kinds = {item["pk"]["S"].partition("#")[0].partition("/")[0] for item in items}
    assert kinds == {"!", "place", "thing", "note", "id", "alias", "words", "cells", "search", "moves", "once", "keys"}
    assert {"!", "#"} <= {item["sk"]["S"][0] for item in items}


async def differences(url: str, release: Path) -> list[tuple]:
    """The operations whose responses differ: document, variables, expected and present response."""
    golden = json.loads((release / "responses.json").read_text("utf-8"))
    keys = json.loads((release / "keys.json").read_text("utf-8"))
    differing = []
    async with asking(url, keys, writes="granted") as client:
        for one in golden["operations"]:
            document = golden["documents"][one["document"]]
            response = await client.ask(document, one["variables"], one["key"])
            if response != one["response"]:
                differing.append((document, one["variables"], one["response"], response))
    return differing


def check(url: str, release: Path, folder: Path) -> None:
    """Ask everything, then write: the consistency of the whole table shows that old and new items fit together."""
    assert asyncio.run(differences(url, release)) == []
    assert ", no findings." in command(url, "check")
    rows = [
        {"path": "DE/Köln/Ehrenfeld", "level": "TOWN", "id": "ehrenfeld"},
        {"path": "DE/Köln/Nippes", "level": "TOWN"},
    ]
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    command(url, "import", "place", str(folder / "rows.jsonl"), "--moves")
    assert ", no findings." in command(url, "check")


@releases
def test_an_sqlite_file_of_a_release_is_read_and_written(release, tmp_path):
    shutil.copy(release / "store.db", tmp_path)
    check(f"sqlite:///{tmp_path / 'store.db'}", release, tmp_path)


@releases
def test_a_table_of_a_release_is_read_and_written(release, engine, tmp_path):
    table = f"golden-{uuid.uuid4().hex}"
    load_table(engine.url, release, table)
    check(engine.address(table), release, tmp_path)


@releases
@pytest.mark.parametrize("hierarchy", ["place", "thing", "note"])
def test_an_export_of_a_release_is_imported_and_exported_again(release, hierarchy, tmp_path):
    url, written = f"sqlite:///{tmp_path / 'store.db'}", release / f"{hierarchy}.jsonl"
    command(url, "import", hierarchy, str(written))
    again = [json.loads(line) for line in command(url, "export", hierarchy).splitlines()]
    lines = [json.loads(line) for line in written.read_text("utf-8").splitlines()]
    assert [one | line for line, one in zip(lines, again, strict=True)] == again


@pytest.mark.thorough
def test_golden_files_can_be_written_anew(engine, tmp_path):
    write(tmp_path)
    assert [*broken(promised(tmp_path), names())] == []
    check(f"sqlite:///{tmp_path / 'store.db'}", tmp_path, tmp_path)
