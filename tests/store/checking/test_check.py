"""Findings of a check, on both stores: each problem is found, and nothing else."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from store.checking.check import Check
from store.connect import open_store
from store.edits.create_update import Create
from store.edits.delete import Delete as Deletion
from store.edits.delete import Policy
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.model import items
from store.model.items import Put
from store.model.keys import Key, id_key, log_key, revision_key, tree_version_key
from store.writer.writer import Writer
from tests.hierarchies import CATEGORY, LOCATION, hierarchy, level
from tests.selection import examples
from tests.store.checking.broken import GONE_ID, HIERARCHIES, OMAHA, OMAHA_ID, US, at, change, fill, item, remove

pytestmark = pytest.mark.extenddb

AT = "2026-11-20T12:00:00.000Z"

Break = Callable[[Store], Awaitable[None]]


async def findings(store: Store) -> list[str]:
    return [str(finding) async for finding in Check(store, HIERARCHIES, AT).findings()]


@pytest.fixture(autouse=True)
def caught_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The indexes of local engines do not trail behind, so nothing has to be waited for."""
    monkeypatch.setattr("store.checking.check.SETTLE_SECONDS", 0)


def changed(place: Key, /, **values: Any) -> Break:
    return lambda store: change(store, place, **values)


def removed(*keys: Key) -> Break:
    return lambda store: remove(store, *keys)


def made(**values: Any) -> Break:
    return lambda store: store.commit([Put(values)])


NE, PARIS, BELLEVUE, FR = at("US/NE"), at("FR/Paris"), at("US/NE/Bellevue"), "location#FR"

