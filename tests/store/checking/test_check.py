"""Check and repair of nodes, ids, counts and versions, on both stores: each problem is found, and nothing else."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest

from store.checking.check import Check
from store.checking.findings import MAX_KEPT, Finding, Findings, Fix
from store.checking.repair import Repair
from store.engine import ReadUsage, Store
from store.metadata.tree_version import TreeVersion
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, id_key, log_key, revision_key, tree_version_key
from store.model.records import ABSENT, Item, Put, key_of
from store.transfer.load import LoadResult, load
from store.writing.create_update import Create
from store.writing.move_delete import Delete as Deletion
from store.writing.move_delete import Policy
from store.writing.writer import Writer
from tests import invariants
from tests.hierarchies import LOCATION, hierarchy, level
from tests.store.checking.broken import GONE_ID, HIERARCHIES, OMAHA, OMAHA_ID, US, at, change, fill, item, remove
from tests.store.transfer.test_load import wanted_of
from tests.stores import StoreProxy

pytestmark = pytest.mark.extenddb

AT = "2026-11-20T12:00:00.000Z"

Break = Callable[[Store], Awaitable[None]]


async def findings(store: Store, hierarchies: dict[str, Hierarchy] = HIERARCHIES) -> list[str]:
    return sorted([str(finding) async for finding in Check(store, hierarchies, AT).findings()])


async def repaired(store: Store) -> tuple[list[str], list[str]]:
    """What a repair says that it mended, and what it says that it cannot mend."""
    told = [one async for one in Repair(Check(store, HIERARCHIES, AT)).run()]
    return [str(one.finding) for one in told if one.is_fixed], [str(one.finding) for one in told if not one.is_fixed]


async def all_items(store: Store) -> dict[Key, Item]:
    return {key_of(one): one for one in await invariants.all_items(store)}


@pytest.fixture(autouse=True)
def caught_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The indexes of local engines do not trail behind, so nothing has to be waited for."""
    monkeypatch.setattr("store.checking.sums.SETTLE_SECONDS", 0)


def changed(place: Key, /, **values: Any) -> Break:
    return lambda store: change(store, place, **values)


def removed(*keys: Key) -> Break:
    return lambda store: remove(store, *keys)


def made(**values: Any) -> Break:
    return lambda store: store.commit([Put(values)])


NE, PARIS, FR = at("US/NE"), at("FR/Paris"), "location#FR"
PARIS_ID = "location:paris"
FORMER: Any = {"revision": 1, "level": "CITY", "name": "X", "updated_at": AT}

