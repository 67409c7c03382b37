"""Concurrent clients through two servers: nothing acknowledged is lost, nothing is written twice or in part."""

import asyncio
import os
from collections import Counter
from pathlib import Path

from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.registry import hierarchies
from store.checking.check import Check
from store.connect import open_store
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.metadata.change_log import Event
from store.model.keys import path_of, tree_key
from store.model.paths import format_path
from store.model.records import Record
from store.reading.change_feed import transactions
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from tests import invariants
from tests.moving_subtree import HERE, THERE, MovingSubtree
from tests.servers import Server, codes_of
from tests.writing.crowd import PLACES, TREES, Client
from tests.writing.killing import hasten
from tests.writing.scene import scene

CLIENTS = 32
CHANGES = int(os.environ.get("CLADE_TEST_CHANGES", "5"))  # that each client makes


async def plant(store: Store) -> list[str]:
    """Two trees of two places each; their paths."""
    paths = [*TREES, *(f"{tree}/{place}" for tree in TREES for place in PLACES)]
    wanted = ImportPlan(CategoryNode.definition())
    for number, path in enumerate(paths):
        wanted.take(Row(number, tuple(path.split("/")), [Part("CATEGORY")]))
    await store.create()
    await load(store, wanted, LoadResult())
    return paths


async def told_by_the_feed(store: Store, tree: str) -> dict[str, tuple[str, int]]:
    """The ids and revisions of the nodes of a tree by their paths, worked out from nothing but its changes."""
    nodes: dict[str, tuple[str, int]] = {}
    partition = tree_key("category", (tree,))
    for transaction in await transactions(store, partition, None, 100_000, ReadUsage()):
        for entry in transaction.entries:
            path = format_path(path_of(partition, entry.sk))
            match entry.event:
                case Event.CREATED | Event.UPDATED:
                    nodes[path] = entry.id, entry.revision
                case Event.DELETED:
                    assert nodes.pop(path)[0] == entry.id
                case Event.MOVED if entry.source != entry.target:
                    nodes.pop(entry.source or "", None)
                    if (entry.target or "").split("/")[0] == tree:
                        nodes[entry.target or ""] = entry.id, entry.revision
    return nodes


async def test_results_of_32_clients_through_two_servers_agree_with_the_table(store_url: str, tmp_path: Path) -> None:
    servers = [Server(tmp_path, name, store=store_url, writes="on") for name in ("one", "other")]
    async with open_store(store_url) as store:
        planted = await plant(store)
        try:
            await asyncio.gather(*(server.start() for server in servers))
            clients = [Client(number, servers) for number in range(CLIENTS)]

            async def work(client: Client) -> None:
                for _ in range(CHANGES):
                    await client.act()

            async def kill() -> None:
                await asyncio.sleep(1.0)
                servers[0].kill()
                await servers[0].start()

            await asyncio.gather(kill(), *map(work, clients))
        finally:
            await asyncio.gather(*(server.close() for server in servers))
        await invariants.check(store)
        assert [one async for one in Check(store, hierarchies(), "2026-11-20T00:00:00.000Z").findings()] == []
        records = [Record.of(item) for item in (await invariants.nodes(store, "category")).values()]
        found = {format_path(record.path): record for record in records}
        told = {path: node for client in clients for path, node in client.nodes.items()}
        assert {path: (one.name, one.revision) for path, one in found.items() if path not in planted} == told
        replayed = {**await told_by_the_feed(store, "t0"), **await told_by_the_feed(store, "t1")}
        assert replayed == {path: (one.id, one.revision) for path, one in found.items()}


async def test_of_two_moves_of_one_subtree_through_two_servers_one_wins(store_url: str, tmp_path: Path) -> None:
    async with scene(tmp_path, store_url, MovingSubtree(6, 6)) as played:
        other = Server(tmp_path, "other", store=store_url, writes="on")
        try:
            await other.start(hasten)
            answers = await asyncio.gather(
                played.subtree.move(played.writing, THERE, key="one"), played.subtree.rename(other, key="other")
            )
            codes = Counter(code for answer in answers for code in codes_of(answer))
            assert codes.total() == 1
            assert codes.keys() <= {"NOT_FOUND", "CONFLICT"}
            (won,) = [answer["data"]["changed"]["node"]["path"] for answer in answers if not codes_of(answer)]
            assert won in (THERE, HERE + "-renamed")
        finally:
            await other.close()
        await played.rest()
        await invariants.check(played.store)
        nodes = (await invariants.nodes(played.store, "category")).values()
        paths = {format_path(Record.of(item).path) for item in nodes}
        assert paths == {"r", "r/here", "r/there", "r/there/other", *played.subtree.at(won)}
