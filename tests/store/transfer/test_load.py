"""Imports, on both stores: nodes, counts, ids, revisions, versions and the log."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from store.connect import open_store
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import Conflict
from store.metadata.change_log import Event
from store.metadata.tree_version import TreeVersion
from store.model.hierarchy import Hierarchy
from store.model.items import Change, Put, size_of
from store.model.keys import id_key, log_key, node_key, revision_key, tree_version_key
from store.model.paths import checked_path, parse_path
from store.model.records import Record, derived_id
from store.transfer.load import EXAMPLES, LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from tests import invariants
from tests.hierarchies import CATEGORY, LOCATION

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


async def test_an_import_writes_nodes_counts_ids_versions_and_the_log(store: Store) -> None:
    outcome = await imported(store, NEBRASKA)
    assert outcome.added == {"COUNTRY": 1, "STATE": 1, "CITY": 2, "POSTAL_CODE": 1, "STORE": 1}
    assert outcome.commits == 1
    us = await record(store, "US")
    assert us.name == "United States"
    assert us.id == "location:6252001"
    assert us.kids == {"STATE": 1}
    assert us.below == {"STATE": 1, "CITY": 2, "POSTAL_CODE": 1, "STORE": 1}
    shop = await record(store, "US/NE/Omaha/68118/1")
    assert shop.attributes == {"street": "100 St Andrews lane", "square_feet": 921}
    assert shop.name == "1"
    stamps = await store.get([tree_version_key("location#US"), tree_version_key("location")], ReadUsage(), strong=True)
    tree, roots = (TreeVersion.of("", item) for item in stamps)
    assert tree.number == roots.number == 1
    assert tree.shape == {"COUNTRY@0": 1, "STATE@1": 1, "CITY@2": 2, "POSTAL_CODE@3": 1, "STORE@4": 1}
    assert roots.shape == {"COUNTRY@0": 1}
    (log,) = await store.get([log_key("location#US", 1)], ReadUsage(), strong=True)
    assert log is not None
    assert ["CREATED", "#NE#Omaha#", "location:5074472", "CITY", 1] in log["changes"]  # type: ignore[operator]


async def test_rows_may_come_in_any_order(store: Store) -> None:
    assert (await imported(store, NEBRASKA[::-1])).added.total() == len(NEBRASKA)


async def test_the_same_file_again_writes_nothing(store: Store) -> None:
    await imported(store, NEBRASKA)
    before = await invariants.all_items(store)
    outcome = await imported(store, NEBRASKA)
    assert (outcome.written, outcome.commits, outcome.unchanged) == (0, 0, len(NEBRASKA))
    assert await invariants.all_items(store) == before


async def test_a_change_makes_a_revision_and_keeps_the_state_before(store: Store) -> None:
    await imported(store, NEBRASKA)
    before = await record(store, "US/NE/Omaha")
    outcome = await imported(store, [("US/NE/Omaha", "CITY", {"name": "Omaha, NE", "population": None})])
    assert outcome.changed == {"CITY": 1}
    after = await record(store, "US/NE/Omaha")
    assert (after.name, after.revision, after.attributes) == ("Omaha, NE", 2, {})
    assert (after.kids, after.id) == (before.kids, before.id)
    (version,) = await store.get([revision_key(before.id, 1)], ReadUsage())
    assert version is not None
    assert (version["name"], version["population"], version["updated_at"]) == ("Omaha", 486051, before.updated_at)


async def test_attributes_that_a_file_leaves_open_stay(store: Store) -> None:
    await imported(store, NEBRASKA)
    outcome = await imported(store, [("US", "COUNTRY"), ("US/NE/Omaha/68118/1", "STORE", {"square_feet": 921})])
    assert outcome.written == 0
    assert (await record(store, "US")).name == "United States"


async def test_counts_change_neither_revision_nor_time(store: Store) -> None:
    await imported(store, NEBRASKA)
    before = await record(store, "US/NE")
    await imported(store, [("US/NE/Bellevue", "CITY")])
    after = await record(store, "US/NE")
    assert after.kids == {"CITY": 3}
    assert (after.revision, after.updated_at) == (before.revision, before.updated_at)


async def test_pruning_removes_nodes_that_the_file_does_not_have(store: Store) -> None:
    await imported(store, [*NEBRASKA, ("US/IA", "STATE"), ("FR", "COUNTRY"), ("FR/Paris", "CITY")])
    outcome = await imported(store, [("US/NE", "STATE"), ("US/NE/Lincoln", "CITY")], prune=True)
    assert outcome.removed == {"CITY": 1, "POSTAL_CODE": 1, "STORE": 1}
    assert await paths(store) == ["FR", "FR/Paris", "US", "US/IA", "US/NE", "US/NE/Lincoln"]


async def test_pruning_keeps_ancestors_of_nodes_of_the_file(store: Store) -> None:
    await imported(store, NEBRASKA)
    await imported(store, [("US", "COUNTRY"), ("US/NE/Omaha", "CITY")], prune=True)
    assert await paths(store) == ["US", "US/NE", "US/NE/Omaha"]


async def test_without_pruning_nothing_is_removed(store: Store) -> None:
    await imported(store, NEBRASKA)
    assert not (await imported(store, [("US", "COUNTRY")])).removed


async def test_a_removed_node_leaves_its_last_state_and_a_tombstone(store: Store) -> None:
    await imported(store, NEBRASKA)
    omaha = await record(store, "US/NE/Omaha")
    await imported(store, [("US/NE", "STATE")], prune=True)
    tombstone, last = await store.get([id_key(omaha.id), revision_key(omaha.id, 1)], ReadUsage())
    assert tombstone is not None
    assert last is not None
    assert tombstone["deleted"]
    assert (last["name"], last["population"]) == ("Omaha", 486051)


async def test_a_node_created_again_with_its_id_continues_its_revisions(store: Store) -> None:
    await imported(store, NEBRASKA)
    lincoln = await record(store, "US/NE/Lincoln")
    await imported(store, [("US/NE", "STATE")], prune=True)
    await imported(store, NEBRASKA)
    omaha, again = await record(store, "US/NE/Omaha"), await record(store, "US/NE/Lincoln")
    assert (omaha.id, omaha.revision) == ("location:5074472", 2)
    assert (again.id != lincoln.id, again.revision) == (True, 1), "its id is not in the file"
    assert (await imported(store, NEBRASKA)).written == 0
    assert await record(store, "US/NE/Lincoln") == again


async def test_a_file_without_ids_makes_the_same_ids_in_every_table_and_twice(store: Store) -> None:
    await imported(store, [("US", "COUNTRY"), ("US/NE", "STATE")])
    first = await record(store, "US/NE")
    assert first.id == f"location:{derived_id('location', ('US', 'NE'))}"
    await imported(store, [("US", "COUNTRY"), ("US/NE", "STATE")])
    assert await record(store, "US/NE") == first


async def test_a_deleted_id_may_be_given_to_another_path(store: Store) -> None:
    await imported(store, NEBRASKA)
    await imported(store, [("US/NE", "STATE")], prune=True)
    await imported(store, [("US/IA", "STATE"), ("US/IA/Omaha", "CITY", {"id": "5074472"})])
    assert (await record(store, "US/IA/Omaha")).revision == 2


async def test_an_update_and_a_removal_below_it_share_a_transaction(store: Store) -> None:
    await imported(store, NEBRASKA)
    outcome = await imported(store, [("US/NE", "STATE", {"name": "Nebraska"}), ("US/NE/Omaha", "CITY")], prune=True)
    assert outcome.commits == 1
    assert (await record(store, "US")).below == {"STATE": 1, "CITY": 1}


async def test_a_dry_run_writes_nothing(store: Store) -> None:
    await imported(store, NEBRASKA)
    before = await invariants.all_items(store)
    told: list[Told] = [("US/NE", "STATE", {"name": "Nebraska"}), ("US/NE/Bellevue", "CITY"), ("FR", "COUNTRY")]
    outcome = await imported(store, told, prune=True, dry_run=True)
    assert outcome.added == {"CITY": 1, "COUNTRY": 1}
    assert outcome.changed == {"STATE": 1}
    assert outcome.removed == {"CITY": 2, "POSTAL_CODE": 1, "STORE": 1}
    assert outcome.commits == 0
    assert await invariants.all_items(store) == before


async def test_many_children_need_many_transactions_and_each_leaves_all_counts_right(store: Store) -> None:
    streets: list[Told] = [(f"US/NE/Omaha/{n}", "POSTAL_CODE") for n in range(3 * store.max_changes // 4)]
    stopping = Stopping(store, commits=1)
    with pytest.raises(Stopped):
        await load(stopping, wanted_of([*NEBRASKA, *streets]), LoadResult())
    await invariants.check(store)
    first = len(await paths(store))
    assert 1 < first < len(streets)
    outcome = await imported(store, [*NEBRASKA, *streets])
    assert outcome.added.total() == len(streets) + len(NEBRASKA) - first
    assert outcome.unchanged == first
    assert (await record(store, "US/NE/Omaha")).kids == {"POSTAL_CODE": len(streets) + 1}
    outcome = await imported(store, NEBRASKA, prune=True)
    assert outcome.removed == {"POSTAL_CODE": len(streets)}


async def test_removals_continue_after_a_stop(store: Store) -> None:
    deep: list[Told] = [("A", "CATEGORY")]
    for n in range(store.max_changes // 8):
        deep += [(f"A/{n}", "CATEGORY"), (f"A/{n}/x", "PRODUCT"), (f"A/{n}/x/y", "VARIANT")]
    await imported(store, deep, CATEGORY)
    with pytest.raises(Stopped):
        await load(Stopping(store, commits=1), wanted_of(deep[:4], CATEGORY), LoadResult(), prune=True)
    await invariants.check(store)
    assert 4 < len(await paths(store, "category")) < len(deep)
    await imported(store, deep[:4], CATEGORY, prune=True)
    assert await paths(store, "category") == ["A", "A/0", "A/0/x", "A/0/x/y"]


async def test_examples_are_of_all_kinds_of_changes_in_a_transaction(store: Store) -> None:
    cities: list[Told] = [(f"US/NE/{n}", "CITY") for n in range(2 * EXAMPLES)]
    await imported(store, [*NEBRASKA[:2], *cities])
    renamed: list[Told] = [(path, level, {"name": "x"}) for path, level, *_ in cities[1:]]
    outcome = await imported(store, [*NEBRASKA[:2], *renamed, ("US/NY", "STATE")], prune=True)
    assert outcome.commits == 1
    assert outcome.examples == {
        Event.CREATED: ["US/NY"],
        Event.UPDATED: [path for path, *_ in renamed[:EXAMPLES]],
        Event.DELETED: ["US/NE/0"],
    }


async def test_big_nodes_go_into_transactions_of_less_than_four_megabytes(store: Store) -> None:
    note = "x" * 300_000
    big: list[Told] = [("A", "CATEGORY"), *[(f"A/{n}", "CATEGORY", {"note": note}) for n in range(24)]]
    assert (await imported(store, big, CATEGORY)).added.total() == 25


@pytest.mark.thorough
async def test_numbers_that_few_bytes_encode_count_as_dynamodb_counts_them() -> None:
    wanted = wanted_of([("A", "CATEGORY")], CATEGORY)
    for number in range(100):
        wanted.take(Row(number + 2, ("A", str(number)), [Part("CATEGORY", undefined={"numbers": [1] * 20_000})]))
    async with open_store("sqlite://:memory:") as store:
        sized, outcome = Sized(store), LoadResult()
        await load(sized, wanted, outcome)
    assert outcome.added.total() == 101
    assert 3_000_000 < max(sized.sizes) < 4_000_000


# -- rows that cannot be taken -----------------------------------------------------------------------------------------


async def test_a_row_without_a_parent_is_rejected_with_all_below_it(store: Store) -> None:
    outcome = await imported(
        store, [("US", "COUNTRY"), ("US/NE/Omaha", "CITY"), ("US/NE/Omaha/1", "POSTAL_CODE"), ("FR/Paris", "CITY")]
    )
    assert reasons(outcome) == {
        2: "Parent US/NE is neither in the file nor in the table.",
        3: "Parent US/NE/Omaha is missing, since row 2 was rejected.",
        4: "Parent FR is neither in the file nor in the table.",
    }
    assert await paths(store) == ["US"]


async def test_a_parent_may_be_in_the_table_alone(store: Store) -> None:
    await imported(store, NEBRASKA)
    assert not (await imported(store, [("US/NE/Bellevue", "CITY")])).rejections


async def test_nodes_below_a_rejected_row_are_rejected(store: Store) -> None:
    told: list[Told] = [("US", "COUNTRY", {"population": "many"}), ("US/NE", "STATE"), ("US/NE/Omaha", "CITY")]
    found = reasons(await imported(store, told))
    assert found[1].startswith("population: 'many' is not a valid Long")
    assert found[2] == "Parent US is missing, since row 1 was rejected."
    assert found[3] == "Parent US/NE is missing, since row 2 was rejected."


async def test_nodes_below_a_rejected_row_are_accepted_if_its_node_exists(store: Store) -> None:
    await imported(store, NEBRASKA)
    outcome = await imported(store, [("US/NE", "STATE", {"color": "red"}), ("US/NE/Bellevue", "CITY")])
    assert list(reasons(outcome)) == [1]
    assert outcome.added == {"CITY": 1}


async def test_a_level_under_a_wrong_one_is_rejected(store: Store) -> None:
    outcome = await imported(store, [("US", "COUNTRY"), ("US/Omaha", "POSTAL_CODE"), ("Omaha", "CITY")])
    assert reasons(outcome) == {
        2: "POSTAL_CODE may not stand under COUNTRY, only under CITY, under COUNTY, under NEIGHBORHOOD, under STATE.",
        3: "CITY may not stand as a root, only under COUNTRY, under COUNTY, under REGION, under STATE.",
    }


async def test_a_node_of_another_level_in_the_table_is_rejected(store: Store) -> None:
    await imported(store, NEBRASKA)
    outcome = await imported(store, [("US/NE", "REGION")])
    assert reasons(outcome) == {1: "US/NE is a STATE in the table, not a REGION."}


async def test_an_id_at_another_path_is_rejected_and_its_node_is_not_pruned(store: Store) -> None:
    await imported(store, NEBRASKA)
    told: list[Told] = [("US", "COUNTRY"), ("US/IA", "STATE"), ("US/IA/Omaha", "CITY", {"id": "5074472"}),
                        ("US/IA/Omaha/1", "POSTAL_CODE")]  # fmt: skip
    outcome = await imported(store, told, prune=True)
    assert reasons(outcome) == {
        3: "The id 5074472 belongs to US/NE/Omaha; use --moves to move it.",
        4: "The parent of US/IA/Omaha/1 is missing, since row 3 was rejected.",
    }
    assert [rejection.moved for rejection in outcome.rejections] == [True, False]
    assert await paths(store) == ["US", "US/IA", "US/NE", "US/NE/Omaha"]


async def test_an_id_is_not_changed(store: Store) -> None:
    await imported(store, NEBRASKA)
    outcome = await imported(store, [("US/NE/Omaha", "CITY", {"id": "1"})])
    assert reasons(outcome) == {1: "US/NE/Omaha has the id 5074472 in the table, not 1; ids never change."}


async def test_a_default_id_that_is_in_use_is_replaced(store: Store) -> None:
    await imported(store, NEBRASKA)
    lincoln = (await record(store, "US/NE/Lincoln")).id.removeprefix("location:")
    await imported(store, [("US/NE", "STATE")], prune=True)
    await imported(store, [("US/NE/Bellevue", "CITY", {"id": lincoln})])
    await imported(store, [("US/NE/Lincoln", "CITY")])
    assert (await record(store, "US/NE/Lincoln")).id != f"location:{lincoln}"
    assert (await imported(store, [("US/NE/Lincoln", "CITY")])).written == 0


async def test_a_default_id_that_the_file_gives_to_another_node_is_replaced(store: Store) -> None:
    await imported(store, NEBRASKA)
    lincoln = (await record(store, "US/NE/Lincoln")).id.removeprefix("location:")
    await imported(store, [("US/NE", "STATE")], prune=True)
    outcome = await imported(store, [("US/NE/Lincoln", "CITY"), ("US/NE/Bellevue", "CITY", {"id": lincoln})])
    assert not outcome.rejections
    assert (await record(store, "US/NE/Bellevue")).id == f"location:{lincoln}"


async def test_pruning_keeps_nodes_of_rejected_rows(store: Store) -> None:
    await imported(store, NEBRASKA)
    told: list[Told] = [("US/NE", "STATE"), ("US/NE/Omaha", "CITY", {"population": "many"})]
    outcome = await imported(store, told, prune=True)
    assert list(reasons(outcome)) == [2]
    assert await paths(store) == ["US", "US/NE", "US/NE/Omaha"]


async def test_pruning_keeps_nodes_with_the_id_of_a_rejected_row(store: Store) -> None:
    await imported(store, NEBRASKA)
    told: list[Told] = [("US", "COUNTRY"), ("US/Omaha", "CITY", {"id": "5074472", "population": "many"})]
    await imported(store, told, prune=True)
    assert await paths(store) == ["US", "US/NE", "US/NE/Omaha"]


async def test_a_leftover_id_record_is_used_again(store: Store) -> None:
    await imported(store, [("US", "COUNTRY")])
    await store.commit([Put({"pk": "id#location:7", "sk": "v0", "tree": "location#US", "key": "#NE#"})])
    await imported(store, [("US/NE", "STATE", {"id": "7"})])
    assert (await record(store, "US/NE")).id == "location:7"


async def test_nothing_is_pruned_when_a_row_has_no_valid_path(store: Store) -> None:
    await imported(store, NEBRASKA)
    wanted = wanted_of([("US/NE", "STATE")])
    wanted.take(Row(2, ["US", "NE", "Oma\x00ha"], [Part("CITY")]))
    outcome = LoadResult()
    await load(store, wanted, outcome, prune=True)
    assert not outcome.removed
    assert await paths(store) == [path for path, *_ in sorted(NEBRASKA)]


async def test_nothing_is_pruned_when_every_row_is_rejected(store: Store) -> None:
    await imported(store, NEBRASKA)
    outcome = await imported(store, [("US", "STATE"), ("US/NE", "CITY")], prune=True)
    assert len(outcome.rejections) == 2
    assert outcome.written == 0


async def test_a_node_past_400_kb_is_rejected(store: Store) -> None:
    outcome = await imported(store, [("A", "CATEGORY"), ("A/B", "CATEGORY", {"note": "x" * 410_000})], CATEGORY)
    assert "takes 410" in reasons(outcome)[2]
    assert await paths(store, "category") == ["A"]


# -- others who write meanwhile ----------------------------------------------------------------------------------------


class Stopped(Exception):
    """An import ends here."""


class Stopping:
    """A store of bounded commits that is interrupted after so many, or lets somebody else write in front of one."""

    def __init__(self, store: Store, commits: int) -> None:
        self._store = store
        self._commits = commits
        self.max_changes = self.max_commit_changes = store.max_changes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, changes: Sequence[Any]) -> None:
        if not self._commits:
            raise Stopped
        self._commits -= 1
        await self._store.commit(changes)


class Sized(Stopping):
    """Records the bytes of each commit."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, 0)
        self.sizes: list[int] = []

    async def commit(self, changes: Sequence[Change]) -> None:
        self.sizes.append(sum(size_of(change.item) for change in changes if isinstance(change, Put)))
        await self._store.commit(changes)


