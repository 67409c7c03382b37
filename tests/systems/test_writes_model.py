"""Random edits, and after each of them what clients read: at new paths and at old ones."""

import asyncio
import uuid
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.connect import open_store
from store.engine import ReadUsage, Store
from store.errors import BadPath, CladeError
from store.metadata.moves import MoveState, MoveTiming
from store.model.keys import Path
from store.model.paths import format_path
from store.writing.move_delete import Delete, Policy
from store.writing.writer import Writer
from tests.model_writes import Model, RandomEdits, Refused
from tests.selection import examples
from tests.store.writing import journaled
from tests.systems.writing import Clients

SEQUENCES = st.tuples(st.integers(0, 1 << 32), st.integers(1, 25))  # a seed, and how many edits
NODE = "path level name revision childCount descendantCount parent { path }"
EVERYTHING = f"{{ categories {{ nodes {{ {NODE} descendants {{ nodes {{ {NODE} }} }} }} }} }}"
OLD = "query($paths: [Path!]!) { categoriesByPath(paths: $paths) { path } }"
TINY = 14  # changes in a transaction, so that a handful of nodes takes several


def told(model: Model, path: Path) -> dict[str, object]:
    """A node as an answer tells it."""
    node = model.nodes[path]
    below = [one for one in model.nodes if one[: len(path)] == path and one != path]
    return {
        "path": format_path(path), "level": node.level, "name": node.name, "revision": node.revision,
        "childCount": len([one for one in below if one[:-1] == path]), "descendantCount": len(below),
        "parent": {"path": format_path(path[:-1])} if len(path) > 1 else None,
    }  # fmt: skip


def found_at(model: Model, path: Path) -> Path | None:
    """Where the node lies to which a path leads."""
    if path in model.nodes:
        return path
    node_id = model.aliases.get(path)
    return next((one for one, node in model.nodes.items() if node.id == node_id), None)


async def check(clients: Clients, model: Model) -> None:
    roots = (await clients.ask(EVERYTHING))["categories"]["nodes"]
    nodes = [node for root in roots for node in [*root.pop("descendants")["nodes"], root]]
    expected = [told(model, path) for path in model.nodes]
    assert sorted(nodes, key=lambda one: one["path"]) == sorted(expected, key=lambda one: str(one["path"]))
    old = [*model.aliases, *[(*path, "a") for path in model.aliases]]
    found = await clients.ask(OLD, paths=list(map(format_path, old)))
    places = [found_at(model, path) for path in old]
    assert found["categoriesByPath"] == [place and {"path": format_path(place)} for place in places], old


async def follow(store: Store, seed: int, length: int, max_commit_changes: int | None) -> None:
    await store.create()
    store.max_commit_changes = max_commit_changes or store.max_commit_changes
    writer, model = Writer(store, MoveTiming(0.0, 0.0)), Model()
    wishes, clients = RandomEdits(seed, model), Clients(store)
    for _ in range(length):
        edit = wishes.one()
        if max_commit_changes and isinstance(edit, Delete) and edit.policy is Policy.REPARENT:
            continue  # which is refused where it is no transaction
        try:
            made = model.apply(edit)
        except Refused:
            with pytest.raises(CladeError):
                await writer.write(edit, ReadUsage())
            continue
        made((await writer.write(edit, ReadUsage())).record)
        await writer.move_worker.finished()
        await check(clients, model)


def run(url: str, sequence: tuple[int, int], max_commit_changes: int | None = None) -> None:
    async def opened() -> None:
        async with open_store(url) as store:
            await follow(store, *sequence, max_commit_changes)

    asyncio.run(opened())


@settings(max_examples=examples(8, 40), deadline=None)
@given(SEQUENCES)
def test_on_sqlite_clients_read_what_was_written(sequence: tuple[int, int]) -> None:
    run("sqlite://:memory:", sequence)


@settings(max_examples=examples(3, 10), deadline=None)
@given(SEQUENCES)
def test_clients_read_what_many_small_transactions_have_moved(sequence: tuple[int, int]) -> None:
    run("sqlite://:memory:", sequence, TINY)


@settings(max_examples=examples(2, 5), deadline=None, suppress_health_check=list(HealthCheck))
@given(SEQUENCES)
def test_on_dynamodb_clients_read_what_was_written(engine, sequence: tuple[int, int]) -> None:
    run(engine.address(f"edits-{uuid.uuid4().hex}"), sequence)


async def test_a_move_that_came_to_nothing_after_its_answer_says_why_and_leaves_all_nodes_where_they_were(store):
    """While it is copied, a node is created that would lie too deep at its target."""
    long, key = "m" * 500, "n" * 20
    await journaled.plant(store, f"o/{long}", f"r/a/{long}", *[f"r/a/a{n}" for n in range(40)])
    before = await journaled.paths(store)
    edited: Any = journaled.edited_meanwhile(store, journaled.create(f"r/a/{long}/{key}"))
    writer = Writer(edited, journaled.SOON)
    with pytest.raises(BadPath):
        await writer.write(journaled.move("r/a", f"o/{long}/a"), ReadUsage())
    await writer.move_worker.finished()
    await journaled.has_ended(store, MoveState.UNDONE)
    assert await journaled.paths(store) == before | {f"r/a/{long}/{key}"}
    (move,) = (await Clients(store).ask("{ moves(hierarchy: CATEGORY) { state reason } }"))["moves"]
    assert move["state"] == "UNDONE"
    assert f'The path of "{key}" would take' in move["reason"]
