"""Readers beside running moves: whenever the flip comes, an answer is that of before or that of after, never of both.

The long form: CLADE_MODEL_EXAMPLES=2000 pytest tests/graph/test_moves.py
"""

import asyncio
import os
import uuid
from random import Random
from typing import Any

from hypothesis import given, settings

from graph.context import Context
from graph.execution import Execution
from graph.plans import Plans
from resolvers.request import Request
from store.stores import Store, open_store
from tests.graph.asking import WIDE
from tests.graph.test_model import DEFINITIONS, SCHEMA, SCHEMA_TYPES, Writer, common, grow, models, queries, seeds
from tests.graph.test_plan import wire
from tests.model import Field, GraphText, failures, without_failures
from tests.moving import Flipping, Moving, any_move, flip_back, plant

EXAMPLES = int(os.environ.get("CLADE_MODEL_EXAMPLES", "0"))
NEVER = 1_000_000
PLANS = Plans(SCHEMA._schema, SCHEMA_TYPES, keep=100)


async def ask(store: Store, fields: list[Field], plans: Plans | None) -> tuple[Any, set[tuple[Any, str]]]:
    """What is answered: the data, and the errors as the model tells them."""
    text = GraphText(fields)
    request = Request(store, DEFINITIONS, nodes_left=10_000_000)
    execution = Execution(SCHEMA, lambda: Context(request, SCHEMA_TYPES), plans=plans, limits=WIDE)
    answer = await execution.execute(text.text, text.variables, allow_mutations=False)
    body = wire(answer)
    return body["data"], {(tuple(error["path"]), error["extensions"]["code"]) for error in body.get("errors", ())}


def told(moving: Moving, fields: list[Field]) -> list[Any]:
    """What may be answered before and after."""
    answers = [model.answer(fields) for model in (moving.before, moving.after)]
    return [(without_failures(one), set(failures(one))) for one in answers]


async def check(store: Store, moving: Moving, fields: list[Field], plans: Plans | None, most: int) -> None:
    """Ask with a flip before each of the reads that an answer takes, and with none."""
    before, after = told(moving, fields)
    for reads in range(most):
        await flip_back(store, moving)
        flipping: Any = Flipping(store, moving, reads)
        answer = await ask(flipping, fields, plans)
        if not flipping.has_flipped:
            assert answer == before, GraphText(fields)
            break
        assert answer in (before, after), (reads, GraphText(fields))
    flipping = Flipping(store, moving, 0)
    assert await ask(flipping, fields, plans) == after, GraphText(fields)


async def check_all(url: str, tree: tuple[int, int, bool, bool], seed: int, asked: Any, most: int) -> None:
    model = grow(*tree)
    moving = any_move(model, Random(seed))  # noqa: S311 - no secret
    async with open_store(url) as store:
        await plant(store, moving)
        for number, (one, depth) in enumerate(asked):
            fields = Writer(one, moving.after if number % 2 and moving.after.nodes else model, depth).query()
            await check(store, moving, fields, PLANS if number % 3 else None, most)


@settings(common, max_examples=EXAMPLES or 150)
@given(models, seeds, queries)
def test_whenever_a_move_flips_an_answer_is_that_of_before_or_that_of_after(tree, seed, asked):
    asyncio.run(check_all("sqlite://:memory:", tree, seed, asked, NEVER))


@settings(common, max_examples=EXAMPLES or 15)
@given(models, seeds, queries)
def test_on_dynamodb_too(engine, tree, seed, asked):
    asyncio.run(check_all(engine.address(f"moves-{uuid.uuid4().hex}"), tree, seed, asked, 6))
