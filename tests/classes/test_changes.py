"""Changes of a hierarchy's classes: renamed levels and attributes are read, exported and imported under their present
names, on both stores.
"""

import json
from dataclasses import replace

import pytest

from graph.hierarchies.attribute import WrongClass
from store.engine import ReadUsage
from store.errors import Misplaced
from store.model.keys import node_key
from store.model.records import derived_id
from store.transfer.export import export
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan
from store.transfer.shapes.paths import row_of
from store.writing.edit import Named
from store.writing.move_delete import Delete, Policy
from store.writing.restore import Restore
from store.writing.writer import Writer
from tests import invariants
from tests.classes import land_after, land_before
from tests.rights.asking import Server, caller
from tests.store.writing.journaled import SOON
from tests.systems.asking import plant

ALL = caller("write:land")


OLD, NEW = land_before.Land.definition(), land_after.Land.definition()
ROWS = [
    (["DE"], "COUNTRY"),
    (["DE", "Bonn"], "TOWN", "Bonn", {"people": 7, "mayor": "Ann", "gone": "x"}),
    (["DE", "Bonn", "Hof"], "FARM"),
    (["DE", "Ulm"], "TOWN", "Ulm", {"people": 5}),
]
QUERY = """{ land(path: "DE") { childCount(level: CITY) descendantCount(level: CITY)
    descendants(level: CITY) { nodes { __typename level key ... on City { population major } } }
    children(level: CITY) { totalCount } }
    city(path: "DE/Bonn") { level levelName
    children { nodes { level levelName parent { level } } } } }"""
EXPECTED = {
    "land": {
        "childCount": 2, "descendantCount": 2, "children": {"totalCount": 2},
        "descendants": {"nodes": [
            {"__typename": "City", "level": "CITY", "key": "Bonn", "population": 7, "major": "Ann"},
            {"__typename": "City", "level": "CITY", "key": "Ulm", "population": 5, "major": None},
        ]},
    },
    "city": {"level": "CITY", "levelName": "CITY", "children": {"nodes": [
        {"level": "FARM", "levelName": "FARM", "parent": {"level": "CITY"}},
    ]}},
}  # fmt: skip


@pytest.fixture
async def server(store):
    await plant(store, land_before.Land, ROWS)
    yield Server(store, land_after.Land)
    await invariants.check(store, {"land": NEW})


async def exported(store, hierarchy=NEW):
    return [json.loads(line) async for page in export(store, hierarchy) for line in page.splitlines()]


LISTS = """query($order: [LandOrderBy!], $where: LandCondition) { land(path: "DE") {
    descendants(orderBy: $order, where: $where) { totalCount nodes { key } } } }"""
LISTED = [
    ([("POPULATION", "ASC")], None, "Ulm Bonn Hof"), ([("POPULATION", "DESC")], None, "Bonn Ulm Hof"),
    ([("LEVEL", "ASC"), ("POPULATION", "ASC")], None, "Ulm Bonn Hof"),
    ([], {"population": {"gt": 5}}, "Bonn"), ([], {"major": {"startsWith": "an"}}, "Bonn"),
    ([], {"population": {"isNull": True}}, "Hof"),
]  # fmt: skip
SEARCH = "query($text: String!) { searchLands(text: $text, level: [CITY]) { nodes { key } } }"


async def test_values_are_read_listed_and_searched_by_their_present_names(server, store):
    await plant(store, land_before.Land, [
        (["AT"], "COUNTRY"),
        *[(["AT", name], "TOWN", f"Neustadt {name}", {"people": n}) for name, n in (("a", 1), ("b", 3), ("c", 2))],
    ])  # fmt: skip
    assert await server.data(ALL, QUERY) == EXPECTED
    for order, where, wanted in LISTED:
        order = [{"field": name, "direction": direction} for name, direction in order]
        found = await server.data(ALL, LISTS, order=order, where=where)
        assert [one["key"] for one in found["land"]["descendants"]["nodes"]] == wanted.split()
    for text, wanted in (("ann", "Bonn"), ("neustadt", "b c a")):  # towns weigh by their inhabitants
        found = await server.data(ALL, SEARCH, text=text)
        assert [one["key"] for one in found["searchLands"]["nodes"]] == wanted.split()


