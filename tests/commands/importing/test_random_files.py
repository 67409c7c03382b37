"""Random trees and random files with rejected rows, in each format: an import does what the model says, and no more."""

import asyncio
import csv
import gzip
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from store.connect import open_store
from tests import engines, invariants
from tests.cli import app_of
from tests.commands.importing.import_model import BAD_ID, BAD_PRICE, OPEN, Import, Options, Outcome, Part, Row, Stored
from tests.commands.importing.import_model import Path as NodePath
from tests.selection import examples

pytestmark = pytest.mark.usefixtures("probes")

LEVELS = ("CATEGORY", "PRODUCT", "VARIANT")
TREE = {"CATEGORY": ("CATEGORY", "PRODUCT"), "PRODUCT": ("VARIANT",), "VARIANT": ("VARIANT",)}


# -- cases -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """What a file says of a node, in any format; `is_path` is false where its path has an empty key."""

    path: NodePath
    level: str
    id: str | None = None
    price: str | None = OPEN
    is_path: bool = True


@dataclass(frozen=True)
class Case:
    stored: Sequence[Line]
    lines: Sequence[Line]
    options: Options
    prunes_all: bool


def case_of(random: Random, form: str) -> Case:
    """A stored tree, and a file that is this tree with some changes."""
    choice = random.choice
    is_taxonomy, has_ids = form == "taxonomy", form == "parents"
    stored = [Line(("A",), "CATEGORY", "a" if has_ids else None if is_taxonomy else choice([None, "a"]))]
    if random.random() < 0.5:
        stored.append(Line(("B",), "CATEGORY", "b" if has_ids else None))
    for number in range(random.randint(1, 9)):
        above = choice(stored)
        path = (*above.path, choice("abc"))
        level = "CATEGORY" if is_taxonomy else choice(TREE[above.level][form == "export" :] or LEVELS[2:])
        if above.level != "VARIANT" and len(path) < 5 and all(one.path != path for one in stored):
            node_id = None if is_taxonomy else f"i{number}" if has_ids else choice([f"i{number}", f"i{number}", None])
            stored.append(Line(path, level, node_id, OPEN if level == "CATEGORY" else choice([OPEN, "5"])))
    if random.random() < 0.1:
        above = choice([one for one in stored if one.level != "VARIANT"])
        stored += [Line((*above.path, f"m{number:02}"), TREE[above.level][0]) for number in range(24)]
    stored.sort(key=lambda line: line.path)
    lines = [*stored]
    for _ in range(random.randint(1, 5)):
        lines = _changed(random, lines, form) if lines else []
    prune, moves = random.random() < 0.7, random.random() < 0.5
    return Case(stored, lines, Options(prune, moves, random.random() < 0.3), random.random() < 0.5)


KINDS = ("lack", "lack below", "carry", "add", "add", "price", "price", "level", "id", "other price",
         "move", "no id", "repeat", "wrong id", "wrong path")  # fmt: skip


def _changed(random: Random, lines: Sequence[Line], form: str) -> list[Line]:
    """The lines of a file after one change."""
    choice, index = random.choice, random.randrange(len(lines))
    line = lines[index]
    kind = choice(KINDS[:5] if form == "taxonomy" else KINDS[:10] if form == "parents" else KINDS)
    if kind == "lack":
        return [*lines[:index], *lines[index + 1 :]]
    if kind == "lack below":
        return [one for one in lines if one is line or one.path[: len(line.path)] != line.path]
    if kind in ("move", "carry"):
        above = choice([(), *(one.path for one in lines)])
        path = (*above[:4], choice("abcd" if above else "ABC"))
        return [
            replace(one, path=path + one.path[len(line.path) :])
            if one is line or (kind == "carry" and one.path[: len(line.path)] == line.path)
            else one
            for one in lines
        ]
    if kind == "add":
        level = (
            "CATEGORY" if form == "taxonomy" else choice(TREE.get(line.level, LEVELS)[form == "export" :] or LEVELS[2:])
        )
        node_id = None if form == "taxonomy" else choice([None, "n1", "n2", "i0"])
        between = choice([(), (), ("x",)])
        if form == "parents":
            node_id, between = f"n{random.randrange(100)}", ()
        new = Line((*line.path, *between, choice("ade")), level, node_id)
        return [*lines[: index + 1], new, *lines[index + 1 :]]
    if kind == "repeat":
        return [*lines, replace(line, price=choice([OPEN, "5", "7"]))]
    changes: dict[str, dict[str, Any]] = {
        "price": {"price": BAD_PRICE}, "level": {"level": choice([*LEVELS, "THING"])},
        "id": {"id": choice(["n1", "i1", "i2"])}, "no id": {"id": None}, "wrong id": {"id": BAD_ID},
        "wrong path": {"is_path": False}, "other price": {"price": choice([None, "7"])},
    }  # fmt: skip
    return [*lines[:index], replace(line, **changes[kind]), *lines[index + 1 :]]