class Disturbed(Stopping):
    """Somebody else writes to the tree in front of each of the first `commits`."""

    async def commit(self, changes: Sequence[Any]) -> None:
        if self._commits:
            self._commits -= 1
            await load(self._store, wanted_of([(f"US/S{self._commits}", "STATE")]), LoadResult())
        await self._store.commit(changes)


async def test_a_tree_is_read_again_after_a_conflict(store: Store) -> None:
    await imported(store, [("US", "COUNTRY")])
    outcome = LoadResult()
    await load(Disturbed(store, commits=3), wanted_of(NEBRASKA[1:]), outcome)
    await invariants.check(store)
    assert outcome.added.total() == len(NEBRASKA[1:])
    assert {f"US/S{n}" for n in range(3)} <= set(await paths(store))


async def test_an_import_fails_after_too_many_conflicts(store: Store) -> None:
    await imported(store, [("US", "COUNTRY")])
    with pytest.raises(Conflict, match="Other writes to US prevented the import"):
        await load(Disturbed(store, commits=1000), wanted_of([("US/NE", "STATE")]), LoadResult())
    await invariants.check(store)


async def test_imports_side_by_side_make_every_node_once(store: Store) -> None:
    countries: list[Told] = [(f"C{n}", "COUNTRY") for n in range(12)]
    cities: list[Told] = [(f"C{n}/{m}", "CITY") for n in range(12) for m in range(5)]
    outcomes = [LoadResult() for _ in range(3)]
    await asyncio.gather(*[load(store, wanted_of(countries + cities), outcome) for outcome in outcomes])
    await invariants.check(store)
    assert sum(outcome.added.total() for outcome in outcomes) == len(countries + cities)
    assert [outcome.added.total() + outcome.unchanged for outcome in outcomes] == [len(countries + cities)] * 3


