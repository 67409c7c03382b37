"""Check and repair of unique values: damage of every kind, values that two nodes have, classes that ask for more or
less, and nothing said of what others write meanwhile.
"""

import contextlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from resolvers.search.finder import missing_items
from store.checking.check import Check
from store.checking.repair import Repair
from store.connect import opened
from store.engine import ReadUsage, Store
from store.errors import NotIndexed, Taken
from store.kinds.marker import Marker, marker_key
from store.kinds.unique import UniqueValue
from store.metadata.moves import MoveTiming
from store.model.attributes import Attribute, Kind
from store.model.hierarchy import Hierarchy, Level, Search, SearchScope
from store.model.keys import node_key
from store.model.paths import parse_path
from store.model.records import Change, Delete, Item, Put, key_of
from store.transfer.copy import Copy, new_store
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from store.writing.create_update import Create, Update
from store.writing.edit import Edit
from store.writing.edit_many import EditMany
from store.writing.move_delete import Delete as Deletion
from store.writing.move_delete import Move, Policy
from store.writing.move_worker import MoveWorker
from store.writing.writer import Writer
from tests import invariants
from tests.selection import examples
from tests.store.kinds.test_unique import LEVELS, NUMBER, SHOP, SKU, values
from tests.store.writing import journaled
from tests.stores import Interrupted, once

AT = "2026-01-01T00:00:00.000Z"
SOON = MoveTiming(0.0, 0.0, 5.0, 5.0)
PLAIN = replace(SKU, unique=False)


def shop(**levels: Sequence[Attribute]) -> Hierarchy:
    """The hierarchy, of a class in which these levels have these attributes."""
    named = {name: {one.name: one for one in levels.get(name, ())} for name in LEVELS}
    return replace(SHOP, levels={name: replace(one, attributes=named[name]) for name, one in LEVELS.items()})


BOTH = [SKU, NUMBER]
NONE = shop(PRODUCT=[PLAIN, replace(NUMBER, unique=False)], VARIANT=[PLAIN])
NUMBERS = shop(PRODUCT=[PLAIN, NUMBER], VARIANT=[PLAIN])


async def fill(store: Store, hierarchy: Hierarchy = SHOP, more: int = 0, **attributes: dict[str, Any]) -> None:
    """Two trees with products and a variant, and `more` products without values."""
    plan = ImportPlan(hierarchy)
    rows = [("g", "GROUP"), ("g/p", "PRODUCT"), ("g/p/v", "VARIANT"), ("g/q", "PRODUCT"), ("h", "GROUP")]
    rows += [("h/r", "PRODUCT"), *[(f"h/z{number}", "PRODUCT") for number in range(more)]]
    for number, (path, level) in enumerate(rows):
        own = attributes.get(path.replace("/", "_"), {})
        plan.take(Row(number, parse_path(path), [Part(level, path, path.replace("/", "."), own)]))
    await load(store, plan, LoadResult())


VALUES: dict[str, dict[str, Any]] = {
    "g_p": {"sku": "A", "number": 1}, "g_p_v": {"sku": "V"}, "g_q": {"sku": "B"}, "h_r": {"sku": "C", "number": 2},
}  # fmt: skip
DOUBLE = {**VALUES, "h_r": {"sku": "A", "number": 2}}


async def findings(store: Store, hierarchy: Hierarchy = SHOP) -> list[str]:
    return [str(one) async for one in Check(store, {"shop": hierarchy}, AT).findings()]


async def repaired(store: Store, hierarchy: Hierarchy = SHOP) -> list[tuple[str, bool]]:
    check = Check(store, {"shop": hierarchy}, AT)
    return [(str(one.finding), one.is_fixed) async for one in Repair(check, SOON).run()]


async def write(store: Store, hierarchy: Hierarchy, *edits: Any) -> None:
    writer = Writer(store, SOON)
    for one in edits:
        await writer.write(replace(one, hierarchy=hierarchy), ReadUsage())
        await writer.move_worker.finished()


def update(path: str, **changed: Any) -> Update:
    return Update(SHOP, parse_path(path), None, None, changed)


def create(path: str, level: str = "PRODUCT", **given: Any) -> Create:
    return Create(SHOP, parse_path(path), level, path, given, path.replace("/", "."))