BROKEN: dict[str, tuple[Break, list[str]]] = {
    "kids": (
        changed(NE, kids={"CITY": 4}),
        ["location US/NE: attribute `kids` is 4 CITY, expected 3 CITY"],
    ),
    "kids that are no counts": (
        changed(OMAHA, kids="many"),
        ["location US/NE/Omaha: attribute `kids` is 'many', expected 1 POSTAL_CODE"],
    ),
    "below": (
        changed(NE, below={}),
        ["location US/NE: attribute `below` is none, expected 3 CITY, 1 POSTAL_CODE, 1 STORE"],
    ),
    "below of a root": (
        changed(at("FR"), below={"CITY": 1}),
        ["location FR: attribute `below` is {'CITY': 1}, expected absent"],
    ),
    "above": (
        changed(OMAHA, above=["COUNTRY"]),
        ["location US/NE/Omaha: attribute `above` is ['COUNTRY'], expected ['COUNTRY', 'STATE']"],
    ),
    "level": (
        changed(OMAHA, level="STATE"),
        ["location US/NE/Omaha: attribute `level` is 'STATE', expected 'CITY'"],
    ),
    "tier": (
        changed(OMAHA, tier="nowhere"),
        ["location US/NE/Omaha: attribute `tier` is 'nowhere', expected 'location#US@CITY@2'"],
    ),
    "parent": (
        changed(OMAHA, parent=None),
        ["location US/NE/Omaha: attribute `parent` is absent, expected 'location#US#NE#'"],
    ),
    "rank": (
        changed(OMAHA, rank="CITY#Paris#"),
        ["location US/NE/Omaha: attribute `rank` is 'CITY#Paris#', expected 'CITY#Omaha#'"],
    ),
    "name": (
        changed(OMAHA, name=None),
        ["location US/NE/Omaha: attribute `name` is absent, expected a text that is not empty"],
    ),
    "revision": (
        changed(PARIS, revision=3),
        ["location FR/Paris: 2 earlier revisions missing"],
    ),
    "many revisions": (
        changed(PARIS, revision=5000),
        ["location FR/Paris: 4,999 earlier revisions missing"],
    ),
    "a revision gone back": (
        changed(OMAHA, revision=2),
        ["location US/NE/Omaha: history of id location:5074472 has revision 2, but the node is at 2"],
    ),
    "a revision that is no number": (
        changed(PARIS, revision="one"),
        ["location FR/Paris: attribute `revision` is 'one', expected a positive integer"],
    ),
    "updated_at": (
        changed(OMAHA, updated_at="today"),
        ["location US/NE/Omaha: attribute `updated_at` is 'today', expected a time in UTC (RFC 3339)"],
    ),
    "changed_by": (
        changed(OMAHA, changed_by=7),
        ["location US/NE/Omaha: attribute `changed_by` is 7, expected a text"],
    ),
    "an own attribute": (
        changed(OMAHA, population="some"),
        ["location US/NE/Omaha: attribute `population` is 'some', expected Long"],
    ),
    "a former state": (
        removed(revision_key(OMAHA_ID, 2)),
        ["location US/NE/Omaha: 1 earlier revision missing"],
    ),
    "a former state that says another revision": (
        changed(revision_key(OMAHA_ID, 2), revision=1),
        ["location US/NE/Omaha: history of id location:5074472: attribute `revision` is 1, expected 2"],
    ),
    "a former state of nothing": (
        made(pk="id#location:x", sk="v0000000001", revision=1, tree=FR, key="#X#"),
        ["location FR/X: id location:x has no record"],
    ),
    "the state of a deleted node": (
        removed(revision_key(GONE_ID, 1)),
        ["location US/NE/Gone: 1 revision of the deleted node location:gone missing"],
    ),
    "a deleted node without a revision": (
        changed(id_key(GONE_ID), revision=None),
        ["location US/NE/Gone: the deleted node location:gone has no revision"],
    ),
    "the record of an id": (
        removed(id_key("location:paris")),
        ["location FR/Paris: id location:paris has no record"],
    ),
    "the record of an id that leads nowhere": (
        changed(id_key(OMAHA_ID), key="#NE#Oz#"),
        [
            "location US/NE/Omaha: the record of id location:5074472 points to US/NE/Oz",
            "location US/NE/Oz: id location:5074472 has no node",
        ],
    ),
    "the record of an id as a deleted node's": (
        changed(id_key("location:paris"), deleted="2026-11-20T12:00:00Z", revision=0),
        [
            "location FR/Paris: the record of id location:paris says that the node is deleted",
            "location FR/Paris: the deleted node location:paris has no revision",
        ],
    ),
    "the record of an id without a node": (
        made(pk="id#location:x", sk="v0", tree=US, key="#NE#X#"),
        ["location US/NE/X: id location:x has no node"],
    ),
    "the record of an id that is another's": (
        made(pk="id#location:x", sk="v0", tree=US, key="#NE#Omaha#"),
        ["location US/NE/Omaha: the record of id location:x points to the node with the id location:5074472"],
    ),
    "an id": (
        changed(PARIS, id="location:rome"),
        [
            "location FR/Paris: id location:rome has no record",
            "location FR/Paris: attribute `id` is 'location:rome', expected 'location:paris'",
        ],
    ),
    "an id that none can have": (
        changed(PARIS, id="category:paris"),
        [
            "location FR/Paris: attribute `id` is 'category:paris', expected an id of location",
            "location FR/Paris: attribute `id` is 'category:paris', expected 'location:paris'",
        ],
    ),
    "an id that two have": (
        changed(PARIS, id=OMAHA_ID),
        [
            "location FR/Paris: id location:5074472 is also the id of US/NE/Omaha",
            "location FR/Paris: attribute `id` is 'location:5074472', expected 'location:paris'",
        ],
    ),
    "the number of a stamp": (
        changed(tree_version_key(FR), n=0),
        ["location FR: tree version: attribute `n` is 0, expected 1"],
    ),
    "the shape of a stamp": (
        changed(tree_version_key(FR), shape={"CITY@1": 2}),
        ["location FR: tree version: attribute `shape` is 2 CITY@1, expected 1 CITY@1, 1 COUNTRY@0"],
    ),
    "the aliases of a stamp": (
        changed(tree_version_key(US), aliases=0),
        ["location US: tree version: attribute `aliases` is 0, expected True"],
    ),
    "a stamp": (
        removed(tree_version_key(FR)),
        ["location FR: the tree version is missing"],
    ),
    "the stamp of the roots": (
        changed(tree_version_key("location"), shape={"COUNTRY@0": 3}),
        ["location: version of the roots: attribute `shape` is 3 COUNTRY@0, expected 2 COUNTRY@0"],
    ),
    "an alias": (
        changed(Key(f"alias#{US}", "#NE#Lincoln#"), id="location:x"),
        ["location US/NE/Lincoln: the redirect points to id 'location:x', which has no record"],
    ),
    "the log": (
        removed(log_key(US, 3), log_key(US, 4)),
        ["location US: the change log lacks the numbers 3 to 4"],
    ),
    "the end of the log": (
        changed(tree_version_key(FR), n=2),
        ["location FR: the change log lacks number 2"],
    ),
    "a key that is not in normal form": (
        made(pk=FR, sk="#Aix les#"),
        ["location FR/Aix les: the key is not in canonical form"],
    ),
    "a key that is none": (
        made(pk=FR, sk="#Aix"),
        ["location location#FR #Aix: the key is not that of a node"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
async def test_each_problem_is_found_and_nothing_else(store: Store, what: str) -> None:
    breaking, expected = BROKEN[what]
    await fill(store)
    await breaking(store)
    assert sorted(await findings(store)) == sorted(expected)


async def test_nothing_is_found_in_a_good_table(store: Store) -> None:
    await fill(store)
    assert await findings(store) == []


async def test_deleted_nodes_are_checked_many_at_a_time(store: Store) -> None:
    await fill(store)
    writer, paths = Writer(store), [("FR", f"{number}") for number in range(60)]
    edits = [Create(LOCATION, path, "CITY", "x", {}) for path in paths]
    for some in (edits, [Deletion(LOCATION, path, Policy.REFUSE) for path in paths]):
        await asyncio.gather(*[writer.write(edit, ReadUsage()) for edit in some])
    check = Check(store, HIERARCHIES, AT)
    assert [one async for one in check.findings()] == []
    assert check._reads.requests < 60


async def test_nothing_is_found_in_an_empty_table(store: Store) -> None:
    assert await findings(store) == []


async def test_a_table_with_a_tree_that_was_emptied_is_good(store: Store) -> None:
    await fill(store)
    await Writer(store).write(Deletion(LOCATION, ("FR",), Policy.CASCADE), ReadUsage())
    assert await findings(store) == []


# -- more than one attribute -------------------------------------------------------------------------------------------


async def test_a_node_without_a_parent_is_found_with_all_wrong_counts(store: Store) -> None:
    await fill(store)
    await remove(store, OMAHA)
    assert sorted(await findings(store)) == sorted([
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


async def test_a_root_that_is_not_listed_is_found(store: Store) -> None:
    await fill(store)
    await change(store, at("FR"), parent="nowhere")
    assert "location FR: attribute `parent` is 'nowhere', expected 'location'" in await findings(store)


async def test_levels_are_checked_against_their_parents(store: Store) -> None:
    await fill(store)
    levels = level("COUNTRY", "-"), level("TOWN", "COUNTRY"), level("CITY", "TOWN")
    elsewhere = {**HIERARCHIES, "location": hierarchy("location", *levels)}
    found = [str(one) async for one in Check(store, elsewhere, AT).findings()]
    assert "location FR/Paris: CITY may not stand under COUNTRY, only under TOWN" in found
    assert "location US/NE: attribute `level` is 'STATE', expected a level of location" in found


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


async def test_only_the_given_hierarchies_are_checked(store: Store) -> None:
    await fill(store)
    await change(store, PARIS, name=None)
    assert [one async for one in Check(store, {"category": CATEGORY}, AT).findings()] == []


async def test_findings_beyond_the_bound_are_counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.checking.findings.MAX_KEPT", 2)
    await fill(store)
    for path in ("US", "US/NE", "US/NE/Omaha"):
        await change(store, at(path), name=None, kids="?")
    found = await findings(store)
    assert len(found) == 5
    assert found[-1].endswith("and 2 more in this tree")


# -- properties --------------------------------------------------------------------------------------------------------

NODES = [at(path) for path in ("US", "US/NE", "US/NE/Omaha", "US/NE/York", "US/NE/Omaha/68118/1", "FR", "FR/Paris")]
DERIVED = "parent rank tier id level above kids below revision".split()
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
VALUES = st.one_of(
    st.none(), TEXTS, st.integers(-5, 5), st.booleans(), st.lists(TEXTS, max_size=2),
    st.dictionaries(st.sampled_from(["CITY", "STATE", "x"]), st.integers(-2, 9), max_size=2),
)  # fmt: skip


@given(key=st.sampled_from(NODES), name=st.sampled_from(DERIVED), value=VALUES)
@settings(max_examples=examples(12, 60))
async def test_any_wrong_value_of_a_derived_attribute_is_found(key: Key, name: str, value: Any) -> None:
    async with open_store("sqlite://:memory:") as store:
        await store.create()
        await fill(store)
        good = await item(store, key)
        assume(items.canonical_item({name: value}) != items.canonical_item({name: good.get(name)}))
        assume(name not in ("parent", "rank", "tier") or value is None or isinstance(value, str))  # as an engine does
        await store.commit([Put({**good, name: value})])
        assert await findings(store)
