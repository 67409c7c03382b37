"""Unique values: what edits do to their items, and what they refuse."""

from dataclasses import replace
from typing import Any

import pytest

from store.engine import ReadUsage, Store
from store.errors import Fault, Faults, NotIndexed, Taken
from store.kinds.unique import UniqueValue
from store.model.attributes import Attribute, Kind
from store.model.hierarchy import Hierarchy, Level
from store.model.paths import parse_path
from store.model.records import Item
from store.writing.create_update import Create, Update
from store.writing.edit import Edit, Named
from store.writing.edit_many import EditMany
from store.writing.move_delete import Delete, Move, Policy
from store.writing.writer import Writer
from tests import invariants

pytestmark = pytest.mark.both_stores

SKU = Attribute("sku", Kind.TEXT, "Code.", unique=True)
NUMBER = Attribute("number", Kind.INT, "Number.", unique=True)
PRICE = Attribute("price", Kind.DECIMAL, "Price.")
LEVELS = {
    "GROUP": Level("GROUP", "Group", "Group.", frozenset({None, "GROUP"})),
    "PRODUCT": Level(
        "PRODUCT", "Product", "Product.", frozenset({"GROUP"}), {"sku": SKU, "number": NUMBER, "price": PRICE}
    ),
    "VARIANT": Level("VARIANT", "Variant", "Variant.", frozenset({"PRODUCT"}), {"sku": SKU}),
}
SHOP = Hierarchy("shop", LEVELS)


def create(path: str, level: str = "GROUP", **values: Any) -> Create:
    return Create(SHOP, parse_path(path), level, path, values, path.replace("/", "-"))


def product(path: str, **values: Any) -> Create:
    return create(path, "PRODUCT", **values)


def update(path: str, **values: Any) -> Update:
    return Update(SHOP, parse_path(path), None, None, values)


def delete(path: str) -> Delete:
    return Delete(SHOP, parse_path(path), Policy.CASCADE)


def move(path: str, target: str) -> Move:
    return Move(SHOP, parse_path(path), parse_path(target))


async def edit(store: Store, *edits: Edit) -> None:
    writer = Writer(store)
    for one in edits:
        await writer.write(one, ReadUsage())
        await writer.move_worker.finished()


async def refused(store: Store, asked: Edit | EditMany) -> list[Fault]:
    before = await invariants.all_items(store)
    with pytest.raises((Fault, Faults)) as caught:
        await Writer(store).write(asked, ReadUsage())
    assert await invariants.all_items(store) == before
    error: Any = caught.value
    return [*error.errors] if isinstance(error, Faults) else [error]


async def values(store: Store) -> dict[str, str]:
    """The node of each value."""
    items: list[Item] = await invariants.all_items(store)
    return {
        str(one["pk"]).partition(".")[2]: str(one["id"]).partition(":")[2]
        for one in items
        if str(one["pk"]).startswith("unique/")
    }


async def test_a_value_belongs_to_one_node_from_its_creation_to_its_deletion(store: Store) -> None:
    await edit(store, create("g"), product("g/p", sku="A", number=5), product("g/q", sku=""))
    assert await values(store) == {"sku#A": "g-p", "number#5": "g-p", "sku#": "g-q"}
    await edit(store, update("g/q", sku="5"), update("g/p", number=None), move("g/p", "g/z"))
    assert await values(store) == {"sku#A": "g-p", "sku#5": "g-q"}
    await edit(store, update("g/z", sku="B"), delete("g/q"), product("g/r", sku="A", number=5))
    assert await values(store) == {"sku#B": "g-p", "sku#A": "g-r", "number#5": "g-r"}
    await edit(store, delete("g"))
    assert await values(store) == {}