def move(path: str, target: str) -> Move:
    return Move(SHOP, parse_path(path), parse_path(target))


async def item(store: Store, value: str, attribute: Attribute = SKU) -> Item:
    return await journaled.there(store, UniqueValue.of("shop", attribute, value).keys[0])


async def marker(store: Store) -> Marker:
    found = Marker.of("shop", await journaled.there(store, marker_key("shop")))
    assert found is not None
    return found


async def made(store: Store, level: str = "PRODUCT") -> set[str]:
    found = (await marker(store)).parts["unique"].made
    assert found is not None
    return {*found.level(level).numbers}


# -- damage ------------------------------------------------------------------------------------------------------------


def changed(**given: Any) -> Callable[[Item], Change]:
    return lambda found: Put({**found, **given})


def stray(pk: str, sk: str = "#", **given: Any) -> Callable[[Item], Change]:
    return lambda found: Put({**found, "pk": pk, "sk": sk, **given})


WRONG = "shop g/p: the item of its sku A is not as the node is"
OTHERS = "shop g/p: the item of its sku A is another node's"
GONE = "shop: an item of sku A of the node shop:, which does not exist"
DAMAGE: dict[str, tuple[Callable[[Item], Change], set[str]]] = {  # of the item of the sku A of g/p
    "missing": (lambda found: Delete(key_of(found)), {"shop g/p: the item of its sku A is missing"}),
    "another's": (changed(id="shop:g.q"), {OTHERS, "shop g/q: an item of sku A that it does not need"}),
    "another's of another tree": (changed(id="shop:h.r"), {OTHERS, "shop h/r: an item of sku A that it does not need"}),
    "of no node": (changed(id="shop:x"), {OTHERS, "shop: an item of sku A of the node shop:x, which does not exist"}),
    "an id that is no text": (changed(id=5), {OTHERS, GONE}),
    "no id": (changed(id=None), {OTHERS, GONE}),
    "an id of another hierarchy": (changed(id="location:g.p"), {OTHERS, GONE}),
    "a place that is none": (changed(at="nowhere"), {WRONG}),
    "a place that is no text": (changed(at=[1]), {WRONG}),
    "no place": (changed(at=None), {WRONG}),
    "another attribute": (changed(more=1), {WRONG}),
    "a value that it lost": (stray("unique/shop.sku#old"), {"shop g/p: an item of sku old that it does not need"}),
    "an attribute that does not exist": (
        stray("unique/shop.ean#A"), {"shop g/p: an item of ean A that it does not need"},
    ),
    "a value of nobody, with a damaged id": (
        stray("unique/shop.sku#old", id=[7]), {"shop: an item of sku old of the node shop:, which does not exist"},
    ),
    "a key that is none": (stray("unique/shop.sku#A", "!"), {"shop g/p: an item of sku A that it does not need"}),
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGE)
async def test_damage_is_found_and_repaired(store: Store, what: str) -> None:
    damage, told = DAMAGE[what]
    await fill(store, **VALUES)
    assert await findings(store) == []
    before = await values(store)
    await store.commit([damage(await item(store, "A"))])
    assert {*await findings(store)} == told
    results = await repaired(store)
    assert results
    assert all(is_fixed for _, is_fixed in results)
    assert await findings(store) == await repaired(store) == []
    assert await values(store) == before
    await invariants.check(store, {"shop": SHOP})


@pytest.mark.parametrize("what", ["missing", "another's", "of no node", "an id that is no text"])
@pytest.mark.parametrize("limit", [None, 20], ids=["at once", "in the background"])
async def test_a_node_is_deleted_whatever_its_items_are(store: Store, what: str, limit: int | None) -> None:
    await fill(store, **VALUES)
    await store.commit([DAMAGE[what][0](await item(store, "A"))])
    store.max_commit_changes = limit
    await write(store, SHOP, Deletion(SHOP, parse_path("g/p"), Policy.CASCADE))
    store.max_commit_changes = None
    assert all(is_fixed for _, is_fixed in await repaired(store))
    assert await values(store) == {"sku#B": "g.q", "sku#C": "h.r", "number#2": "h.r"}
    await invariants.check(store, {"shop": SHOP})


