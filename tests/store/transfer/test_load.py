"""Imports, on both stores: nodes, counts, ids, revisions, versions and the log."""

from collections.abc import Iterable
from typing import Any

import pytest

from store.concurrency import RetryPolicy
from store.engine import ReadUsage, Store
from store.errors import Conflict
from store.metadata.tree_version import TreeVersion
from store.model.hierarchy import Hierarchy
from store.model.keys import id_key, log_key, node_key, revision_key, tree_version_key
from store.model.paths import parse_path
from store.model.records import Put, Record, derived_id
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from tests import invariants
from tests.hierarchies import CATEGORY, LOCATION
from tests.stores import Interrupted

pytestmark = pytest.mark.extenddb

Told = tuple[str, str] | tuple[str, str, dict[str, Any]]

NEBRASKA: list[Told] = [
    ("US", "COUNTRY", {"name": "United States", "id": "6252001"}),
    ("US/NE", "STATE"),
    ("US/NE/Omaha", "CITY", {"id": "5074472", "population": 486051}),
    ("US/NE/Omaha/68118", "POSTAL_CODE"),
    ("US/NE/Omaha/68118/1", "STORE", {"street": "100 St Andrews lane", "square_feet": 921}),
    ("US/NE/Lincoln", "CITY"),
]


def wanted_of(told: Iterable[Told], hierarchy: Hierarchy = LOCATION) -> ImportPlan:
    wanted = ImportPlan(hierarchy)
    for number, (path, level, *more) in enumerate(told, start=1):
        said = dict(more[0]) if more else {}
        part = Part(level, said.pop("name", None), said.pop("id", None), said)
        wanted.take(Row(number, parse_path(path), [part]))
    return wanted


async def imported(
    store: Store, told: Iterable[Told], hierarchy: Hierarchy = LOCATION, *, prune: bool = False, dry_run: bool = False
) -> LoadResult:
    """The outcome of an import, after which the table is as it must be."""
    outcome = LoadResult()
    await load(store, wanted_of(told, hierarchy), outcome, prune=prune, dry_run=dry_run)
    await invariants.check(store)
    return outcome


async def record(store: Store, path: str, hierarchy: str = "location") -> Record:
    key = node_key(hierarchy, parse_path(path))
    item, version = await store.get([key, tree_version_key(key.pk)], ReadUsage(), strong=True)
    assert item is not None, path
    return TreeVersion.of(key.pk, version).with_counts(Record.of(item))


async def paths(store: Store, hierarchy: str = "location") -> list[str]:
    found = [Record.of(item).path for item in (await invariants.nodes(store, hierarchy)).values()]
    return ["/".join(path) for path in sorted(found)]


def reasons(outcome: LoadResult) -> dict[int, str]:
    return {rejection.number: rejection.reason for rejection in outcome.rejections}


async def test_an_import_is_one_version_of_each_tree_with_its_log(store: Store) -> None:
    outcome = await imported(store, NEBRASKA)
    assert outcome.added == {"COUNTRY": 1, "STATE": 1, "CITY": 2, "POSTAL_CODE": 1, "STORE": 1}
    keys = [tree_version_key("location#US"), tree_version_key("location"), log_key("location#US", 1)]
    tree, roots, log = await store.get(keys, ReadUsage(), strong=True)
    assert outcome.commits == TreeVersion.of("", tree).number == TreeVersion.of("", roots).number == 1
    assert log is not None
    assert ["CREATED", "#NE#Omaha#", "location:5074472", "CITY", 1] in log["changes"]  # type: ignore[operator]
    before = await invariants.all_items(store)
    again = await imported(store, NEBRASKA)
    assert (again.written, again.commits, again.unchanged) == (0, 0, len(NEBRASKA))
    assert await invariants.all_items(store) == before