DERIVED: list[tuple[Break, list[str]]] = [  # all of it follows from other items
    (changed(NE, kids={"CITY": 4}), ["US/NE: attribute `kids` is 4 CITY, expected 3 CITY"]),
    (changed(OMAHA, kids="many"), ["US/NE/Omaha: attribute `kids` is 'many', expected 1 POSTAL_CODE"]),
    (changed(NE, below={}), ["US/NE: attribute `below` is none, expected 3 CITY, 1 POSTAL_CODE, 1 STORE"]),
    (changed(at("FR"), below={"CITY": 1}), ["FR: attribute `below` is {'CITY': 1}, expected absent"]),
    (
        changed(OMAHA, above=["COUNTRY"]),
        ["US/NE/Omaha: attribute `above` is ['COUNTRY'], expected ['COUNTRY', 'STATE']"],
    ),
    (changed(OMAHA, level="STATE"), ["US/NE/Omaha: attribute `level` is 'STATE', expected 'CITY'"]),
    (changed(OMAHA, tier="nowhere"), ["US/NE/Omaha: attribute `tier` is 'nowhere', expected 'location#US@CITY@2'"]),
    (changed(OMAHA, parent=None), ["US/NE/Omaha: attribute `parent` is absent, expected 'location#US#NE#'"]),
    (changed(at("FR"), parent="nowhere"), [
        "FR: attribute `parent` is 'nowhere', expected 'location'",
        "version of the roots: attribute `shape` is 2 COUNTRY@0, expected 1 COUNTRY@0",
    ]),
    (changed(OMAHA, rank="CITY#Paris#"), ["US/NE/Omaha: attribute `rank` is 'CITY#Paris#', expected 'CITY#Omaha#'"]),
    (
        made(**FORMER, pk="id#location:x", sk="v0000000001", tree=FR, key="#X#"),
        ["FR/X: id location:x has no record"],
    ),
    (removed(id_key(PARIS_ID)), ["FR/Paris: id location:paris has no record"]),
    (changed(id_key(OMAHA_ID), key="#NE#Oz#"), [
        "US/NE/Omaha: the record of id location:5074472 points to US/NE/Oz",
        "US/NE/Oz: id location:5074472 has no node",
    ]),
    (changed(id_key(PARIS_ID), deleted="2026-11-20T12:00:00Z", revision=0), [
        "FR/Paris: the deleted node location:paris: expected `int` >= 1 in `revision`",
        "FR/Paris: the record of id location:paris says that the node is deleted",
    ]),
    (changed(id_key(GONE_ID), revision=None), [
        "US/NE/Gone: the deleted node location:gone: object missing required field `revision`",
    ]),
    (changed(Key(f"alias#{US}", "#NE#Lincoln#"), id=5), [
        "US/NE/Lincoln: the redirect is damaged, and of no use: expected `str`, got `int` in `id`",
    ]),
    (made(pk="id#location:x", sk="v0", tree=US, key="#NE#X#"), ["US/NE/X: id location:x has no node"]),
    (
        made(pk="id#location:x", sk="v0", tree=US, key="#NE#Omaha#"),
        ["US/NE/Omaha: the record of id location:x points to the node with the id location:5074472"],
    ),
    (changed(PARIS, id="location:rome"), [
        "FR/Paris: attribute `id` is 'location:rome', expected 'location:paris'",
        "FR/Paris: id location:rome has no record",
    ]),
    (changed(PARIS, id="category:paris"), [
        "FR/Paris: attribute `id` is 'category:paris', expected 'location:paris'",
        "FR/Paris: attribute `id` is 'category:paris', expected an id of location",
    ]),
    (changed(PARIS, id=OMAHA_ID), [
        "FR/Paris: attribute `id` is 'location:5074472', expected 'location:paris'",
        "FR/Paris: id location:5074472 is also the id of US/NE/Omaha",
    ]),
    (changed(tree_version_key(FR), n=0), ["FR: tree version: attribute `n` is 0, expected 1"]),
    (
        changed(tree_version_key(FR), shape={"CITY@1": 2}),
        ["FR: tree version: attribute `shape` is 2 CITY@1, expected 1 CITY@1, 1 COUNTRY@0"],
    ),
    (changed(tree_version_key(US), aliases=0), ["US: tree version: attribute `aliases` is 0, expected True"]),
    (removed(tree_version_key(FR)), ["FR: the tree version is missing"]),
    (
        changed(tree_version_key("location"), shape={"COUNTRY@0": 3}),
        ["version of the roots: attribute `shape` is 3 COUNTRY@0, expected 2 COUNTRY@0"],
    ),
    (
        changed(tree_version_key("location"), rank=None),
        ["version of the roots: attribute `rank` is absent, expected 'location'"],
    ),
]  # fmt: skip