async def test_a_place_from_before_a_move_is_right_and_is_written_anew(store: Store) -> None:
    await fill(store, **VALUES)
    await write(store, SHOP, move("g", "h/g"), move("h", "z"))
    assert (await item(store, "A"))["at"] == "g#p#"
    assert await findings(store) == []
    assert await repaired(store) == []
    assert (await item(store, "A"))["at"] == "z#g#p#"
    assert (await item(store, "V"))["at"] == "z#g#p#v#"


async def test_a_renamed_attribute_is_told_by_its_present_name(store: Store) -> None:
    code = replace(SKU, name="code", was=("sku",))
    await fill(store, shop(PRODUCT=BOTH, VARIANT=[SKU]), **VALUES)
    await store.commit([Delete(key_of(await item(store, "A")))])
    assert await findings(store, shop(PRODUCT=[code, NUMBER], VARIANT=[code])) == [
        "shop g/p: the item of its code A is missing"
    ]


# -- values that two nodes have ----------------------------------------------------------------------------------------

WAY_OUT = "change one of both, then run clade repair"


def twice(path: str, other: str) -> str:
    return f"shop {path}: its sku A is also that of {other}; {WAY_OUT}"


async def double(store: Store, path: str) -> None:
    """Give a node the sku A, by nobody's rules."""
    node = await journaled.there(store, node_key("shop", parse_path(path)))
    await store.commit([Delete(key_of(await item(store, str(node["sku"])))), Put({**node, "sku": "A"})])


@pytest.mark.parametrize("path", ["h/r", "g/q", "g/p/v"], ids=["two trees", "one tree", "two levels"])
async def test_a_value_that_two_nodes_have_is_told_with_both_and_left(store: Store, path: str) -> None:
    await fill(store, **VALUES)
    await double(store, path)
    before = await values(store)
    assert await findings(store) == [twice(path, "g/p")]
    assert await repaired(store) == [(twice(path, "g/p"), False)]
    assert await values(store) == before
    assert await made(store) == {"sku", "number"}
    await write(store, SHOP, update(path, sku="Z"))
    assert await findings(store) == await repaired(store) == []
    await invariants.check(store, {"shop": SHOP})


async def test_of_two_nodes_without_an_item_the_first_one_gets_it(store: Store) -> None:
    await fill(store, **VALUES)
    for path in ("g/q", "h/r"):
        await double(store, path)
    await store.commit([Delete(key_of(await item(store, "A")))])
    missing = "{}: the item of its sku A is missing"
    assert await findings(store) == [twice("g/q", "g/p"), missing.format("shop g/p"), missing.format("shop h/r")]
    results = await repaired(store)
    assert (missing.format("shop g/p"), True) in results
    assert {one for one, is_fixed in results if not is_fixed} == {twice("g/q", "g/p"), twice("h/r", "g/p")}
    assert (await values(store))["sku#A"] == "g.p"


@pytest.mark.both_stores
async def test_an_item_is_not_taken_from_a_node_that_gets_the_value_meanwhile(store: Store) -> None:
    await fill(store, **VALUES)
    before = await item(store, "A")
    for number in range(1, 9):
        await store.commit([Put({**before, "id": "shop:h.r"})])  # which does not have the value

        async def take() -> None:
            with contextlib.suppress(Taken):
                await write(store, SHOP, update("h/r", sku="A"))

        racing = cast(Store, Interrupted(store, "commit", "get", before=once(number, take)))
        results = await repaired(racing)
        holder = (await values(store))["sku#A"]
        has_taken = (await journaled.there(store, node_key("shop", ("h", "r"))))["sku"] == "A"
        assert holder == ("h.r" if has_taken else "g.p"), number
        assert ((twice("g/p", "h/r"), False) in results) == has_taken
        await write(store, SHOP, update("h/r", sku="C"))
        assert all(is_fixed for _, is_fixed in await repaired(store))
        await invariants.check(store, {"shop": SHOP})


async def test_a_stray_item_that_another_node_takes_meanwhile_is_not_removed(store: Store) -> None:
    await fill(store, **VALUES)
    found = await item(store, "A")
    other = {**found, "pk": "unique/shop.sku#old"}
    for number in range(1, 40):
        await store.commit([Put(other)])

        async def take() -> None:
            await store.commit([Delete(key_of(other))])
            await write(store, SHOP, update("h/r", sku="old"))

        racing = Interrupted(store, "commit", "get", before=once(number, take))
        await repaired(cast(Store, racing))
        if racing.calls < number:
            break
        assert (await values(store)).get("sku#old") == "h.r", number
        assert await findings(store) == []
        await write(store, SHOP, update("h/r", sku="C"))
    assert number > 5