async def test_a_file_changes_the_languages_that_it_has_alone(store: Store) -> None:
    both = {"de": "Deutschland", "fr": "Allemagne"}
    steps: list[tuple[Any, int, Any]] = [
        (both, 1, both), ({"de": "Deutschland", "it": None}, 0, both),
        ({"it": "Germania", "fr": None}, 1, {"de": "Deutschland", "it": "Germania"}), (None, 1, None), ({}, 0, None),
    ]  # fmt: skip
    for names, written, expected in steps:
        assert (await imported(store, [("DE", "COUNTRY", {"names": names})])).written == written
        assert (await record(store, "DE")).attributes.get("names") == expected


async def test_a_removed_node_leaves_a_tombstone_and_one_with_its_id_continues_its_revisions(store: Store) -> None:
    await imported(store, NEBRASKA)
    omaha, lincoln = await record(store, "US/NE/Omaha"), await record(store, "US/NE/Lincoln")
    await imported(store, [("US/NE", "STATE")], prune=True)
    tombstone, last = await store.get([id_key(omaha.id), revision_key(omaha.id, 1)], ReadUsage())
    assert tombstone is not None
    assert last is not None
    assert (tombstone["deleted"] != "", last["name"], last["population"]) == (True, "Omaha", 486051)
    await imported(store, NEBRASKA)
    omaha, again = await record(store, "US/NE/Omaha"), await record(store, "US/NE/Lincoln")
    assert (omaha.id, omaha.revision) == ("location:5074472", 2)
    assert (again.id != lincoln.id, again.revision) == (True, 1), "its id is not in the file"
    assert (await imported(store, NEBRASKA)).written == 0


async def test_a_deleted_id_may_be_given_to_another_path(store: Store) -> None:
    await imported(store, NEBRASKA)
    lincoln = await record(store, "US/NE/Lincoln")
    assert lincoln.id == f"location:{derived_id('location', ('US', 'NE', 'Lincoln'))}", "the same in every table"
    await imported(store, [("US/NE", "STATE")], prune=True)
    bare = lincoln.id.removeprefix("location:")
    await imported(store, [("US/NE/Omaha", "CITY", {"id": bare}), ("US/NE/Lincoln", "CITY")])
    assert (await record(store, "US/NE/Omaha")).revision == 2
    assert (await record(store, "US/NE/Lincoln")).id != lincoln.id, "a default id that the file gives away is replaced"
    assert (await imported(store, [("US/NE/Lincoln", "CITY")])).written == 0