async def test_an_export_has_the_present_names_and_is_imported_without_a_change_as_an_old_one_is(server, store):
    lines = await exported(store)
    assert [(one["level"], one.get("population"), one.get("undefined")) for one in lines] == [
        ("COUNTRY", None, None), ("CITY", 7, {"gone": "x"}), ("FARM", None, None), ("CITY", 5, None),
    ]  # fmt: skip
    assert "people" not in lines[1]
    old = await exported(store, OLD)
    old[1]["undefined"] = {"gone": old[1].pop("gone")}
    for export_of_both in (lines, old):
        plan, result = ImportPlan(NEW), LoadResult()
        for number, line in enumerate(export_of_both):
            plan.take(row_of(number, line))
        await load(store, plan, result)
        assert (result.rejections, result.written, result.unchanged) == ([], 0, 4)


async def test_an_import_counts_what_no_class_defines_whether_it_stores_or_skips_it(server, store):
    plan, result = ImportPlan(NEW, ignore_unknown=True), LoadResult()
    plan.take(row_of(1, {"path": "DE/Ulm", "level": "TOWN", "gone": "skipped", "people": 5}))
    plan.take(row_of(2, {"path": "DE/Bonn", "level": "CITY", "undefined": {"gone": "x"}}))
    plan.take(row_of(3, {"path": "DE/Bonn/Hof", "level": "FARM", "undefined": {"size": 1}}))
    plan.take(row_of(4, {"path": "DE/Insel", "level": "ISLAND", "undefined": {}}))
    await load(store, plan, result)
    assert (result.rejections, result.changed.total(), result.added.total()) == ([], 1, 1)
    assert plan.undefined.sentences() == [
        "land: 1 node has a value of size, which FARM does not define.",
        "land: 1 node is of the level ISLAND, which is not defined.",
        "land: 2 nodes have a value of gone, which CITY does not define.",
    ]


async def test_the_next_write_stores_the_values_of_a_node_under_their_present_names(server, store):
    changed = await server.write(
        ALL,
        'mutation { updateLand(input: {node: {path: "DE/Bonn"}, attributes: {city: {major: "Bob"}}}) '
        "{ node { ... on City { population "
        "major atRevision(n: 1) { population major } } } } }",
    )
    assert changed["data"]["updateLand"]["node"] == {
        "population": 7, "major": "Bob", "atRevision": {"population": 7, "major": "Ann"},
    }  # fmt: skip
    (item,) = await store.get([node_key("land", ("DE", "Bonn"))], ReadUsage(), strong=True)
    assert (item["population"], item["major"], item.get("people"), item.get("mayor")) == (7, "Bob", None, None)


async def test_a_deleted_node_comes_back_at_its_present_level_with_its_values_under_their_present_names(server, store):
    bonn = f"land:{derived_id('land', ('DE', 'Bonn'))}"
    await Writer(store).write(Delete(OLD, ("DE", "Bonn"), Policy.CASCADE), ReadUsage())
    asked = f'{{ deletedNode(id: "{bonn}") {{ level descendantCount }} }}'
    assert (await server.data(ALL, asked))["deletedNode"] == {"level": "CITY", "descendantCount": 1}
    node = "... on City { level population major children { nodes { key level } } }"
    restored = await server.write(ALL, f'mutation {{ restoreLand(input: {{id: "{bonn}"}}) {{ node {{ {node} }} }} }}')
    assert restored["data"]["restoreLand"]["node"] == {
        "level": "CITY", "population": 7, "major": "Ann", "children": {"nodes": [{"key": "Hof", "level": "FARM"}]},
    }  # fmt: skip
    assert await server.data(ALL, QUERY) == EXPECTED
    assert [one["key"] for one in (await server.data(ALL, SEARCH, text="ann"))["searchLands"]["nodes"]] == ["Bonn"]


@pytest.mark.parametrize("was", ["City", "a b", 1])
def test_a_former_name_that_is_none_is_refused(was):
    with pytest.raises(WrongClass, match="write the former name of the class"):
        type("City", (land_after.Land,), {"__doc__": "A city."}, under=None, was=was)


@pytest.mark.parametrize("is_large", [False, True])
async def test_a_deleted_node_of_a_level_that_is_no_more_is_not_restored(store, is_large):
    await plant(store, land_before.Land, ROWS)
    without = land_after.Land.definition()
    await Writer(store, SOON).write(Delete(OLD, ("DE", "Bonn"), Policy.CASCADE), ReadUsage())
    bonn = f"land:{derived_id('land', ('DE', 'Bonn'))}"
    smaller = replace(without, levels={name: one for name, one in without.levels.items() if name != "FARM"})
    if is_large:
        store.max_commit_changes = 3
    with pytest.raises(Misplaced, match="DE/Bonn/Hof has the level FARM, which no class defines any more"):
        await Writer(store, SOON).write(Restore(smaller, (), bonn, names=[Named("id", id=bonn)]), ReadUsage())
    await invariants.check(store, {"land": NEW})