# -- a class that asks for more or less --------------------------------------------------------------------------------

LACKS = "unique-value items are missing: {}; what needs them is an error until clade repair has written them"


@pytest.mark.both_stores
async def test_an_attribute_is_unique_once_a_repair_finds_no_value_twice(store: Store) -> None:
    await fill(store, NUMBERS, **DOUBLE)
    assert await missing_items(store, [SHOP]) == [
        "Unique-value items of shop are missing: sku of PRODUCT, sku of VARIANT."
    ]
    lacks = f"shop: {LACKS.format('sku of PRODUCT, sku of VARIANT')}"
    assert await findings(store) == [lacks]

    async def check_refused(*edits: Edit) -> None:
        """Look-ups by the attribute and these edits are refused, all others are not."""
        found = await marker(store)
        with pytest.raises(NotIndexed):
            UniqueValue.of("shop", SKU, "A").key(SHOP, found.parts["unique"].made)
        assert UniqueValue.of("shop", NUMBER, 1).key(SHOP, found.parts["unique"].made)
        before = await invariants.all_items(store)
        for one in edits:
            with pytest.raises(NotIndexed):
                await write(store, SHOP, one)
        with pytest.raises(Taken):
            await write(store, SHOP, update("g/q", number=1))
        assert await invariants.all_items(store) == before
        await write(store, SHOP, update("g/q", number=7), update("g/q", number=None))

    await check_refused(update("g/q", sku="N"), create("g/new", sku="N"), create("g/p/n", "VARIANT", sku="N"))
    for hierarchy in (NUMBERS, SHOP):
        assert await repaired(store) == [(lacks, False), (twice("h/r", "g/p"), False)]
        assert await made(store) == {"number"}
        assert await findings(store) == [twice("h/r", "g/p"), lacks]
        await check_refused()
        with pytest.raises(Taken):  # all writers make the items
            await write(store, hierarchy, update("g/q", sku="A"))
        await write(
            store, hierarchy, update("g/q", sku="N"), update("h/r", number=3), move("h/r", "g/r"), move("g/r", "h/r")
        )
        assert (await values(store)).get("sku#N") == "g.q"
        await write(store, hierarchy, update("g/q", sku="B"))
    await write(store, SHOP, update("h/r", sku="R"))
    assert await repaired(store) == [(lacks, True)]
    assert await made(store) == {"sku", "number"}
    assert await findings(store) == await repaired(store) == await missing_items(store, [SHOP]) == []
    await write(store, SHOP, update("h/r", sku="C"))
    await invariants.check(store, {"shop": SHOP})


async def test_what_is_searched_is_made_whatever_values_two_nodes_have(store: Store) -> None:
    searched = replace(SHOP, search=Search(SearchScope.HIERARCHY))
    await fill(store, NONE, **DOUBLE)
    written = "what needs them is an error until clade repair has written them"
    both = f"shop: search items are missing: all; unique-value items are missing: all; {written}"
    assert await findings(store, searched) == [both]
    first, second, *others = await repaired(store, searched)
    assert first == (f"shop: search items are missing: all; {written}", True)
    only = "Unique-value items of shop are missing: number of PRODUCT, sku of PRODUCT, sku of VARIANT."
    assert others == [(twice("h/r", "g/p"), False)]
    assert (await marker(store)).parts["words"].making is None
    (found,) = await missing_items(store, [searched])
    assert sorted(found) == sorted(only)
    lacks = found.removeprefix("Unique-value items of shop").removesuffix(".")
    assert second == (f"shop: unique-value items{lacks}; {written}", False)