LASTING: list[tuple[Break, str]] = [  # what only the node or its history said, so that nothing tells how it was
    (changed(OMAHA, name=None), "US/NE/Omaha: attribute `name` is absent, expected a text that is not empty"),
    (changed(PARIS, revision=5000), "FR/Paris: 4,999 earlier revisions missing"),
    (
        changed(OMAHA, revision=2),
        "US/NE/Omaha: history of id location:5074472 has revision 2, but the node is at 2",
    ),
    (changed(PARIS, revision="one"), "FR/Paris: attribute `revision` is 'one', expected a positive integer"),
    (
        changed(OMAHA, updated_at="today"),
        "US/NE/Omaha: attribute `updated_at` is 'today', expected a time in UTC (RFC 3339)",
    ),
    (changed(OMAHA, changed_by=7), "US/NE/Omaha: attribute `changed_by` is 7, expected a text"),
    (changed(OMAHA, population="some"), "US/NE/Omaha: attribute `population` is 'some', expected Long"),
    (removed(revision_key(OMAHA_ID, 2)), "US/NE/Omaha: 1 earlier revision missing"),
    (
        changed(revision_key(OMAHA_ID, 2), revision=1),
        "US/NE/Omaha: history of id location:5074472: attribute `revision` is 1, expected 2",
    ),
    (removed(revision_key(GONE_ID, 1)), "US/NE/Gone: 1 revision of the deleted node location:gone missing"),
    (
        changed(Key(f"alias#{US}", "#NE#Lincoln#"), id="location:x"),
        "US/NE/Lincoln: the redirect points to id 'location:x', which has no record",
    ),
    (removed(log_key(US, 3), log_key(US, 4)), "US: the change log lacks the numbers 3 to 4"),
    (changed(tree_version_key(FR), n=2), "FR: the change log lacks number 2"),
    (made(pk=FR, sk="#Aix les#"), "FR/Aix les: the key is not in canonical form"),
    (made(pk=FR, sk="#Aix"), "location#FR #Aix: the key is not that of a node"),
]


def told(problems: list[str]) -> list[str]:
    return [f"location{':' if one.startswith('version') else ''} {one}" for one in problems]


@pytest.mark.parametrize(("breaking", "problems"), DERIVED, ids=[problems[0] for _, problems in DERIVED])
async def test_derived_values_are_found_and_repaired(store: Store, breaking: Break, problems: list[str]) -> None:
    await fill(store)
    await breaking(store)
    assert await findings(store) == told(problems)
    mended, lasting = await repaired(store)
    assert mended
    assert set(mended) <= set(told(problems))
    assert lasting == []
    assert await findings(store) == []
    await invariants.check(store)


@pytest.mark.parametrize(("breaking", "problem"), LASTING, ids=[problem for _, problem in LASTING])
async def test_other_problems_are_found_and_left_by_a_repair(store: Store, breaking: Break, problem: str) -> None:
    await fill(store)
    await breaking(store)
    before = await all_items(store)
    assert await findings(store) == told([problem])
    assert await repaired(store) == ([], told([problem]))
    assert await all_items(store) == before


async def test_deleted_nodes_are_checked_many_at_a_time(store: Store) -> None:
    await fill(store)
    writer, paths = Writer(store), [("FR", f"{number}") for number in range(60)]
    edits = [Create(LOCATION, path, "CITY", "x", {}) for path in paths]
    for some in (edits, [Deletion(LOCATION, path, Policy.REFUSE) for path in paths]):
        await asyncio.gather(*[writer.write(edit, ReadUsage()) for edit in some])
    check = Check(store, HIERARCHIES, AT)
    assert [one async for one in check.findings()] == []
    assert check._reads.requests < 60


async def test_the_log_of_the_roots_is_checked_like_that_of_a_tree(store: Store) -> None:
    await fill(store)
    key = tree_version_key("location")
    number = TreeVersion.of("location", await item(store, key)).number
    await change(store, key, n=number + 1)
    assert await findings(store) == [f"location: the change log lacks number {number + 1}"]
    await change(store, key, n=number - 1)
    (found,) = await findings(store)
    assert found == f"location: version of the roots: attribute `n` is {number - 1}, expected {number}"
    assert await repaired(store) == ([found], [])
    assert await findings(store) == []


async def test_a_number_of_a_version_is_true_only_by_mistake(store: Store) -> None:
    await Writer(store).write(Create(LOCATION, ("FR",), "COUNTRY", "x", {}), ReadUsage())
    await change(store, tree_version_key("location"), n=True)  # which Python takes for 1
    (found,) = await findings(store)
    assert found == "location: version of the roots: attribute `n` is True, expected 1"
    assert await repaired(store) == ([found], [])


# -- findings of more than one attribute -------------------------------------------------------------------------------


