"""Batches: several edits are one transaction, and leave what they would leave one after another, or nothing."""

import asyncio
import copy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.checking.check import Check
from store.connect import open_store
from store.edits.batch import Batch, OneEdit, Step
from store.edits.create_update import Create, Update
from store.edits.delete import Delete, Policy
from store.edits.move import Move
from store.edits.sibling_order import Position, Side
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import CladeError, Faults, TooLarge
from store.model.items import key_of
from store.model.paths import parse_path
from store.writer.writer import EditOptions, EditResult, Writer
from tests import invariants
from tests.counting_store import CountingStore
from tests.hierarchies import CATEGORY
from tests.model_writes import Model, RandomEdits, Refused, compare
from tests.selection import examples
from tests.store.background_moves.journaled import AT

BATCHES = st.tuples(st.integers(0, 1 << 32), st.lists(st.integers(1, 7), min_size=1, max_size=8))


def batch(*edits: OneEdit) -> Batch:
    return Batch(CATEGORY, [Step(edit, number) for number, edit in enumerate(edits)])


def create(path: str, **more: Any) -> Create:
    return Create(CATEGORY, parse_path(path), "CATEGORY", path, {}, **more)


def move(path: str, target: str) -> Move:
    return Move(CATEGORY, parse_path(path), parse_path(target))


async def written(store: Store, *edits: OneEdit, options: EditOptions = EditOptions()) -> EditResult:
    return await Writer(store).write(batch(*edits), ReadUsage(), options)


async def versions(store: Store) -> tuple[dict[str, int], int]:
    """The number of each tree version, and the number of log items."""
    items = await invariants.all_items(store)
    numbers = {item["pk"]: item["n"] for item in items if item["sk"] == "!"}
    return numbers, sum(item["sk"].startswith("!") and item["sk"] != "!" for item in items if item["pk"] != "!")


async def follow(store: Store, seed: int, sizes: list[int]) -> None:
    """Random batches, each compared with the model of its edits one after another."""
    model = Model()
    wishes, ids = RandomEdits(seed, model), iter(range(1_000))
    for size in sizes:
        tried = copy.deepcopy(model)
        wishes.model = tried
        edits: list[Any] = []
        refused = ""
        for _ in range(size):
            edit: Any = wishes.one()
            changed = {"node_id": f"n{next(ids)}"} if isinstance(edit, Create) else {"expected": None}
            edits.append(edit := replace(edit, **changed))
            try:
                made = tried.apply(edit)
                made(SimpleNamespace(id=f"category:{getattr(edit, 'node_id', '')}"))  # type: ignore[arg-type]
            except Refused as refusal:
                refused = refused or str(refusal)
        before, logs = await versions(store)
        try:
            result = await written(store, *edits)
        except TooLarge:
            assert store.max_commit_changes is not None
        except CladeError as error:
            found = error.errors if isinstance(error, Faults) else [error]
            assert refused in {one.code for one in found}, edits
            assert all(one.edit in range(size) for one in found)
        else:
            assert not refused, edits
            assert len(result.records) == size
            model = tried
        await compare(store, model)
        after, more = await versions(store)
        raised = {tree: number - before.get(tree, 0) for tree, number in after.items()}
        assert set(raised.values()) <= {0, 1}
        assert more - logs <= sum(raised.values())
    assert [one async for one in Check(store, {"category": CATEGORY}, AT).findings()] == []


@settings(max_examples=examples(15, 100), deadline=None)
@given(BATCHES)
def test_a_batch_leaves_what_its_edits_leave_one_after_another(batches: tuple[int, list[int]]) -> None:
    async def run() -> None:
        async with open_store("sqlite://:memory:") as store:
            await store.create()
            await follow(store, *batches)

    asyncio.run(run())


@pytest.mark.both_stores
@pytest.mark.parametrize("seed", range(4))
async def test_random_batches_agree_with_the_model_on_both_stores(store: Store, seed: int) -> None:
    await follow(store, seed, [3, 5, 2, 6, 4, 6])


@pytest.mark.both_stores
async def test_a_new_parent_and_the_move_of_a_subtree_below_it_are_one_commit_and_one_entry(store: Store) -> None:
    counted = CountingStore(store)
    for edit in (create("r"), create("r/a"), create("r/a/x"), create("r/b")):
        await Writer(store).write(edit, ReadUsage())
    before = await versions(store)
    made = await Writer(counted).write(  # type: ignore[arg-type]
        batch(create("r/new"), move("r/a", "r/new/a"), Update(CATEGORY, ("r", "new", "a"), "named", None, {})),
        ReadUsage(),
    )
    assert [("/".join(one.path), one.name, one.revision) for one in made.records] == [
        ("r/new", "r/new", 1), ("r/new/a", "named", 2), ("r/new/a", "named", 2),
    ]  # fmt: skip
    assert made.record.descendant_counts == {"CATEGORY": 2}
    assert len(counted.commits) == 1
    numbers, logs = await versions(store)
    assert numbers == before[0] | {"category#r": before[0]["category#r"] + 1}
    assert logs == before[1] + 1
    await invariants.check(store)


