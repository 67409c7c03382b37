"""Copies of stores from SQLite to DynamoDB and back: whatever clients ask, they are answered as by the original."""

import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from store.api_keys import add_key, new_key
from store.checking.check import Check
from store.connect import open_store, opened
from store.edits.create_update import Create
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import CladeError
from store.model.keys import Path as NodePath
from store.model.paths import format_path
from store.transfer.copy import Copy, new_store
from store.writer.request import EditOptions
from store.writer.writer import Writer
from tests import invariants
from tests.engines import Engine
from tests.hierarchies import CATEGORY
from tests.model_writes import Model, RandomEdits, Refused
from tests.systems.writing import Clients

EDITS = 60
NODE = """path key name level revision updatedAt childCount descendantCount
  ancestors { path } children { nodes { id path } } descendants { nodes { path } }
  history { totalCount nodes { name } }"""
BY_ID = f"""query($id: ID!) {{
  node(id: $id) {{ ... on CategoryNode {{ {NODE} }} }}
  deletedNode(id: $id) {{
    deletedAt path level lastRevision {{ revision name }} history {{ nodes {{ revision name }} }}
  }}
}}"""
BY_PATH = "query($path: Path) { categoryNode(path: $path) { id path } }"
CHANGES = """query($tree: Path!) { changes(hierarchy: CATEGORY, tree: $tree) {
  changes { event nodeId path from to level revision at } cursor hasMore } }"""
ROOTS = "{ categories { totalCount nodes { id path } } }"


async def grow(store: Store, seed: int) -> tuple[set[str], set[NodePath]]:
    """Random edits of a tree with history; all ids and paths that ever were."""
    writer, model = Writer(store), Model()
    wishes = RandomEdits(seed, model)
    ids: set[str] = set()
    paths: set[NodePath] = set()
    for _ in range(EDITS):
        edit = wishes.one()
        try:
            accepted = model.apply(edit)
            accepted((await writer.write(edit, ReadUsage())).record)
        except (Refused, CladeError):
            continue
        ids |= {node.id for node in model.nodes.values()} | model.past.keys()
        paths |= model.nodes.keys() | model.aliases.keys()
    create = Create(CATEGORY, ("once",), "CATEGORY", "once", {})
    await writer.write(create, ReadUsage(), EditOptions(key="spring-cleaning-7"))
    await writer.move_worker.stop()
    await add_key(store, new_key("shop", ["read:category"], int(time.time()) + 3600)[0])
    return ids, paths


async def answers(store: Store, ids: set[str], paths: set[NodePath]) -> list[dict[str, Any]]:
    """What clients are told of everything that there is or was."""
    clients = Clients(store)
    found = [await clients.ask(BY_ID, id=node_id) for node_id in sorted(ids)]
    found += [await clients.ask(BY_PATH, path=format_path(path)) for path in sorted(paths)]
    found += [await clients.ask(CHANGES, tree=tree) for tree in sorted({format_path(path[:1]) for path in paths})]
    return [*found, await clients.ask(ROOTS)]


async def items(store: Store) -> list[dict[str, Any]]:
    found = [item for item in await invariants.all_items(store) if item["pk"] != "!"]  # which is the table's own
    return sorted(found, key=lambda item: (item["pk"], item["sk"]))


async def copied(source: str, target: str) -> None:
    async with opened(source) as original, new_store(target) as new:
        await Copy(original, new).run()


async def findings(store: Store) -> list[str]:
    check = Check(store, {"category": CATEGORY}, "2026-01-01T00:00:00.000Z")
    return [str(finding) async for finding in check.findings()]


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.thorough)])
async def test_copies_answer_every_query_as_the_original(engine: Engine, tmp_path: Path, seed: int) -> None:
    original, table = f"sqlite:///{tmp_path}/original.db", engine.address(f"copy-{uuid.uuid4().hex}")
    back = f"sqlite:///{tmp_path}/back.db"
    async with opened(original, make=True) as store:
        ids, paths = await grow(store, seed)
        expected, held = await answers(store, ids, paths), await items(store)
    assert {item["pk"].split("#")[0] for item in held} == {"category", "id", "alias", "once", "keys"}
    async with open_store(table) as store:
        await store.create()
    for source, target in ((original, table), (table, back)):
        await copied(source, target)
        async with opened(target) as store:
            assert await items(store) == held
            assert await answers(store, ids, paths) == expected
            assert await findings(store) == []
            await invariants.check(store)