# -- formats: each writes the lines to a file; its name, the options that it needs, and its rows, or None -----------


Written = tuple[str, list[str], list[Row]] | None


def part_of(line: Line, *, is_table: bool = False) -> Part:
    """The part of a line; an empty cell of a table removes the price of a level that has one."""
    price = line.price
    if is_table and price in (OPEN, None):
        price = None if line.level in ("PRODUCT", "VARIANT") else OPEN
    return Part(line.path, line.level, line.id, price)


def row_of(number: int, line: Line, *, is_table: bool = False) -> Row:
    return Row(number, [part_of(line, is_table=is_table)] if line.is_path else [])


def fields_of(line: Line) -> dict[str, Any]:
    price = {} if line.price == OPEN else {"price": line.price}
    path = [*line.path, *([] if line.is_path else [""])]
    return {"path": path, "level": line.level, **({"id": line.id} if line.id else {}), **price}


def cells_of(line: Line) -> dict[str, str]:
    price = "" if line.price == OPEN else line.price or ""
    path = "/".join([*line.path, *([] if line.is_path else [""])])
    return {"path": path, "level": line.level, "id": line.id or "", "price": price}


def as_json_lines(lines: Sequence[Line], _: Sequence[Line]) -> Written:
    Path("f.jsonl").write_text("".join(json.dumps(fields_of(line)) + "\n" for line in lines))
    return "f.jsonl", [], [row_of(number, line) for number, line in enumerate(lines, start=1)]


def as_paths(lines: Sequence[Line], _: Sequence[Line]) -> Written:
    with Path("f.csv").open("w") as file:
        table = csv.DictWriter(file, ["path", "level", "id", "price"])
        table.writeheader()
        table.writerows(map(cells_of, lines))
    return "f.csv", [], [row_of(number, line, is_table=True) for number, line in enumerate(lines, start=2)]


def as_sheet(lines: Sequence[Line], _: Sequence[Line]) -> Written:
    import openpyxl

    book = openpyxl.Workbook()
    for row in (["path", "level", "id", "price"], *([*cells_of(line).values()] for line in lines)):
        book.active.append(row)
    book.save("f.xlsx")
    return "f.xlsx", [], [row_of(number, line, is_table=True) for number, line in enumerate(lines, start=2)]


def as_parquet(lines: Sequence[Line], _: Sequence[Line]) -> Written:
    import pyarrow
    import pyarrow.parquet

    names = ["path", "level", "id", "price"]
    columns = {name: [cells_of(line)[name] for line in lines] for name in names}
    pyarrow.parquet.write_table(pyarrow.table(columns), "f.parquet")
    return "f.parquet", [], [row_of(number, line, is_table=True) for number, line in enumerate(lines, start=1)]