async def test_a_value_that_another_node_has_is_taken(store: Store) -> None:
    await edit(store, create("g"), create("h"), product("g/p", sku="A", number=1), product("h/q", sku="B"))
    asked: list[tuple[Edit, str]] = [
        (product("h/r", sku="A"), "A is the sku of g/p"),
        (update("h/q", sku="A"), "A is the sku of g/p"),
        (create("h/q/v", "VARIANT", sku="B"), "B is the sku of h/q"),
        (product("g/r", number=1), "1 is the number of g/p"),
    ]
    for one, text in asked:
        (fault,) = await refused(store, one)
        assert isinstance(fault, Taken)
        assert str(fault) == f"{text}; choose another."
        assert fault.field == ("attributes", text.split()[3])
    await edit(store, delete("g/p"), asked[0][0], asked[3][0])


async def test_several_edits_are_judged_by_what_all_of_them_leave(store: Store) -> None:
    await edit(store, create("g"), product("g/p", sku="A"), product("g/q", sku="B"), product("g/r", sku="C"))
    swap = [update("g/p", sku="B"), update("g/q", sku="A")]
    await Writer(store).write(EditMany(SHOP, swap), ReadUsage())
    assert await values(store) == {"sku#B": "g-p", "sku#A": "g-q", "sku#C": "g-r"}
    (fault,) = await refused(
        store, EditMany(SHOP, [update("g/r", sku="B"), update("g/q", sku="C"), update("g/p", sku="C")])
    )
    assert (fault.edit, str(fault)) == (2, "C is the sku of g/q; choose another.")
    many = [
        update("g/r", sku="X"), update("g/r", sku="C"), product("g/new", sku="N"), update("g/new", sku="A"),
        delete("g/q"), product("g/n2", sku="N"), update("g/p", number=7),
    ]  # fmt: skip
    await Writer(store).write(EditMany(SHOP, many), ReadUsage())
    assert await values(store) == {"sku#B": "g-p", "number#7": "g-p", "sku#C": "g-r", "sku#A": "g-new", "sku#N": "g-n2"}


async def test_values_compare_exactly_whatever_their_length_and_form(store: Store) -> None:
    long = "x" * 3_000
    await edit(
        store, create("g"), product("g/p", sku="caf\u00e9"), product("g/q", sku=long), product("g/r", sku="CAFÉ")
    )
    assert "is the sku of g/p" in str((await refused(store, product("g/s", sku="cafe\u0301")))[0])
    assert "is the sku of g/q" in str((await refused(store, product("g/s", sku=long)))[0])
    key = UniqueValue.of("shop", SKU, long).keys[0]
    await edit(store, product("g/s", sku=long + "y"), product("g/t", sku=key.pk.partition("#")[2]))


async def test_who_makes_an_attribute_unique_later_repairs_first(store: Store) -> None:
    plain = replace(SHOP, levels={name: replace(one, attributes={}) for name, one in LEVELS.items()})
    made = [create("g"), product("g/p", sku="A"), product("g/q")]
    await edit(store, *[replace(one, hierarchy=plain) for one in made])
    await edit(store, update("g/p", sku="A"), create("g/h"))
    for one in (product("g/r", sku="B"), update("g/q", sku="A")):
        with pytest.raises(NotIndexed, match="Not all values of sku of shop are known to be unique yet"):
            await edit(store, one)


async def test_a_lone_edit_of_a_node_with_values_costs_what_it_costs(store: Store) -> None:
    await edit(store, create("g"), create("h"), product("g/p", sku="A"))
    by_value = replace(update("g/r", price="6"), names=[Named("node", value=UniqueValue.of("shop", SKU, "C"))])
    for one, requests in [
        (product("g/q", sku="B", number=2), 2),
        (update("g/q", price="5"), 2),
        (replace(update("g/q", sku="C", number=3), level="PRODUCT"), 3),
        (move("g/q", "g/r"), 2),
        (move("g/r", "h/r"), 2),
        (by_value, 4),
        (delete("h/r"), 3),
    ]:
        reads = ReadUsage()
        await Writer(store).write(one, reads)
        assert reads.requests == requests, one
    assert await values(store) == {"sku#A": "g-p"}
