"""Event streams of callers with grants: they see their part, hidden changes cause no event, and rights that end, end
the stream.
"""

import asyncio
import time

import jwt
import pytest
from msgspec.structs import replace

from store.api_keys import add_key, new_key, revoke_key
from store.engine import ReadUsage
from store.errors import rfc3339
from store.model.records import Put, derived_id
from store.writing.create_update import Create
from store.writing.edit import Named
from store.writing.move_delete import Delete, Move, Policy
from store.writing.restore import Restore
from tests.event_streams import FEED, following
from tests.hierarchies import CATEGORY

SECRET = "a secret of the tests with 32 bytes or more"


@pytest.fixture
def stream(tmp_path):
    """Starts an application whose reads need grants, with heartbeats of so many seconds."""
    url = f"sqlite:///{tmp_path / 'clade.db'}"
    return lambda seconds: following(url, reads="granted", heartbeat_seconds=seconds, jwt_secret=SECRET)


async def create(server, *paths):
    for path in paths:
        edit = Create(CATEGORY, tuple(path.split("/")), "CATEGORY", path, {})
        await server.writer.write(edit, ReadUsage())


async def move(server, source, target):
    await server.writer.write(Move(CATEGORY, tuple(source.split("/")), tuple(target.split("/")), None), ReadUsage())


async def key_of(server, *grants):
    """A new key, and the header with it."""
    key, text = new_key("somebody", grants, None)
    await add_key(server.store, key)
    return key, {"authorization": f"Bearer {text}"}


def shown(page):
    return [(change["event"], change["path"], change["nodeId"] is not None) for change in page["changes"]]


async def test_a_caller_of_a_part_gets_the_changes_of_this_part_and_no_event_of_others(stream):
    async with stream(0.2) as server:
        await create(server, "a", "a/seen", "a/hidden")
        _, headers = await key_of(server, "read:category/a/seen")
        async with server.client(headers=headers) as client:
            first = await client.next()
            assert first.page["changes"] == []
            await create(server, "a/hidden/1", "a/hidden/2")
            assert [(await client.next(heartbeats=True)).name for _ in range(2)] == [":", ":"]
            await move(server, "a/hidden/1", "a/seen/1")
            await move(server, "a/seen/1", "a/hidden/3")
            found = []
            while len(found) < 2:
                found += shown((await client.next()).page)
            assert found == [("CREATED", "a/seen/1", True), ("DELETED", "a/seen/1", True)]
        assert shown((await server.ask(FEED, headers, tree="a", since=first.id))["data"]["changes"]) == found


async def test_a_restore_is_an_event_for_callers_of_the_node_and_of_a_part_of_it(stream):
    async with stream(600) as server:
        await create(server, "a", "a/b", "a/b/seen")
        node = Named("id", id=f"category:{derived_id('category', ('a', 'b'))}")
        await server.writer.write(Delete(CATEGORY, ("a", "b"), Policy.CASCADE), ReadUsage())
        for grant, expected in (("a/b/seen", ("a/b/seen", False)), ("a/b", ("a/b", True)), ("a", ("a/b", True))):
            _, headers = await key_of(server, f"read:category/{grant}")
            async with server.client(headers=headers) as client:
                await client.next()
                await server.writer.write(Restore(CATEGORY, (), str(node.id), names=[node]), ReadUsage())
                page = (await client.next()).page
            assert shown(page) == [("RESTORED", *expected)]
            await server.writer.write(Delete(CATEGORY, ("a", "b"), Policy.CASCADE), ReadUsage())


async def test_hidden_changes_delay_no_heartbeat(stream):
    """Neither would their rate be seen, nor would proxies close a stream for its silence."""
    async with stream(0.3) as server:
        await create(server, "a", "a/seen", "a/hidden")
        _, headers = await key_of(server, "read:category/a/seen")
        async with server.client(headers=headers) as client:
            await client.next()
            beat, number = asyncio.create_task(client.next(heartbeats=True)), 0
            while not beat.done():
                await create(server, f"a/hidden/{number}")
                await asyncio.sleep(0.05)
                number += 1
            assert (await beat).name == ":"


async def test_a_hidden_tree_looks_like_one_that_does_not_exist(stream):
    async with stream(0.1) as server:
        await create(server, "hidden", "hidden/1")
        _, headers = await key_of(server, "read:category/a")
        seen = []
        for tree in ("hidden", "nothing"):
            async with server.client(tree, headers=headers) as client:
                events = [await client.next(heartbeats=True)]
                await create(server, f"hidden/{tree}")
                events += [await client.next(heartbeats=True) for _ in range(3)]
            page = events[0].page
            seen.append(([event.name for event in events], len(events[0].id), page["changes"], page["hasMore"]))
        assert seen[0] == seen[1] == (["next", ":", ":", ":"], len(events[0].id), [], False)
        async with server.client() as client:
            assert (await client.body())["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"
            assert client.status == 401


@pytest.mark.parametrize(
    ("end", "heartbeat"),
    [("a revoked key", 0.1), ("a revoked key and a change", 600), ("an expired token", 0.1)],
)
async def test_a_credential_that_ends_ends_its_stream_before_the_next_change(stream, monkeypatch, end, heartbeat):
    async with stream(heartbeat) as server:
        await create(server, "a")
        key, headers = await key_of(server, "read:category")
        now = time.time()
        if "token" in end:
            claims = {"sub": "ana", "exp": int(now) + 600, "grants": ["read:category"]}
            headers = {"authorization": f"Bearer {jwt.encode(claims, SECRET, 'HS256')}"}
        async with server.client(headers=headers) as client:
            assert (await client.next()).name == "next"
            if "token" in end:
                monkeypatch.setattr(time, "time", lambda: now + 3_600)
            else:
                await revoke_key(server.store, key.id)
            if "change" in end:
                await create(server, "a/secret")
            assert (await client.next()).code == "UNAUTHENTICATED"
            assert (await client.next()).name == "complete"
            assert client.has_ended


async def test_grants_that_change_during_a_stream_hold_for_the_next_page(stream):
    async with stream(600) as server:
        await create(server, "a", "a/seen", "a/other")
        key, headers = await key_of(server, "read:category/a")
        async with server.client(headers=headers) as client:
            await client.next()
            await create(server, "a/other/1")
            assert shown((await client.next()).page) == [("CREATED", "a/other/1", True)]
            fewer = replace(key, grants=["read:category/a/seen"], created_at=rfc3339(server.store.now()))
            await server.store.commit([Put(fewer.item(), {"hash": key.hash})])
            await create(server, "a/other/2", "a/seen/1")
            assert shown((await client.next()).page) == [("CREATED", "a/seen/1", True)]
