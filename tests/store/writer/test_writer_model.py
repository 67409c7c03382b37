"""Random edits on both stores, compared with a plain model after each."""

import asyncio
import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.background_moves.timing import MoveTiming
from store.checking.check import Check
from store.connect import open_store
from store.edits.create_update import Create, Edit
from store.edits.delete import Delete, Policy
from store.edits.reorder import Reorder, Side
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import CladeError
from store.model.keys import Path, tree_key
from store.model.ranges import siblings
from store.writer.request import EditOptions, EditResult
from store.writer.writer import Writer
from tests.hierarchies import CATEGORY
from tests.model_writes import Model, RandomEdits, Refused, compare
from tests.selection import examples
from tests.store.background_moves.journaled import AT

TINY = 14  # changes in a transaction, in which not even two nodes can move
SEQUENCES = st.tuples(st.integers(0, 1 << 32), st.integers(1, 60))  # a seed, and how many edits


async def orders(store: Store, model: Model) -> dict[tuple[Path, str], list[Path]]:
    """The siblings of each level under each parent in their order."""
    found: dict[tuple[Path, str], list[Path]] = {}
    for parent in {path[:-1] for path in model.nodes}:
        sk = "#" + "".join(f"{segment}#" for segment in map(_encoded, parent[1:]))
        partition = tree_key("category", parent) + sk if parent else "category"
        for item in await store.range(siblings(partition), ReadUsage()):
            path = next(one for one in model.nodes if model.nodes[one].id == item["id"])
            found.setdefault((parent, item["level"]), []).append(path)
    return found


def _encoded(segment: str) -> str:
    return "".join(f"%{ord(c):02X}" if c <= "%" else c for c in segment)


def reordered(edit: Reorder, family: list[Path]) -> list[Path]:
    rest = [one for one in family if one != edit.path]
    match edit.side:
        case Side.FIRST:
            place = 0
        case Side.LAST:
            place = len(rest)
        case Side.BEFORE:
            place = rest.index(edit.beside)
        case Side.AFTER:
            place = rest.index(edit.beside) + 1
    return [*rest[:place], edit.path, *rest[place:]]


async def follow(store: Store, seed: int, length: int) -> None:
    writer, model = Writer(store, MoveTiming(0.0, 0.0, 5.0, 5.0)), Model()
    wishes = RandomEdits(seed, model)
    for _ in range(length):
        edit = wishes.one()
        if store.max_commit_changes == TINY and isinstance(edit, Delete) and edit.policy is Policy.REPARENT:
            continue  # which is refused where it is no transaction
        before = await orders(store, model)
        try:
            made = model.apply(edit)
        except Refused as refusal:
            code = str(refusal)
            for dry_run in (True, False):
                if code == "ALREADY_EXISTS" and dry_run:
                    continue  # which a dry run tells as a collision, where it is one of paths
                with pytest.raises(CladeError) as caught:
                    await writer.write(edit, ReadUsage(), EditOptions(dry_run=dry_run))
                assert caught.value.code == code, edit
        else:
            forecast = (await writer.write(edit, ReadUsage(), EditOptions(dry_run=True))).dry_run
            assert forecast is not None
            assert not forecast.collisions
            made((await writer.write(edit, ReadUsage())).record)
            await writer.move_worker.finished()
        await compare(store, model)
        after = await orders(store, model)
        if isinstance(edit, Reorder) and edit.path in model.nodes:
            key = (edit.path[:-1], model.nodes[edit.path].level)
            if not edit.beside or (edit.beside in before[key] and edit.beside != edit.path):
                before[key] = reordered(edit, before[key])
            assert after == before
        for key in before.keys() & after.keys():
            stay = set(before[key]) & set(after[key])
            if not isinstance(edit, Reorder) and getattr(edit, "target", None) not in stay:
                assert [one for one in before[key] if one in stay] == [one for one in after[key] if one in stay]


async def follow_together(store: Store, seed: int, length: int) -> None:
    """Edits of one tree, some at a time: each has to come out as in its turn, first come, first served."""
    writer, model = Writer(store), Model()
    wishes, tree = RandomEdits(seed, model), {tree_key("category", ("a",))}
    await at_once(writer, model, [Create(CATEGORY, ("a",), "CATEGORY", "a", {})])
    while length > 0:
        wanted = [wishes.one() for _ in range(min(length, wishes.random.randint(1, 9)))]
        length -= len(wanted)
        await at_once(writer, model, [edit for edit in wanted if edit.partitions() == tree])  # others have turns apart
        await compare(store, model)
    assert [one async for one in Check(store, {"category": CATEGORY}, AT).findings()] == []


async def at_once(writer: Writer, model: Model, edits: list[Edit]) -> None:
    outcomes = await asyncio.gather(*[writer.write(edit, ReadUsage()) for edit in edits], return_exceptions=True)
    for edit, outcome in zip(edits, outcomes, strict=True):
        try:
            made, refusal = model.apply(edit), None
        except Refused as refused:
            made, refusal = None, str(refused)
        assert getattr(outcome, "code", None) == refusal, (edit, outcome, edits)
        if made is not None:
            assert isinstance(outcome, EditResult), (edit, outcome)
            made(outcome.record)


@settings(max_examples=examples(10, 50), deadline=None)
@given(SEQUENCES)
def test_edits_one_after_another_agree_with_the_model(sequence: tuple[int, int]) -> None:
    async def run() -> None:
        async with open_store("sqlite://:memory:") as store:
            await store.create()
            await follow(store, *sequence)

    asyncio.run(run())


@settings(max_examples=examples(6, 30), deadline=None)
@given(SEQUENCES)
def test_edits_with_background_moves_agree_with_the_model(
    sequence: tuple[int, int],
) -> None:
    async def run() -> None:
        async with open_store("sqlite://:memory:") as store:
            await store.create()
            store.max_commit_changes = TINY
            await follow(store, *sequence)
            assert [one async for one in Check(store, {"category": CATEGORY}, AT).findings()] == []

    asyncio.run(run())


@settings(max_examples=examples(3, 10), deadline=None, suppress_health_check=list(HealthCheck))
@given(SEQUENCES)
def test_edits_on_dynamodb_agree_with_the_model(engine, sequence: tuple[int, int]) -> None:
    async def run() -> None:
        async with open_store(engine.address(f"writes-{uuid.uuid4().hex}")) as store:
            await store.create()
            await follow(store, *sequence)

    asyncio.run(run())


@settings(max_examples=examples(10, 50), deadline=None)
@given(SEQUENCES)
def test_concurrent_edits_are_serializable(sequence: tuple[int, int]) -> None:
    async def run() -> None:
        async with open_store("sqlite://:memory:") as store:
            await store.create()
            await follow_together(store, *sequence)

    asyncio.run(run())


@settings(max_examples=examples(3, 10), deadline=None, suppress_health_check=list(HealthCheck))
@given(SEQUENCES)
def test_concurrent_edits_on_dynamodb_are_serializable(engine, sequence: tuple[int, int]) -> None:
    async def run() -> None:
        async with open_store(engine.address(f"at-once-{uuid.uuid4().hex}")) as store:
            await store.create()
            await follow_together(store, *sequence)

    asyncio.run(run())
