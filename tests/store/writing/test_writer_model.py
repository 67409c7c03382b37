"""Random edits of one tree at once, compared with a plain model."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from store.checking.check import Check
from store.connect import open_store
from store.engine import ReadUsage, Store
from store.model.keys import tree_key
from store.writing.create_update import Create, Edit
from store.writing.edit_request import EditResult
from store.writing.writer import Writer
from tests.hierarchies import CATEGORY
from tests.model_writes import Model, RandomEdits, Refused, compare
from tests.selection import examples
from tests.store.writing.journaled import AT

TINY = 14  # changes in a transaction, in which not even two nodes can move
SEQUENCES = st.tuples(st.integers(0, 1 << 32), st.integers(1, 60))  # a seed, and how many edits


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
def test_concurrent_edits_are_serializable(sequence: tuple[int, int]) -> None:
    async def run() -> None:
        async with open_store("sqlite://:memory:") as store:
            await store.create()
            await follow_together(store, *sequence)

    asyncio.run(run())