async def test_a_node_without_a_parent_is_found_with_all_wrong_counts(store: Store) -> None:
    await fill(store)
    await remove(store, OMAHA)
    assert await findings(store) == sorted([
        "location US/NE/Omaha/68118: parent US/NE/Omaha is missing",
        "location US/NE/Omaha: id location:5074472 has no node",
        "location US/NE: attribute `kids` is 3 CITY, expected 2 CITY",
        "location US/NE: attribute `below` is 3 CITY, 1 POSTAL_CODE, 1 STORE, expected 2 CITY, 1 POSTAL_CODE, 1 STORE",
        "location US: tree version: attribute `shape` is 3 CITY@2, 1 COUNTRY@0, 1 POSTAL_CODE@3, 1 STATE@1, 1 STORE@4, "
        "expected 2 CITY@2, 1 COUNTRY@0, 1 POSTAL_CODE@3, 1 STATE@1, 1 STORE@4",
    ])  # fmt: skip


@pytest.mark.parametrize("stamped", [True, False])
async def test_a_tree_without_a_root_is_found_once(store: Store, stamped: bool) -> None:
    await fill(store)
    await remove(store, at("FR"), *([] if stamped else [tree_version_key(FR)]))
    found = await findings(store)
    assert found.count("location FR/Paris: parent FR is missing") == 1
    assert sum(line.startswith("location FR: ") for line in found) == 2  # its id, and its stamp
    assert "location: version of the roots: attribute `shape` is 2 COUNTRY@0, expected 1 COUNTRY@0" in found


async def test_levels_are_checked_against_their_parents(store: Store) -> None:
    await fill(store)
    levels = level("COUNTRY", "-"), level("TOWN", "COUNTRY"), level("CITY", "TOWN")
    found = await findings(store, {**HIERARCHIES, "location": hierarchy("location", *levels)})
    assert "location FR/Paris: CITY may not stand under COUNTRY, only under TOWN" in found
    assert "location US/NE: attribute `level` is 'STATE', expected a level of location" in found


async def test_a_class_that_lacks_a_level_of_roots_leaves_their_number_as_it_is(store: Store) -> None:
    after = hierarchy("location", *LOCATION.levels.values(), level("TRASH", "-"))
    for path, name in (("US", "COUNTRY"), ("T1", "TRASH"), ("T2", "TRASH")):
        await Writer(store).write(Create(after, (path,), name, path, {}), ReadUsage())
    before = await store.get([tree_version_key("location")], ReadUsage())
    assert not [one for one in await findings(store) if "version of the roots" in one]
    await repaired(store)
    assert await store.get([tree_version_key("location")], ReadUsage()) == before
    assert await findings(store, {**HIERARCHIES, "location": after}) == []


@pytest.mark.parametrize("places", [("US/NE/Omaha", "US/NE/Bellevue"), ("FR", "US")])
async def test_two_reordered_siblings_with_one_rank_are_found(store: Store, places: tuple[str, str]) -> None:
    await fill(store)
    for path in places:
        rank = f"{(await item(store, at(path)))['level']}##V5"
        await change(store, at(path), rank=rank)
    found = await findings(store)
    first, last = sorted(places)
    assert found in ([f"location {last}: attribute `rank` is the same as that of {first}"],
                     [f"location {first}: attribute `rank` is the same as that of {last}"])  # fmt: skip


def test_of_each_kind_of_finding_so_many_are_kept_and_the_others_counted() -> None:
    kept = Findings()
    for fix in (None, Fix(PARIS, None, ABSENT)):
        for _ in range(MAX_KEPT + 1):
            kept.add(Finding("location", "FR", "x", fix))
    assert len(kept.kept) == 2 * MAX_KEPT
    assert str(list(kept)[-1]) == "location FR: and 2 more in this tree"


# -- repairs -----------------------------------------------------------------------------------------------------------


async def test_many_problems_are_repaired_and_a_second_repair_changes_nothing(store: Store) -> None:
    await fill(store)
    for breaking, _ in DERIVED[:18:2]:  # which change different items
        await breaking(store)
    await repaired(store)
    assert await findings(store) == []
    await invariants.check(store)
    before = await all_items(store)
    assert await repaired(store) == ([], [])
    assert await all_items(store) == before
    await Writer(store).write(Deletion(LOCATION, ("FR",), Policy.CASCADE), ReadUsage())
    assert await findings(store) == []


