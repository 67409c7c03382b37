"""The largest edits of one node fit into a transaction of DynamoDB, with room for what is added to Clade later."""

from typing import Any

import pytest

from store.engine import ReadUsage, Store
from store.kinds.words import MAX_ITEMS
from store.model.attributes import Attribute, Kind
from store.model.hierarchy import Hierarchy, Level, Search, SearchScope
from store.model.keys import MAX_SEGMENTS
from store.writing.create_update import Create, Update
from store.writing.edit import Edit, Named
from store.writing.edit_request import EditOptions
from store.writing.move_delete import Delete, Move, Policy
from store.writing.restore import Restore
from store.writing.writer import Writer
from tests import invariants
from tests.stores import CountingStore

KINDS = {"text": Kind.TEXT, "number": Kind.INT, "long": Kind.LONG, "day": Kind.DATE}
UNIQUE = {name: Attribute(name, kind, "Unique.", unique=True) for name, kind in KINDS.items()}
PLACE = {name: Attribute(name, Kind.FLOAT, "Degrees.") for name in ("north", "east")}
BOX = Level("BOX", "Box", "Box.", frozenset({None, "BOX"}))
THING = Level("THING", "Thing", "Thing.", frozenset({"BOX"}), {**UNIQUE, **PLACE})
SHOP = Hierarchy("shop", {"BOX": BOX, "THING": THING}, search=Search(SearchScope.HIERARCHY), location=("north", "east"))
ABOVE = tuple(f"k{n}" for n in range(MAX_SEGMENTS - 1))
PATH = (*ABOVE, "thing")


def content(n: int) -> tuple[str, dict[str, Any]]:
    """A name of as many words as are found, one a character, and values: those of another number are all others."""
    name = "".join([chr(0x4E00 + 100 * n + word) for word in range(MAX_ITEMS)])
    return name, {"text": f"A{n}", "number": n, "long": 7 + n, "day": f"2026-01-0{n + 1}", "north": n, "east": 9.0 * n}


@pytest.mark.parametrize(("key", "expected"), [(None, [79, 94, 82, 80]), ("k", [80, 95, 83, 81])])
async def test_the_largest_edits_of_one_node_fit_into_a_transaction(
    store: Store, key: str | None, expected: list[int]
) -> None:
    store.max_commit_changes = 100
    for depth in range(1, len(PATH)):
        await Writer(store).write(Create(SHOP, PATH[:depth], "BOX", "x", {}), ReadUsage())
    for source, target in [(ABOVE, (*ABOVE[:-1], "other")), ((*ABOVE[:-1], "other"), ABOVE)]:  # which leave redirects
        await Writer(store).write(Move(SHOP, source, target), ReadUsage())
    (first, values), (second, others) = content(0), content(1)
    edits: list[Edit] = [
        Create(SHOP, PATH, "THING", first, values, "given"),
        Update(SHOP, PATH, second, None, others),
        Delete(SHOP, PATH, Policy.REFUSE),
        Restore(SHOP, ("other",), "shop:given", names=[Named("id", id="shop:given")]),
    ]
    counted: Any = CountingStore(store)
    for number, edit in enumerate(edits):
        options = EditOptions(key=key and f"{key}{number}", asked=number)
        assert (await Writer(counted).write(edit, ReadUsage(), options)).move is None
        await invariants.check(store, {"shop": SHOP})
    assert counted.commits == expected


async def test_a_node_of_a_deletion_that_comes_back_alone_takes_one_action_more(store: Store) -> None:
    (name, values), writer, found = content(0), Writer(store), []
    for depth in range(1, len(PATH)):
        await writer.write(Create(SHOP, PATH[:depth], "BOX", "x", {}), ReadUsage())
    counted: Any = CountingStore(store)
    by_restore = Restore(SHOP, (), "shop:given", names=[Named("id", id="shop:given"), Named("to", path=ABOVE[:-1])])
    by_create = Create(SHOP, (*ABOVE[:-1], "thing"), "THING", name, values, "given")
    for edit in (by_create, by_restore):
        await writer.write(Create(SHOP, PATH, "THING", name, values, "given"), ReadUsage())
        for what in (ABOVE, PATH):  # with the parent, and alone
            store.max_commit_changes = None
            if what == PATH:
                await writer.write(Create(SHOP, ABOVE, "BOX", "x", {}, f"box{len(found)}"), ReadUsage())
                await writer.write(Move(SHOP, (*ABOVE[:-1], "thing"), PATH), ReadUsage())
            await writer.write(Delete(SHOP, what, Policy.CASCADE), ReadUsage())
            store.max_commit_changes = 100
            await Writer(counted).write(edit, ReadUsage())
        found.append(counted.commits[-2] - counted.commits[-1])
        store.max_commit_changes = None
        await writer.write(Delete(SHOP, (*ABOVE[:-1], "thing"), Policy.CASCADE), ReadUsage())
        await invariants.check(store, {"shop": SHOP})
    assert found == [1, 1]