class Grouping(Disturbed):
    """The same for an engine that bounds no commit."""

    def __init__(self, store: Store, commits: int) -> None:
        super().__init__(store, commits)
        self.max_commit_changes = None


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
async def test_trees_are_committed_together(store: Store) -> None:
    told: list[Told] = [(f"C{n}", "COUNTRY") for n in range(30)] + [(f"C{n}/{n}", "CITY") for n in range(30)]
    outcome = await imported(store, told)
    assert (outcome.commits, outcome.added.total()) == (1, 60)
    assert (await imported(store, told)).unchanged == 60


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("times", [1, 3])
async def test_what_was_to_be_committed_together_is_read_again_after_a_conflict(store: Store, times: int) -> None:
    countries: list[Told] = [("US", "COUNTRY"), *[(f"C{n}", "COUNTRY") for n in range(5)]]
    cities: list[Told] = [(f"{path}/{n}", "CITY") for path, _ in countries for n in range(4)]
    await imported(store, countries[:3])
    outcome, done = LoadResult(), list[int]()
    told = [*countries, ("US/X", "CITY", {"population": "many"}), *cities]
    await load(Grouping(store, times), wanted_of(told), outcome, on_nodes=done.append)
    await invariants.check(store)
    assert outcome.added.total() + outcome.unchanged == sum(done) == len(countries + cities)
    assert list(reasons(outcome)) == [len(countries) + 1]
    assert {path for path, *_ in countries + cities} < set(await paths(store))


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
async def test_progress_is_what_is_committed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.transfer.load.GROUP_BYTES", 1_000_000)
    cities: list[Told] = [(f"US/{n}", "CITY") for n in range(3000)]
    outcome = LoadResult()
    seen: list[tuple[int, int]] = []

    class Watched(Stopping):
        async def commit(self, changes: Sequence[Any]) -> None:
            seen.append((outcome.written, len(await invariants.nodes(store, "location"))))
            await self._store.commit(changes)

    watched = Watched(store, 0)
    watched.max_commit_changes = None
    await load(watched, wanted_of([("US", "COUNTRY"), *cities]), outcome)
    assert len(seen) == outcome.commits > 2
    assert all(told == held for told, held in seen)
    assert outcome.written == len(cities) + 1


async def test_a_changed_version_fails_the_whole_commit(store: Store) -> None:
    await imported(store, NEBRASKA)
    (item,) = await store.get([tree_version_key("location#US")], ReadUsage(), strong=True)
    stale = TreeVersion.of("location#US", item)
    await imported(store, [("US/IA", "STATE")])
    with pytest.raises(Conflict):
        await store.commit([stale.incremented({}), Put({"pk": "location#US", "sk": "#XX#"})])
    await invariants.check(store)


def test_keys_of_rows_are_those_of_paths() -> None:
    paths = [("US",), ("US", "N%E", "O#$!"), ("ÅÄ", "e\u0301" * 3), ("a b", *["x" * 30] * 20)]
    for path in paths:
        wanted = ImportPlan(CATEGORY)
        wanted.take(Row(1, path, [Part("CATEGORY")]))
        ((pk, tree),) = wanted.trees.items()
        key = node_key("category", checked_path(path))
        assert pk == key.pk
        assert list(tree.nodes) == [key.sk]
