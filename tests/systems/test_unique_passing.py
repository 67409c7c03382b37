"""Single histories of unique values: values that pass on within a batch, and a holder that is moved meanwhile."""

from dataclasses import replace

from store.engine import ReadUsage, Store
from store.errors import Taken
from store.kinds.unique import UniqueValue
from store.metadata.moves import MoveState
from store.writing.edit import Named
from store.writing.edit_many import EditMany
from store.writing.writer import Writer
from tests.store.kinds.test_unique import SHOP, SKU, create, delete, edit, move, product, refused, update, values
from tests.store.writing import journaled


async def test_the_path_of_a_holder_is_where_readers_see_it_while_a_move_is_swept(store: Store) -> None:
    await edit(store, create("g"), create("g/a"), *[product(f"g/a/{n}", sku=f"{n}") for n in range(20)])
    store.max_commit_changes = journaled.SMALL
    await journaled.halted(store, move("g/a", "g/b"), MoveState.SWEEPING)
    (fault,) = await refused(store, product("g/p", sku="19"))
    assert str(fault) == "19 is the sku of g/b/19; choose another."


async def test_a_fault_names_the_edit_that_gave_the_value(store: Store) -> None:
    await edit(store, create("g"), product("g/p", sku="A"), product("g/q"))
    faults = await refused(store, EditMany(SHOP, [update("g/q", sku="A"), update("g/q", number=5)]))
    assert [(one.edit, one.field) for one in faults] == [(0, ("attributes", "sku"))]


async def test_of_edits_that_give_one_value_the_last_one_is_at_fault(store: Store) -> None:
    await edit(store, create("g"), product("g/p"), product("g/q"))
    edits = [update("g/p", sku="B"), update("g/q", sku="A"), update("g/p", sku="A")]
    (fault,) = await refused(store, EditMany(SHOP, edits))
    assert isinstance(fault, Taken)
    assert (fault.edit, str(fault)) == (2, "A is the sku of g/q; choose another.")


async def test_a_node_is_named_by_its_value_after_another_one_had_it_for_some_edits(store: Store) -> None:
    await edit(store, create("g"), product("g/p", sku="A"), product("g/q"))
    value = UniqueValue.of("shop", SKU, "A")
    named = replace(delete("g/p"), path=(), names=[Named("node", value=value)])
    edits = [update("g/q", sku="A"), update("g/q", sku="B"), named]
    await Writer(store).write(EditMany(SHOP, edits), ReadUsage())
    assert await values(store) == {"sku#B": "g-q"}