@pytest.mark.both_stores
async def test_a_batch_whose_last_edit_fails_writes_nothing(store: Store) -> None:
    await Writer(store).write(create("r"), ReadUsage())
    before = await invariants.all_items(store)
    for last in (create("r/a"), Update(CATEGORY, ("r", "nowhere"), "n", None, {}), move("r", "r/a/r"), create("s/t")):
        with pytest.raises(CladeError) as caught:
            await written(store, create("r/a"), create("r/a/b"), last)
        assert caught.value.edit == 2
    assert sorted(await invariants.all_items(store), key=key_of) == sorted(before, key=key_of)


async def test_the_faults_of_all_edits_come_at_once_and_those_that_follow_from_others_do_not(store: Store) -> None:
    await Writer(store).write(create("r"), ReadUsage())
    with pytest.raises(Faults) as caught:
        await written(
            store, create("r"), create("nowhere/a"), create("nowhere/a/b"), create("r/x"), create("r/x/y"),
            Delete(CATEGORY, ("q",), Policy.CASCADE), move("r/x/y", "r/x"),
        )  # fmt: skip
    assert [(one.edit, one.code, one.field) for one in caught.value.errors] == [
        (0, "ALREADY_EXISTS", ("key",)), (1, "NOT_FOUND", ("parent",)), (5, "NOT_FOUND", ("node",)),
        (6, "ALREADY_EXISTS", ("key",)),
    ]  # fmt: skip


async def test_an_expected_revision_is_that_before_the_batch(store: Store) -> None:
    await Writer(store).write(create("r"), ReadUsage())
    change = Update(CATEGORY, ("r",), "one", None, {}, expected=1)
    made = await written(store, change, replace(change, name="two"), replace(move("r", "s"), expected=1))
    assert (made.record.name, made.record.revision, made.record.path) == ("two", 3, ("s",))
    with pytest.raises(CladeError) as caught:
        await written(store, Update(CATEGORY, ("s",), "x", None, {}), Update(CATEGORY, ("s",), "y", None, {}, 4))
    assert (caught.value.code, caught.value.edit, caught.value.field) == ("CONFLICT", 1, ("expected_revision",))


@pytest.mark.parametrize("store_url", ["dynamodb"], indirect=True)  # SQLite's transactions have no such limit
@pytest.mark.both_stores
async def test_a_batch_that_is_too_large_is_refused_with_figures_before_anything_is_written(store: Store) -> None:
    await Writer(store).write(create("r"), ReadUsage())
    before = len(await invariants.all_items(store))
    with pytest.raises(TooLarge, match=r"changes 60 nodes by 1\d\d writes; one transaction of DynamoDB holds 100"):
        await written(store, *[create(f"r/{number}") for number in range(60)])
    with pytest.raises(TooLarge, match=r"changes 60 nodes by 1\d\d writes; one transaction of DynamoDB holds 100"):
        await written(store, *[create(f"r/{number}") for number in range(60)], options=EditOptions(dry_run=True))
    large = {"note": "x" * 300_000}
    with pytest.raises(TooLarge, match=r"write \d,\d{3},\d{3} bytes; one transaction of DynamoDB holds"):
        await written(store, *[replace(create(f"r/{number}"), values=large) for number in range(15)])
    assert len(await invariants.all_items(store)) == before