def as_features(lines: Sequence[Line], _: Sequence[Line]) -> Written:
    features = [{"type": "Feature", "geometry": None, "properties": cells_of(line)} for line in lines]
    Path("f.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return "f.geojson", [], [row_of(number, line, is_table=True) for number, line in enumerate(lines, start=1)]


def as_nodes(lines: Sequence[Line], _: Sequence[Line]) -> Written:
    """Nested nodes; those without a row of their parent have their paths."""
    if len({line.path for line in lines}) < len(lines):
        return None
    nodes = {line.path: fields_of(line) for line in lines}
    roots, rows = [], list[Row]()
    for line in lines:
        above = nodes.get(line.path[:-1])
        if above is None or not line.is_path:
            roots.append(nodes[line.path])
        else:
            nodes[line.path]["key"] = nodes[line.path].pop("path")[-1]
            above.setdefault("children", []).append(nodes[line.path])
    by_node = {id(nodes[line.path]): line for line in lines}
    waiting = roots[::-1]
    while waiting:
        node = waiting.pop()
        line = by_node[id(node)]
        if not line.is_path and node.get("children"):
            return None
        rows.append(row_of(len(rows) + 1, line))
        waiting += node.get("children", [])[::-1]
    Path("f.json").write_text(json.dumps(roots))
    return "f.json", [], rows


def _levels(line: Line, known: Mapping[NodePath, str]) -> list[str] | None:
    """The levels on the path of a line, where columns can say them."""
    levels = [known.get(line.path[:length], "") for length in range(1, len(line.path))] + [line.level]
    count = levels.count("CATEGORY")
    rest = levels[count:]
    return levels if 0 < count < 5 and rest == ["PRODUCT", "VARIANT"][: len(rest)] else None


def _above(line: Line, levels: Sequence[str]) -> list[Part]:
    return [Part(line.path[:length], levels[length - 1]) for length in range(1, len(line.path))]


def as_columns(lines: Sequence[Line], stored: Sequence[Line]) -> Written:
    known = {line.path: line.level for line in (*lines, *stored)}
    rows, table = list[Row](), list[list[str]]()
    for number, line in enumerate(lines, start=2):
        levels = _levels(line, known)
        if levels is None or not line.is_path or (line.level == "CATEGORY" and line.price != OPEN):
            return None
        keys = dict.fromkeys(["C1", "C2", "C3", "C4", "P", "V"], "")
        names = [f"C{place}" if level == "CATEGORY" else level[0] for place, level in enumerate(levels, start=1)]
        keys.update(zip(names, line.path, strict=True))
        table.append([*keys.values(), line.id or "", "" if line.price == OPEN else line.price or ""])
        rows.append(Row(number, [*_above(line, levels), part_of(line, is_table=True)]))
    with Path("f.csv").open("w") as file:
        csv.writer(file).writerows([["C1", "C2", "C3", "C4", "P", "V", "Id", "Price"], *table])
    words = [f"category=C{place}" for place in range(1, 5)] + ["product=P", "variant=V"]
    options = [text for word in words for text in ("--level", word)]
    options += [text for level in LEVELS for text in ("--id", f"{level.lower()}=Id")]
    options += [text for level in LEVELS[1:] for text in ("--attr", f"{level.lower()}.price=Price")]
    return "f.csv", options, rows


def as_taxonomy(lines: Sequence[Line], _: Sequence[Line]) -> Written:
    if any(line.level != "CATEGORY" or line.id or line.price != OPEN or not line.is_path for line in lines):
        return None
    Path("f.txt").write_text("".join(" > ".join(line.path) + "\n" for line in lines))
    levels = ["CATEGORY"] * 9
    rows = [Row(number, [*_above(line, levels), part_of(line)]) for number, line in enumerate(lines, start=1)]
    return "f.txt", ["--format", "taxonomy"], rows


def as_parents(lines: Sequence[Line], _: Sequence[Line]) -> Written:
    """Rows that name their parents by id."""
    ids = {line.path: line.id for line in lines}
    if len({*ids.values()}) < len(lines) or {None, BAD_ID} & {*ids.values()}:
        return None
    if not all(line.is_path and line.level in LEVELS for line in lines):
        return None
    if any(line.path[:-1] not in ids for line in lines if len(line.path) > 1):
        return None
    rows = [["id", "parent", "key", "level", "price"]]
    for line in lines:
        cells = cells_of(line)
        rows.append([cells["id"], ids.get(line.path[:-1]) or "", line.path[-1], line.level, cells["price"]])
    with Path("f.csv").open("w") as file:
        csv.writer(file).writerows(rows)
    found = [row_of(number, line, is_table=True) for number, line in enumerate(lines, start=2)]
    return "f.csv", ["--tree-by", "id=id,parent=parent,key=key,level=level"], sorted(found, key=_place)


def _place(row: Row) -> NodePath:
    return row.parts[0].path


def as_export(lines: Sequence[Line], stored: Sequence[Line]) -> Written:
    """An export of a DynamoDB table, whose keys say a category, a product of it, and a variant of that."""
    known = {line.path: line.level for line in (*lines, *stored)}
    rows, items = list[Row](), list[dict[str, Any]]()
    for number, line in enumerate(lines, start=1):
        levels = _levels(line, known)
        if levels is None or levels != [*LEVELS[: len(levels)]] or not line.is_path:
            return None
        first, *rest = line.path
        kinds = "PV"[: len(rest)]
        sort = "#".join(f"{kind}#{key}" for kind, key in zip(kinds, rest, strict=True)) or "C"
        item = {"PK": first, "SK": sort, **({"Id": line.id} if line.id else {})}
        if line.price not in (OPEN, None):
            if line.level == "CATEGORY":
                return None
            item["price"] = line.price
        items.append({"Item": {name: {"S": text} for name, text in item.items()}})
        given = line if line.price is not None else replace(line, price=OPEN)
        rows.append(Row(number, [*_above(line, levels), part_of(given)]))
    with gzip.open("f.json.gz", "wt") as file:
        file.writelines(json.dumps(item) + "\n" for item in items)
    options = ["--keys", "PK,SK", "--key", "{category} / C"]
    options += ["--key", "{category} / P#{product}[#V#{variant}]"]
    options += [text for level in LEVELS for text in ("--id", f"{level.lower()}=Id")]
    return "f.json.gz", options, rows


FORMATS = {
    "json lines": as_json_lines, "paths": as_paths, "columns": as_columns, "nodes": as_nodes, "parents": as_parents,
    "taxonomy": as_taxonomy, "export": as_export, "features": as_features, "sheet": as_sheet, "parquet": as_parquet,
}  # fmt: skip


# -- the test ----------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=["sqlite", pytest.param("dynamodb", marks=pytest.mark.thorough)])
def new_store(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Returns the URL of a new store at each call."""
    if request.param == "sqlite":
        return lambda: f"sqlite:///{uuid.uuid4().hex}.db"
    engine: engines.Engine = request.getfixturevalue("engine")

    def make() -> str:
        async def create() -> None:
            async with open_store(url) as store:
                await store.create()

        url = engine.address(f"clade-{uuid.uuid4().hex}")
        asyncio.run(create())
        return url

    return make


EVENTS = ("moved", "created", "updated", "deleted")
# Reasons against whole files: ids of two levels; no level at all; paths that nodes without the ids of parents have.
REFUSALS = ("The id ", 'Column "level"', "A", "B", "C")


class Tried:
    """A store, and the commands that are tried with it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(app_of(words[:1]), [*words], env={"CLADE_STORE": self.url})

    def nodes(self) -> dict[NodePath, Stored]:
        done = self.run("export", "category")
        assert done.exit_code == 0, done.exception
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return {tuple(one["path"]): Stored(one["level"], one["id"], one.get("price")) for one in lines}

    def check(self) -> None:
        async def check() -> None:
            async with open_store(self.url) as store:
                await invariants.check(store)

        asyncio.run(check())


def numbers(done: Result) -> tuple[dict[str, Any], set[int]]:
    """What an import prints, by level, and the numbers of its rejected rows."""
    document = json.loads(done.stdout)
    return {name: document[name] for name in (*EVENTS, "unchanged")}, {one["row"] for one in document["rejected"]}


def expected(outcome: Outcome) -> tuple[dict[str, Any], set[int]]:
    counts: dict[str, Any] = {name: dict(getattr(outcome, name)) for name in EVENTS}
    return {**counts, "unchanged": outcome.unchanged}, outcome.rejected


def like(found: Mapping[NodePath, Stored], wanted: Mapping[NodePath, Stored]) -> dict[NodePath, Stored]:
    """The nodes that were found, without the ids that are made, as the model has them."""
    return {path: node if path in wanted and wanted[path].id else replace(node, id="") for path, node in found.items()}


@settings(max_examples=examples(5, 150), suppress_health_check=[*HealthCheck], phases=[Phase.generate])
@given(form=st.sampled_from([*FORMATS]), seed=st.integers(0, 1 << 32))
def test_an_import_does_what_its_rows_say_and_leaves_what_it_did_not_understand(
    new_store: Callable[[], str], form: str, seed: int
) -> None:
    case = case_of(Random(seed), form)  # noqa: S311
    written = FORMATS[form](case.lines, case.stored) if case.lines else None
    assume(written is not None)
    assert written is not None
    _try(Tried(new_store()), case, *written)


def _try(tried: Tried, case: Case, file: str, words: list[str], rows: list[Row]) -> None:
    stored = "".join(json.dumps(fields_of(line)) + "\n" for line in case.stored)
    Path("stored.jsonl").write_text(stored)
    assert tried.run("import", "category", "stored.jsonl").exit_code == 0
    before, moves = tried.nodes(), case.options.moves or words[:1] == ["--tree-by"]
    model = Import(before, rows, replace(case.options, moves=moves))
    outcome = model.run()
    assume(not (model.waits or (case.options.prune and model.yields)))
    words = ["import", "category", file, "--yes", "--json", *words]
    words += ["--moves"] if case.options.moves else []
    words += ["--create-parents"] if case.options.create_parents else []
    prune = ["--prune=all" if case.prunes_all else "--prune"] if case.options.prune else []
    removed = outcome.deleted.total()
    if prune == ["--prune"] and removed > max(20, 0.2 * outcome.prunable):
        for dry_run in (["--dry-run"], []):
            refused = str(tried.run(*words, *prune, *dry_run).exception)
            assert f"lacks {removed} of the {outcome.prunable} stored nodes" in refused
        assert tried.nodes() == before
        prune = ["--prune=all"]
    tries = [tried.run(*words, *prune, "--dry-run"), tried.run(*words, *prune)]
    after = tried.nodes()
    if not tries[0].stdout and str(tries[0].exception).startswith(REFUSALS):
        assert after == before
        return
    for done in tries:
        assert done.exit_code == (1 if outcome.rejected else 0), repr(done.exception)
        assert numbers(done) == expected(outcome), done.output
    assert like(after, outcome.nodes) == outcome.nodes
    again, rejected = numbers(tried.run(*words, *prune))
    assert (tried.nodes(), rejected) == (after, outcome.rejected)
    assert not any(again[event] for event in EVENTS)
    tried.check()