async def test_an_attribute_that_is_no_longer_unique_is_so_until_a_repair(store: Store) -> None:
    await fill(store, **VALUES)
    assert await missing_items(store, [NUMBERS]) == []
    unasked = (
        "shop: sku of PRODUCT, sku of VARIANT are unique, which its class does not ask for; clade repair ends that"
    )
    assert await findings(store, NUMBERS) == [unasked]
    for hierarchy in (NUMBERS, SHOP):
        with pytest.raises(Taken):
            await write(store, hierarchy, update("h/r", sku="A"))
    results = await repaired(store, NUMBERS)
    assert all(is_fixed for _, is_fixed in results)
    assert (unasked, True) in results
    assert await findings(store, NUMBERS) == await repaired(store, NUMBERS) == []
    assert await values(store) == {"number#1": "g.p", "number#2": "h.r"}
    assert await made(store) == {"number"}
    await write(store, NUMBERS, update("h/r", sku="A"))
    with pytest.raises(Taken):
        await write(store, NUMBERS, update("h/r", number=1))
    await invariants.check(store, {"shop": NUMBERS})
    assert (twice("h/r", "g/p"), False) in await repaired(store, SHOP)


async def test_a_class_without_any_has_all_removed(store: Store) -> None:
    await fill(store, **VALUES)
    assert len(await findings(store, NONE)) == 1
    results = await repaired(store, NONE)
    assert len(results) > 1
    assert all(is_fixed for _, is_fixed in results)
    assert await findings(store, NONE) == []
    assert await values(store) == {}
    await invariants.check(store)


@pytest.mark.parametrize(("before", "later"), [(NONE, SHOP), (NUMBERS, SHOP), (SHOP, NUMBERS), (SHOP, NONE)])
async def test_a_repair_that_stops_anywhere_is_continued(store: Store, before: Hierarchy, later: Hierarchy) -> None:
    await fill(store, before, **VALUES)
    stops = 0
    for commits in itertools.count(1, examples(3, 1)):
        with contextlib.suppress(journaled.Dies):
            await repaired(cast(Store, journaled.mortal(store, 1 + commits % 5)), later)
            break
        stops += 1
        assert stops < 99
    assert stops
    assert all(is_fixed for _, is_fixed in await repaired(store, later))
    assert await findings(store, later) == []
    await invariants.check(store, {"shop": later} if later is not NONE else None)


async def test_a_value_that_others_set_while_a_repair_runs_is_refused_or_found(store: Store) -> None:
    await fill(store, NUMBERS, **VALUES)
    were_made = set[bool]()
    for number in itertools.count(1, examples(5, 1)):

        async def take() -> None:
            for one in (create("h/new", sku="A"), create("h/other", sku="N"), update("g/q", sku="M")):
                with contextlib.suppress(Taken):
                    await write(store, NUMBERS, one)

        racing = Interrupted(store, "get", "range", "commit", before=once(number, take))
        results = await repaired(cast(Store, racing))
        if racing.calls < number:
            break
        nodes = await invariants.nodes(store, "shop")
        is_double = [one.get("sku") for one in nodes.values()].count("A") > 1
        were_made.add(is_made := "sku" in await made(store))
        assert is_made != is_double, number
        told = {(twice("h/new", "g/p"), False), (twice("g/p", "h/new"), False)}
        assert len(told.intersection(results)) == is_double
        if is_made:
            await invariants.check(store, {"shop": SHOP})
        paths = [one for one in ("h/new", "h/other") if f"shop#h#{one[2:]}#" in nodes]
        await write(store, NUMBERS, *[Deletion(NUMBERS, parse_path(one), Policy.CASCADE) for one in paths])
        await write(store, NUMBERS, update("g/q", sku="B"))
        await repaired(store, NUMBERS)
    assert were_made == {True, False}


async def test_a_repair_does_not_end_before_a_large_deletion_that_began_before_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(store, NUMBERS, more=30, **VALUES)
    store.max_commit_changes = 20
    results: list[tuple[str, bool]] = []

    async def nothing(*_: Any) -> list[Any]:
        return []

    async def repair() -> None:
        with monkeypatch.context() as patch:  # as for a deletion of another server, which goes on
            patch.setattr(MoveWorker, "finish", nothing)
            results.extend(await repaired(store))

    writer = Writer(cast(Store, Interrupted(store, "commit", before=once(3, repair))), SOON)
    await writer.write(Deletion(NUMBERS, ("h",), Policy.CASCADE), ReadUsage())
    await writer.move_worker.finished()
    assert any("a large move is running" in text and not is_fixed for text, is_fixed in results)
    assert await made(store) == {"number"}
    assert all(is_fixed for _, is_fixed in await repaired(store))
    await write(store, SHOP, update("g/p", sku="C"))
    await invariants.check(store, {"shop": SHOP})