async def test_the_id_of_a_lost_node_becomes_a_tombstone_of_its_last_revision(store: Store) -> None:
    await fill(store)
    await remove(store, at("US/NE/Omaha/68118/1"), OMAHA)
    _, lasting = await repaired(store)
    assert lasting == ["location US/NE/Omaha/68118: parent US/NE/Omaha is missing"]
    tombstone = await item(store, id_key(OMAHA_ID))
    assert (tombstone["deleted"], tombstone["revision"], tombstone["key"]) == (AT, 2, OMAHA.sk)
    assert await findings(store) == lasting, "the node below stays, and its parent can be imported"
    await load(store, wanted_of([("US/NE/Omaha", "CITY", {"id": OMAHA_ID.partition(":")[2]})]), LoadResult())
    assert (await item(store, OMAHA))["revision"] == 3


async def test_a_repair_increments_the_version_and_adds_an_empty_log_item(store: Store) -> None:
    await fill(store)
    await change(store, OMAHA, kids={}, below={})
    before = TreeVersion.of(US, await item(store, tree_version_key(US)))
    await repaired(store)
    after = TreeVersion.of(US, await item(store, tree_version_key(US)))
    assert (after.number, after.shape, after.has_redirects) == (before.number + 1, before.shape, before.has_redirects)
    assert (await item(store, log_key(US, after.number)))["changes"] == []


async def test_many_fixes_take_several_transactions(store: Store) -> None:
    await fill(store)
    store.max_changes, count = 20, 50
    await load(store, wanted_of([(f"FR/C{n}", "CITY") for n in range(count)]), LoadResult())
    keys = [at(f"FR/C{n}") for n in range(count)]
    found = [one for one in await store.get(keys, ReadUsage(), strong=True) if one is not None]
    for start in range(0, count, store.max_changes):
        await store.commit([Put({**one, "kids": {"CITY": 1}}) for one in found[start : start + store.max_changes]])
    mended, lasting = await repaired(store)
    assert (len(mended), lasting) == (count, [])
    await invariants.check(store)


async def test_concurrent_checks_and_repairs_report_and_lose_nothing(store: Store) -> None:
    await fill(store)

    async def write() -> None:
        for n in range(12):
            await load(store, wanted_of([(f"US/NE/N{n}", "CITY"), (f"C{n}", "COUNTRY")]), LoadResult())
            await asyncio.sleep(0)

    async def check() -> list[str]:
        found = []
        for _ in range(5):
            found += await findings(store)
            await repaired(store)
        return found

    _, found = await asyncio.gather(write(), check())
    assert [one for one in found if "not checked" not in one] == []
    assert await findings(store) == []
    await invariants.check(store)
    assert (await item(store, at("US/NE")))["kids"] == {"CITY": 15}


async def test_a_tree_is_checked_with_its_root_and_not_with_the_redirect_of_another_one(store: Store) -> None:
    await fill(store)
    redirect, root = {"pk": "alias#location#US", "sk": "#", "id": "location:x"}, {"pk": "location#US", "sk": "#"}
    check = Check(store, HIERARCHIES, AT)
    assert await check.trees([redirect], set()) == []
    assert await check.trees([root, redirect], set()) == ["location#US"]


class Behind(StoreProxy):
    """Store whose weak reads by key still have these items, as those of DynamoDB may shortly after a write."""

    def __init__(self, store: Store, items: Mapping[Key, Item]) -> None:
        super().__init__(store)
        self._items = items

    async def get(self, keys: Sequence[Key], reads: ReadUsage, *, strong: bool = False) -> list[Item | None]:
        found = await self._store.get(keys, reads, strong=strong)
        return found if strong else [self._items.get(key) for key in keys]


async def test_a_repair_keeps_what_was_written_shortly_before_it(store: Store) -> None:
    await fill(store)
    behind: Any = Behind(store, await all_items(store))
    await change(store, OMAHA, name="Omaha!", tier="nowhere")
    mended, lasting = await repaired(behind)
    assert (len(mended), lasting) == (1, [])
    assert (await item(store, OMAHA))["name"] == "Omaha!"
    assert await findings(store) == []