async def test_a_large_subtree_is_no_part_of_a_batch(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.edits.reader.MAX_NODES", 3)
    for path in ("r", "r/a", "r/a/1", "r/a/2", "r/a/3"):
        await Writer(store).write(create(path), ReadUsage())
    with pytest.raises(TooLarge, match="changes 4 nodes, which takes several transactions") as caught:
        await written(store, create("r/b"), move("r/a", "r/b/a"))
    assert caught.value.edit == 1
    assert await versions(store) == ({"category": 1, "category#r": 5}, 6)


@pytest.mark.both_stores
async def test_a_repeated_key_returns_the_first_result_of_a_batch(store: Store) -> None:
    options = EditOptions(key="k", asked=["a"])
    first = await written(store, create("r"), create("r/a"), options=options)
    await written(store, move("r/a", "r/b"), Update(CATEGORY, ("r", "b"), "else", None, {}))
    again = await written(store, create("r"), create("r/a"), options=options)
    assert [(one.path, one.name, one.revision) for one in again.records] == [
        (one.path, one.name, one.revision) for one in first.records
    ]
    with pytest.raises(CladeError, match="another change"):
        await written(store, create("q"), options=EditOptions(key="k", asked=["b"]))


@pytest.mark.both_stores
async def test_of_batches_that_race_each_is_made_whole_or_not_at_all(store: Store) -> None:
    await Writer(store).write(create("r"), ReadUsage())
    writers = [Writer(store) for _ in range(3)]  # as on three servers

    async def one(number: int) -> str:
        own = f"r/{number}"
        edits = [create(own), create(f"{own}/same"), create("r/one"), move(own, f"r/m{number}")]
        try:
            await writers[number % 3].write(batch(*edits), ReadUsage())
        except CladeError as error:
            return error.code
        return "made"

    made = await asyncio.gather(*map(one, range(9)))
    assert made.count("made") == 1
    assert set(made) <= {"made", "ALREADY_EXISTS", "CONFLICT"}
    number = made.index("made")
    nodes = await invariants.nodes(store, "category")
    assert {item["sk"] for item in nodes.values()} == {"#", "#one#", f"#m{number}#", f"#m{number}#same#"}
    assert (await versions(store))[0]["category#r"] == 2
    await invariants.check(store)


async def test_an_edit_that_asks_for_the_position_of_one_before_it_changes_nothing(store: Store) -> None:
    for path in ("r", "r/a"):
        await Writer(store).write(create(path), ReadUsage())
    first = Position(Side.FIRST)
    await Writer(store).write(replace(move("r/a", "r/b"), position=first), ReadUsage())
    await written(store, replace(move("r/b", "r/c"), position=first), replace(move("r/c", "r/c"), position=first))
    logs = [item for item in await invariants.all_items(store) if item["pk"] == "category#r" and "changes" in item]
    assert [len(log["changes"]) for log in logs] == [1, 1, 1, 1]


async def test_a_node_that_is_moved_and_then_takes_the_place_of_its_parent_is_shown_there(store: Store) -> None:
    for path in ("r", "r/a", "r/a/b"):
        await Writer(store).write(create(path), ReadUsage())
    reparent = Delete(CATEGORY, ("r", "a"), Policy.REPARENT)
    made = await written(store, move("r/a/b", "r/a/c"), reparent, move("r/c", "r/a"))
    assert [one.path for one in made.records] == [("r", "a"), ("r", "a"), ("r", "a")]
    assert made.records[0].id == made.records[2].id != made.records[1].id


async def test_what_follows_from_a_fault_is_none(store: Store) -> None:
    """An id leads to where its node would have come, and what is above that moves on."""
    for path in ("r", "r/a", "r/b"):
        await Writer(store).write(create(path), ReadUsage())
    (node,) = [one["id"] for one in await invariants.all_items(store) if one["sk"] == "#a#" and "id" in one]
    below = replace(create("r/no/a/x"), ids={("r", "no", "a"): node})
    steps = (move("r/a", "r/no/a"), below, move("r/b", "r/no/b"))
    with pytest.raises(Faults) as caught:
        await written(store, *steps)
    assert [(error.code, error.edit) for error in caught.value.errors] == [("NOT_FOUND", 0), ("NOT_FOUND", 2)]
    steps = (
        replace(move("r/a", "r/b/a"), expected=9),
        move("r/b", "r/c"),
        Update(CATEGORY, ("r", "c", "a"), "y", None, {}),
    )
    with pytest.raises(CladeError) as one:
        await written(store, *steps)
    assert (one.value.code, one.value.edit) == ("CONFLICT", 0)
    await Writer(store).write(create("r/b/x"), ReadUsage())
    delete = Delete(CATEGORY, ("r", "a", "x"), Policy.REFUSE)
    steps = (replace(move("r/a", "r/c"), expected=9), move("r/b", "r/a"), delete)
    with pytest.raises(CladeError) as below:
        await written(store, *steps)
    assert (below.value.code, below.value.edit) == ("CONFLICT", 0)


async def test_a_deletion_whose_children_find_their_places_taken_is_refused(store: Store) -> None:
    for path in ("r", "r/a", "r/a/b", "r/b", "r/c"):
        await Writer(store).write(create(path), ReadUsage())
    reparent = Delete(CATEGORY, ("r", "a"), Policy.REPARENT)
    for edits in ((reparent,), (move("r/c", "r/d"), reparent), (reparent, move("r/c", "r/a"))):
        with pytest.raises(CladeError) as caught:
            await written(store, *edits)
        assert (caught.value.code, caught.value.edit) == ("ALREADY_EXISTS", edits.index(reparent))
    assert await versions(store) == ({"category": 1, "category#r": 5}, 6)