# -- two versions of a class, without a repair -------------------------------------------------------------------------

OLD = replace(SKU, was=("code",))  # which the docs let old servers have first
NEW = Attribute("code", Kind.TEXT, "Code.", unique=True, was=("sku",))
PART = Level("PART", "Part", "Part.", frozenset({"PRODUCT", "GROUP"}), {"sku": SKU})
PARTS = replace(SHOP, levels={**LEVELS, "PART": PART})
RENAMED = {**LEVELS, "PRODUCT": replace(LEVELS["PRODUCT"], title="Article", renamed="ARTICLE")}
BEFORE = shop(PRODUCT=BOTH)  # without a sku of the variants
AFTER = replace(
    shop(PRODUCT=[NUMBER]), levels={**shop(PRODUCT=[NUMBER]).levels, "PART": PART}
)  # with that of the products at the parts
OPEN = replace(SKU, disclosed=True)
VERSIONS: dict[str, tuple[Hierarchy, Hierarchy, str, str]] = {
    "a renamed attribute": (shop(PRODUCT=[OLD], VARIANT=[OLD]), shop(PRODUCT=[NEW], VARIANT=[NEW]), "code", "PRODUCT"),
    "an attribute renamed on one level": (shop(PRODUCT=[OLD], VARIANT=[]), shop(PRODUCT=[NEW]), "code", "PRODUCT"),
    "a renamed level": (SHOP, replace(SHOP, levels=RENAMED), "sku", "PRODUCT"),
    "a further level": (SHOP, PARTS, "sku", "PART"),
    "disclosed": (SHOP, shop(PRODUCT=[OPEN, NUMBER], VARIANT=[OPEN]), "sku", "PRODUCT"),
}


@pytest.mark.parametrize(
    "what", [pytest.param(one, marks=pytest.mark.both_stores if one == "a further level" else ()) for one in VERSIONS]
)
async def test_two_versions_of_a_class_share_values_without_a_repair(store: Store, what: str) -> None:
    old, new, name, level = VERSIONS[what]
    await write(store, old, create("g", "GROUP"), create("g/a", sku="A"))

    async def check(expected: dict[str, str]) -> None:
        assert await findings(store, old if level in old.levels else new) == await findings(store, new) == []
        assert await values(store) == {f"sku#{value}": node for value, node in expected.items()}

    with pytest.raises(Taken):
        await write(store, new, create("g/b", level, **{name: "A"}))
    await write(store, new, create("g/b", level, **{name: "B"}))
    with pytest.raises(Taken):
        await write(store, old, create("g/c", sku="B"))
    await check({"A": "g.a", "B": "g.b"})
    await write(store, new, replace(update("g/a"), values={name: "C"}))
    await write(store, old, create("g/c", sku="A"))
    await check({"C": "g.a", "B": "g.b", "A": "g.c"})
    await write(store, new, Deletion(new, parse_path("g/b"), Policy.CASCADE), move("g/c", "g/d"))
    await write(store, old, update("g/d", sku="B"))
    await check({"C": "g.a", "B": "g.c"})
    assert await missing_items(store, [old, new]) == []
    assert await repaired(store, new) == await repaired(store, old) == []


async def test_a_level_that_comes_after_a_renaming_shares_the_values(store: Store) -> None:
    """The new level never had the former name, and no node was written since the attribute has the new one."""
    old, code = shop(PRODUCT=[SKU]), Attribute("code", Kind.TEXT, "Code.", unique=True)
    new = replace(old, levels={**shop(PRODUCT=[NEW]).levels, "PART": replace(PART, attributes={"code": code})})
    await write(store, old, create("g", "GROUP"), create("g/a", sku="A"))
    with pytest.raises(Taken):
        await write(store, new, create("g/b", "PART", code="A"))
    await write(store, new, create("g/b", "PART", code="B"))
    assert await values(store) == {"sku#A": "g.a", "sku#B": "g.b"}
    recipe = (await marker(store)).parts["unique"].made
    for attribute in (NEW, code):
        assert UniqueValue.of("shop", attribute, "B").key(new, recipe) == key_of(await item(store, "B"))
    assert await findings(store, new) == []


