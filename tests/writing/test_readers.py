"""Readers beside a large move and a large deletion, over indexes that show everything late."""

import asyncio
from typing import Any

import orjson
import pytest

from graph.execution.operation import Execution
from graph.operation.context import Context
from graph.operation.limits import DocumentLimits
from resolvers.session.request import Request
from store.engine import ReadUsage, Store
from store.metadata.moves import MoveTiming
from store.model.paths import format_path
from store.writing.move_delete import Delete, Move, Policy
from store.writing.writer import Writer
from tests.answers import answer_to
from tests.model import Ground
from tests.schemas import schema_of
from tests.systems.asking import plant
from tests.tables import late_stores

LAG, SETTLE, REQUEST = 0.2, 0.6, 2.0
PACE = MoveTiming(REQUEST + 0.2, SETTLE, 60.0, 60.0)
SUBTREE = [("x",), *[("x", f"n{n}") for n in range(20)], *[("x", "n0", f"m{n}") for n in range(10)]]
NODE = """{
  childCount children { totalCount nodes { key } }
  descendants { nodes { path } }
}"""
ROOTS = "grounds { nodes { children { nodes { path } } } }"
QUERY = f'{{ a: area(path: "a") {NODE} b: area(path: "b") {NODE} {ROOTS} }}'


async def read(store: Store) -> dict[str, Any] | None:
    """What is answered, None where it took too long on a busy machine: then it is ended, and promises nothing."""
    execution = Execution(
        *schema_of(Ground),
        lambda: Context(Request(store, {"ground": Ground.definition()})),
        limits=DocumentLimits(request_seconds=REQUEST),
    )
    answer = await answer_to(execution, QUERY, allow_mutations=False)
    return None if "errors" in answer.body else orjson.loads(answer.content())["data"]


def places(data: dict[str, Any]) -> list[str]:
    """Below which of both nodes the subtree is told; it is told whole, by all lists of the answer alike."""
    found = []
    for top in "ab":
        node, whole = data[top], [format_path((top, *path)) for path in SUBTREE]
        there = [one["path"] for one in node["descendants"]["nodes"]]
        assert there in ([], sorted(whole)), there
        keys = [one["key"] for one in node["children"]["nodes"]]
        assert keys == (["x"] if there else [])
        assert node["childCount"] == node["children"]["totalCount"] == len(keys)
        found += [top] if there else []
    nested = [one["path"] for root in data["grounds"]["nodes"] for one in root["children"]["nodes"]]
    assert nested == [f"{top}/x" for top in found]
    return found


async def told_meanwhile(writer: Writer, reader: Store, edit: Any) -> list[list[str]]:
    """Where readers found the subtree, one after another, from before a change until it is swept."""

    async def change() -> None:
        assert (await writer.write(edit, ReadUsage())).move is not None
        await writer.move_worker.finished()

    making, found = asyncio.create_task(change()), []
    while not making.done():
        if (data := await read(reader)) is not None:
            found.append(places(data))
    await making
    return found


@pytest.mark.thorough
async def test_readers_find_a_subtree_at_one_place_while_it_is_moved_and_until_it_is_deleted():
    async with late_stores(2, LAG) as (store, reader):
        await plant(store, Ground, [(("a",), "AREA"), (("b",), "AREA"), *[(("a", *path), "AREA") for path in SUBTREE]])
        await asyncio.sleep(2 * LAG)
        store.max_commit_changes = 24
        writer, ground = Writer(store, PACE), Ground.definition()
        moved = await told_meanwhile(writer, reader, Move(ground, ("a", "x"), ("b", "x")))
        assert [one for n, one in enumerate(moved) if one != moved[max(0, n - 1)] or n == 0] == [["a"], ["b"]]
        gone = await told_meanwhile(writer, reader, Delete(ground, ("b", "x"), Policy.CASCADE))
        assert set(map(tuple, gone)) <= {("b",), ()}
        assert gone[-1] == []