async def test_many_children_need_many_transactions_and_each_leaves_all_counts_right(store: Store) -> None:
    store.max_changes = min(store.max_changes, 100)
    streets: list[Told] = [(f"US/NE/Omaha/{n}", "POSTAL_CODE") for n in range(3 * store.max_changes // 4)]
    with pytest.raises(Stopped):
        await load(stopping(store, commits=1), wanted_of([*NEBRASKA, *streets]), LoadResult())
    await invariants.check(store)
    first = len(await paths(store))
    assert 1 < first < len(streets)
    outcome = await imported(store, [*NEBRASKA, *streets])
    assert outcome.added.total() == len(streets) + len(NEBRASKA) - first
    assert outcome.unchanged == first
    assert (await record(store, "US/NE/Omaha")).kids == {"POSTAL_CODE": len(streets) + 1}
    outcome = await imported(store, NEBRASKA, prune=True)
    assert outcome.removed == {"POSTAL_CODE": len(streets)}
    assert outcome.commits > 1


async def test_removals_continue_after_a_stop(store: Store) -> None:
    store.max_changes = min(store.max_changes, 100)
    deep: list[Told] = [("A", "CATEGORY")]
    for n in range(store.max_changes // 8):
        deep += [(f"A/{n}", "CATEGORY"), (f"A/{n}/x", "PRODUCT"), (f"A/{n}/x/y", "VARIANT")]
    await imported(store, deep, CATEGORY)
    with pytest.raises(Stopped):
        await load(stopping(store, commits=1), wanted_of(deep[:4], CATEGORY), LoadResult(), prune=True)
    await invariants.check(store)
    assert 4 < len(await paths(store, "category")) < len(deep)
    await imported(store, deep[:4], CATEGORY, prune=True)
    assert await paths(store, "category") == ["A", "A/0", "A/0/x", "A/0/x/y"]


async def test_big_nodes_go_into_transactions_of_less_than_four_megabytes(store: Store) -> None:
    note = "x" * 300_000
    big: list[Told] = [("A", "CATEGORY"), *[(f"A/{n}", "CATEGORY", {"note": note}) for n in range(24)]]
    assert (await imported(store, big, CATEGORY)).added.total() == 25


# -- rows that cannot be taken -----------------------------------------------------------------------------------------

REJECTED: dict[str, tuple[list[Told], dict[int, str], set[str]]] = {
    "without a parent, with all below it": (
        [("FR", "COUNTRY"), ("FR/X/Y", "CITY"), ("FR/X/Y/1", "POSTAL_CODE"), ("ES/Z", "CITY")],
        {2: "Parent FR/X is neither in the file nor in the table; --create-parents creates it.",
         3: "Parent FR/X/Y is missing, since row 2 was rejected.",
         4: "Parent ES is neither in the file nor in the table; --create-parents creates it."},
        {"FR"},
    ),
    "below a rejected row": (
        [("FR", "COUNTRY", {"population": "many"}), ("FR/X", "STATE"), ("FR/X/Y", "CITY")],
        {1: 'population: "many" is not a whole number; write one like 12.',
         2: "Parent FR is missing, since row 1 was rejected.",
         3: "Parent FR/X is missing, since row 2 was rejected."},
        set(),
    ),
    "of an undefined attribute, whose node exists": (
        [("US/NE", "STATE", {"color": "red"}), ("US/NE/Bellevue", "CITY")],
        {1: 'STATE has no attribute "color"; it has none.',
         2: "Nothing below US/NE is imported, since row 1 was rejected."}, set(),
    ),
    "of a level under a wrong one": (
        [("US/Omaha", "POSTAL_CODE"), ("Omaha", "CITY")],
        {1: "POSTAL_CODE may not stand under COUNTRY, only under CITY, COUNTY, NEIGHBORHOOD, STATE.",
         2: "CITY may not stand as a root, only under COUNTRY, COUNTY, REGION, STATE."},
        set(),
    ),
    "of another level than in the table, with all below it": (
        [("US/NE", "REGION"), ("US/NE/Omaha", "CITY", {"population": 1}), ("US/NE/Omaha/1", "POSTAL_CODE")],
        {1: "US/NE is a STATE in the table, not a REGION.",
         **dict.fromkeys((2, 3), "Nothing below US/NE is imported, since row 1 was rejected.")},
        set(),
    ),
    "of another id than in the table, with all below it": (
        [("US/NE/Omaha", "CITY", {"id": "1"}), ("US/NE/Omaha/1", "POSTAL_CODE")],
        {1: "US/NE/Omaha has the id 5074472 in the table, not 1; ids never change.",
         2: "Nothing below US/NE/Omaha is imported, since row 1 was rejected."},
        set(),
    ),
    "below a node whose id the file has elsewhere, and below that place": (
        [("US/NE/Omaha City", "CITY", {"id": "5074472"}), ("US/NE/Omaha/1", "POSTAL_CODE"),
         ("US/NE/Omaha City/1", "POSTAL_CODE")],
        {1: "The id 5074472 belongs to US/NE/Omaha; use --moves to move it.",
         2: "Nothing below US/NE/Omaha is imported, since row 1 has its id 5074472 at another path.",
         3: "The parent of US/NE/Omaha City/1 is missing, since row 1 was rejected."},
        set(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REJECTED)
async def test_a_row_is_rejected(store: Store, what: str) -> None:
    told, expected, added = REJECTED[what]
    await imported(store, NEBRASKA)
    outcome = await imported(store, told)
    assert reasons(outcome) == expected
    assert [one.number for one in outcome.rejections if one.moved] == [1] * ("elsewhere" in what)
    assert {*await paths(store)} == {path for path, *_ in NEBRASKA} | added


async def test_a_leftover_id_record_is_used_again(store: Store) -> None:
    await imported(store, [("US", "COUNTRY")])
    await store.commit([Put({"pk": "id#location:7", "sk": "v0", "tree": "location#US", "key": "#NE#"})])
    await imported(store, [("US/NE", "STATE", {"id": "7"})])
    assert (await record(store, "US/NE")).id == "location:7"


async def test_a_node_past_400_kb_is_rejected(store: Store) -> None:
    outcome = await imported(store, [("A", "CATEGORY"), ("A/B", "CATEGORY", {"note": "x" * 410_000})], CATEGORY)
    assert "take 410" in reasons(outcome)[2]
    assert await paths(store, "category") == ["A"]


# -- others who write meanwhile ----------------------------------------------------------------------------------------


class Stopped(Exception):
    """An import ends here."""


def stopping(store: Store, commits: int) -> Any:
    """A store that is interrupted after so many commits."""

    async def stop(number: int) -> None:
        if number > commits:
            raise Stopped

    return Interrupted(store, "commit", before=stop)


def disturbed(store: Store, commits: int) -> Any:
    """A store in which somebody else writes to the tree in front of each of the first `commits`."""

    async def disturb(number: int) -> None:
        if number <= commits:
            await load(store, wanted_of([(f"US/S{number}", "STATE")]), LoadResult())

    return Interrupted(store, "commit", before=disturb)


async def test_a_tree_is_read_again_after_a_conflict(store: Store) -> None:
    await imported(store, [("US", "COUNTRY")])
    outcome = LoadResult()
    await load(disturbed(store, commits=3), wanted_of(NEBRASKA[1:]), outcome)
    await invariants.check(store)
    assert outcome.added.total() == len(NEBRASKA[1:])
    assert {"US/S1", "US/S2", "US/S3"} <= set(await paths(store))


async def test_an_import_fails_after_too_many_conflicts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.transfer.load.RETRIES", RetryPolicy(0.0, 0.0, attempts=20))
    await imported(store, [("US", "COUNTRY")])
    with pytest.raises(Conflict, match="Other writes to US prevented the import"):
        await load(disturbed(store, commits=1000), wanted_of([("US/NE", "STATE")]), LoadResult())
    await invariants.check(store)


# -- plans of many nodes -----------------------------------------------------------------------------------------------


def test_trees_without_new_rows_are_packed_and_rows_that_come_back_to_them_are_merged_and_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trees, children = 5, 57
    few = {"PART_NODES": 50, "LEAST_PACKED": 50, "MAX_UNPACKED": (trees - 3) * (children + 1)}
    for name, number in few.items():
        monkeypatch.setattr(f"store.transfer.staging.{name}", number)
    plan = ImportPlan(CATEGORY)

    def take(*path: str, node_id: str | None = None, **attributes: object) -> None:
        plan.take(Row(plan.rows + 1, path, [Part("CATEGORY", None, node_id, attributes)]))

    for tree in range(trees):
        take(f"t{tree}")
        for child in range(children):
            take(f"t{tree}", f"c{child}", node_id=f"{tree}-{child}", note=f"note {child}")
    rows = plan.rows
    assert [bool(tree.packed) for tree in plan.trees.values()] == [True, True, *[False] * (trees - 2)]
    assert plan.trees["category#t0"].size == children + 1
    take("t0", "c4", note="another")
    take("t0", "c5", "d")
    take("t0", "c6", node_id="0-1")
    take("t0", "c1", node_id="0-1")
    reasons = {one.number - rows: one.reason for one in plan.rejections}
    assert reasons == {
        1: "t0/c4 has the note note 4 in row 6 already, not another.",
        3: "The id 0-1 is that of another node already, in row 3.",
    }
    tree = plan.trees["category#t0"]
    assert (tree.rejected["#c4#"], tree.nodes["#c5#d#"].number) == (rows + 1, rows + 2)
    last = tree.nodes[f"#c{children - 1}#"]
    assert (last.level, last.id, last.values) == ("CATEGORY", f"0-{children - 1}", {"note": f"note {children - 1}"})
    assert (plan.nodes, tree.size) == (trees * (children + 1) + 1, children + 2)