async def test_a_node_with_values_under_two_names_has_both(store: Store) -> None:
    """As after a renaming that was undone for a while: each version of the class reads another one."""
    old, new = shop(PRODUCT=[SKU]), shop(PRODUCT=[NEW])
    await write(store, old, create("g", "GROUP"), create("g/a", sku="A"), create("g/b", sku="B"))
    await write(store, new, replace(update("g/a"), values={"code": "T"}))
    await write(store, old, update("g/a", sku="U"))
    assert await values(store) == {"sku#T": "g.a", "sku#U": "g.a", "sku#B": "g.b"}
    for hierarchy, name in ((old, "sku"), (new, "code")):
        for value in ("T", "U"):
            with pytest.raises(Taken, match=f"{value} is the {name} of g/a"):
                await write(store, hierarchy, replace(update("g/b"), values={name: value}))
        assert await findings(store, hierarchy) == []
    await write(store, new, update("g/a", number=1))
    assert await values(store) == {"sku#T": "g.a", "sku#B": "g.b"}


async def test_what_a_repair_ends_is_said_beside_what_it_writes(store: Store) -> None:
    await fill(store, **VALUES)
    other = shop(PRODUCT=[SKU], VARIANT=[PLAIN, replace(NUMBER, unique=True)])
    assert await findings(store, other) == [
        "shop: unique-value items are missing: number of VARIANT; what needs them is an error until clade repair has "
        "written them; number of PRODUCT, sku of VARIANT are unique, which its class does not ask for; "
        "clade repair ends that"
    ]


async def test_what_a_repair_ended_is_repaired_whatever_values_two_nodes_have(store: Store) -> None:
    before = shop(PRODUCT=[PLAIN, replace(NUMBER, unique=True)])
    after = shop(PRODUCT=[SKU, replace(NUMBER, unique=False)])
    await write(store, before, create("g", "GROUP"), create("g/a", sku="A", number=1), create("g/b", sku="A", number=2))
    lacks = "shop: unique-value items are missing: sku of PRODUCT; what needs them is an error until clade repair has "
    outcome = await repaired(store, after)
    ended = "shop: number of PRODUCT is unique, which its class does not ask for; clade repair ends that"
    assert (ended, True) in outcome
    assert (f"{lacks}written them", False) in outcome
    assert await findings(store, after) == [twice("g/b", "g/a"), f"{lacks}written them"]


async def test_a_former_name_that_is_dropped_once_no_node_has_it_needs_no_repair(store: Store) -> None:
    old, new = shop(PRODUCT=[SKU], VARIANT=[SKU]), shop(PRODUCT=[NEW], VARIANT=[NEW])
    bare = replace(NEW, was=())
    last = shop(PRODUCT=[bare], VARIANT=[bare])
    await write(store, old, create("g", "GROUP"), create("g/a", sku="A"), create("g/a/v", "VARIANT", sku="V"))
    await write(store, old, Deletion(old, parse_path("g/a/v"), Policy.CASCADE))
    await write(store, new, replace(update("g/a"), values={"code": "T"}))
    assert await missing_items(store, [last]) == []
    await write(store, last, create("g/b", code="A"))
    with pytest.raises(Taken):
        await write(store, last, create("g/a/v", "VARIANT", code="T"))
    assert await findings(store, last) == []


async def test_an_attribute_that_moves_to_another_level_needs_no_repair_for_new_nodes(store: Store) -> None:
    await write(store, BEFORE, create("g", "GROUP"), create("g/a", sku="A"))
    with pytest.raises(Taken):
        await write(store, AFTER, create("g/b", "PART", sku="A"))
    await write(store, AFTER, create("g/b", "PART", sku="B"))
    assert await missing_items(store, [AFTER]) == []
    text = "shop: sku of PRODUCT is unique, which its class does not ask for; clade repair ends that"
    assert await findings(store, AFTER) == [text]
    assert all(is_fixed for _, is_fixed in await repaired(store, AFTER))
    assert await values(store) == {"sku#B": "g.b"}
    await write(store, AFTER, create("g/c", "PART", sku="A"))
    assert await findings(store, AFTER) == []


