"""Random damages of a table with items of every kind: each one is found, and nothing is found without one."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from store.background_moves.timing import MoveTiming
from store.checking.check import Check
from store.edits.create_update import Create, Update
from store.edits.delete import Delete as Deletion
from store.edits.delete import Policy
from store.edits.move import Move
from store.edits.sibling_order import Side
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import BadData
from store.model.attributes import Kind
from store.model.hierarchy import Search, SearchScope
from store.model.items import Delete, Item, Put, canonical_item, key_of
from store.model.keys import Key
from store.model.paths import parse_path
from store.transfer.load import LoadResult, load
from store.writer.writer import Writer
from tests import invariants
from tests.hierarchies import hierarchy, level
from tests.reordering import reorder
from tests.selection import examples
from tests.store.transfer.test_load import wanted_of

AT = "2026-11-20T12:00:00.000Z"
NUMBERS = {"population": Kind.LONG, "latitude": Kind.FLOAT, "longitude": Kind.FLOAT}
PLACE = replace(
    hierarchy("place", level("LAND", "-"), level("AREA", "LAND AREA", **NUMBERS), level("TOWN", "AREA", **NUMBERS)),
    search=Search(SearchScope.HIERARCHY, "population"),
    location=("latitude", "longitude"),
)  # fmt: skip
HIERARCHIES = {"place": PLACE}
DAMAGES = 2_000

# What is derived of each kind of item, by the beginning of its partition key: every other value of these is wrong.
DERIVED = {
    "place#": "parent tier id level above kids below", "id#": "tree key", "alias#": "", "place": "shape",
    "words/": "parent rank line level others names", "cells/": "line level latitude longitude",
    "search/": "line made_of",
}  # fmt: skip
VALUES: tuple[Any, ...] = (None, "", "x", 0, -1, 7, 2.5, True, [], ["LAND"], {}, {"TOWN": 1}, {"TOWN@2": 3}, AT)


async def fill(store: Store) -> None:
    places = [
        (f"L{land}/A{area}/T{town}", "TOWN", {"population": 10 * town, "latitude": land + 0.5, "longitude": town + 0.5})
        for land in range(2)
        for area in range(3)
        for town in range(4)
    ]
    areas = [(f"L{land}/A{area}", "AREA", {"name": f"Große Au {area}"}) for land in range(2) for area in range(3)]
    await load(store, wanted_of([("L0", "LAND"), ("L1", "LAND"), *areas, *places], PLACE), LoadResult())
    writer = Writer(store, MoveTiming(0.0, 0.0, 5.0, 5.0), HIERARCHIES)
    path = parse_path
    for edit in (
        Update(PLACE, path("L0/A0/T1"), "New York", None, {}), Update(PLACE, path("L0/A0/T1"), "York", None, {}),
        Create(PLACE, path("L0/A0/Gone"), "TOWN", "Gone", {}, "gone"),
        Deletion(PLACE, path("L0/A0/Gone"), Policy.REFUSE),
        Move(PLACE, path("L0/A0/T2"), path("L0/A1/T9")), Move(PLACE, path("L0/A2"), path("L1/A0/A2")),
        Move(PLACE, path("L1/A1"), path("L1/A9")),
        reorder(PLACE, path("L0/A0/T3"), Side.FIRST), reorder(PLACE, path("L1/A9"), Side.FIRST),
    ):  # fmt: skip
        await writer.write(edit, ReadUsage())
        await writer.move_worker.finished()
    await invariants.check(store, HIERARCHIES)


async def findings(store: Store) -> list[str]:
    return [str(one) async for one in Check(store, HIERARCHIES, AT).findings()]


async def is_inconsistent(store: Store) -> bool:
    """Whether a table breaks the invariants, by code that is independent of the store's."""
    try:
        await invariants.check(store, HIERARCHIES)
    except (AssertionError, BadData, KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError):
        return True
    return False


def damage(random: random.Random, items: Sequence[Item]) -> tuple[str, list[Item | Key], bool]:
    """A damage: its description, the items to put and the keys to delete, and whether it is certainly wrong."""
    item = random.choice(items)
    key, name = key_of(item), random.choice([name for name in item if name not in ("pk", "sk")] or ["sk"])
    kind = next(prefix for prefix in sorted(DERIVED, reverse=True) if key.pk.startswith(prefix))
    is_derived = name in DERIVED[kind].split() and "deleted" not in item and not (kind == "id#" and key.sk != "v0")
    match random.choice(["change", "change", "remove", "copy", "swap"]):
        case "change" if name != "sk":
            value = random.choice(VALUES)
            return f"{key} {name}={value!r}", [{**item, name: value}], is_derived
        case "copy":
            other = {**item, "sk": f"{key.sk[:-1]}9{key.sk[-1]}" if key.sk.endswith("#") else f"{key.sk}9"}
            return f"copy of {key}", [other], False
        case "swap" if name != "sk":
            same = [one for one in items if one["pk"] == item["pk"] and name in one and one is not item]
            if same:
                other = random.choice(same)
                both = {**item, name: other[name]}, {**other, name: item[name]}
                return f"{key} and {key_of(other)} swap {name}", [*both], False
    return f"without {key}", [key], False


async def test_each_damage_is_found(store: Store) -> None:
    await fill(store)
    assert await findings(store) == []
    items = {key_of(one): canonical_item(one) for one in await invariants.all_items(store)}
    kinds = "place", "id#", "alias#", "words/", "cells/", "search/"
    some = [one for key, one in items.items() if key.pk.startswith(kinds)]
    rng, tried, wrong = random.Random(7), 0, 0  # noqa: S311 - no secret
    for _ in range(examples(120, DAMAGES)):
        told, changes, is_derived = damage(rng, some)
        keys = [one if isinstance(one, Key) else key_of(one) for one in changes]
        before = [items.get(key) for key in keys]
        after = [None if isinstance(one, Key) else canonical_item(one) for one in changes]
        if before == after or (after == [None] and keys[0].sk == f"!{1:012d}"):
            continue  # nothing tells that the first item of a log has not expired
        try:
            await store.commit([Delete(one) if isinstance(one, Key) else Put(one) for one in changes])
        except Exception:  # noqa: S112 - a key of an index that no engine takes
            continue
        found = await findings(store)
        tried += 1
        if is_derived or await is_inconsistent(store):
            wrong += 1
            assert found, told
        restored = zip(keys, before, strict=True)
        await store.commit([Delete(key) if one is None else Put(one) for key, one in restored])
    assert await findings(store) == []
    assert wrong > tried // 2 > 20