async def test_two_attributes_that_become_one_share_their_values_after_a_repair(store: Store) -> None:
    code = Attribute("code", Kind.TEXT, "Code.", unique=True)
    apart, one = shop(PRODUCT=[SKU], VARIANT=[code]), shop(PRODUCT=[SKU], VARIANT=[replace(SKU, was=("code",))])
    await write(store, apart, create("g", "GROUP"), create("g/p", sku="A"), create("g/p/v", "VARIANT", code="A"))
    with pytest.raises(NotIndexed):
        UniqueValue.of("shop", SKU, "A").key(one, (await marker(store)).parts["unique"].made)
    assert (twice("g/p/v", "g/p"), False) in await repaired(store, one)
    await write(store, one, update("g/p/v", sku=None))
    assert all(is_fixed for _, is_fixed in await repaired(store, one))
    assert await values(store) == {"sku#A": "g.p"}
    await invariants.check(store, {"shop": one})


# -- large deletions, copies, and writes meanwhile ---------------------------------------------------------------------


async def test_a_large_deletion_that_stops_anywhere_gives_its_values_back_when_it_is_continued(store: Store) -> None:
    await fill(store, **VALUES)
    for commits in itertools.count(1, examples(9, 2)):
        await write(store, SHOP, create("top", "GROUP"))
        await write(store, SHOP, *[create(f"top/n{number}", sku=f"N{number}") for number in range(5)])
        store.max_commit_changes = 14
        dies = await journaled.died(store, Deletion(SHOP, ("top",), Policy.CASCADE), commits)
        assert not [one for one in await findings(store) if "item" in one]
        if commits % 4 == 1:
            await journaled.lapse(store)
            await journaled.resume(store)
        else:
            assert all(is_fixed for _, is_fixed in await repaired(store))
        store.max_commit_changes = None
        assert not [one for one in await values(store) if one.startswith("sku#N")]
        assert await findings(store) == []
        if not dies:
            break
    assert commits > 5
    await invariants.check(store, {"shop": SHOP})


async def test_a_copy_has_the_items_as_they_are(store: Store, tmp_path: Path) -> None:
    await fill(store, **VALUES)
    await write(store, SHOP, move("g", "h/g"))
    url = f"sqlite:///{tmp_path}/copy.db"
    async with new_store(url) as new:
        await Copy(store, new).run()
    async with opened(url) as new:
        assert [await item(new, one) for one in "ABCV"] == [await item(store, one) for one in "ABCV"]
        assert await findings(new) == []
        await invariants.check(new, {"shop": SHOP})


@pytest.mark.parametrize("seed", range(examples(1, 20)))
async def test_values_that_pass_between_nodes_while_a_check_reads_are_no_findings(store: Store, seed: int) -> None:
    await fill(store, more=9, **VALUES)
    chance, nodes = Random(seed), {"g/p": "A", "h/r": "C", "g/q": "B"}  # noqa: S311
    await write(store, SHOP, create("i", "GROUP"))

    async def edit(_: int) -> None:
        if chance.random() > 0.3:
            return
        one, other = chance.sample(sorted(nodes), 2)
        first, second = nodes[one], nodes[other]
        how = chance.randrange(4)
        if how == 0:
            nodes[one], nodes[other] = second, first
            swap = [update(one, sku=second), update(other, sku=first)]
            await Writer(store, SOON).write(EditMany(SHOP, swap), ReadUsage())
        elif how == 1:
            nodes[one] = f"{first}x"
            await write(store, SHOP, update(one, sku=f"{first}x"), create(f"h/{first}", sku=first))
            await write(store, SHOP, Deletion(SHOP, parse_path(f"h/{first}"), Policy.CASCADE))
        elif how == 2:
            await write(store, SHOP, move(one, "i/there"), move("i/there", one))
        else:
            await write(store, SHOP, update(one, sku=None), update(other, sku=first), update(one, sku=second))
            nodes[one], nodes[other] = second, first

    for methods in (("get",), ("range",), ("get", "range", "commit")):
        racing = cast(Store, Interrupted(store, *methods, before=edit))
        for _ in range(examples(1, 3)):
            found = await findings(racing)
            assert not [one for one in found if "item" in one or "sku" in one], found
        results = await repaired(racing)
        assert not [one for one in results if "item" in one[0] or "sku" in one[0]], results
    await invariants.check(store, {"shop": SHOP})
