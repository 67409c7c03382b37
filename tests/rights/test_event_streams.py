"""Event streams of callers with grants: they see their part, hidden changes cause no event, and rights that end, end
the stream.
"""

import asyncio
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import jwt
import pytest

import graph.app
from resolvers.access.api_key_auth import ApiKeyAuthenticator
from store.api_keys import add_key, new_key, revoke_key
from store.edits.create_update import Create
from store.edits.move import Move
from store.engine.usage import ReadUsage
from store.model.items import Put
from tests.event_streams import FEED, Following, following
from tests.hierarchies import CATEGORY

SECRET = "a secret of the tests with 32 bytes or more"


@pytest.fixture
def sqlite(tmp_path) -> str:
    """The URL of a new table in SQLite, for what does not depend on the store."""
    return f"sqlite:///{tmp_path / 'clade.db'}"


async def write(server: Following, *edits) -> None:
    for edit in edits:
        await server.writer.write(edit, ReadUsage())


def create(text: str) -> Create:
    path = tuple(text.split("/"))
    return Create(CATEGORY, path, "CATEGORY", path[-1], {})


def move(source: str, target: str) -> Move:
    return Move(CATEGORY, tuple(source.split("/")), tuple(target.split("/")), None)


async def key_of(server: Following, *grants: str) -> tuple[str, dict[str, str]]:
    """A new key: its id, and the header with it."""
    key, text = new_key("somebody", grants, None)
    await add_key(server.store, key)
    return key.id, {"authorization": f"Bearer {text}"}


def token(**claims) -> dict[str, str]:
    whole = {"sub": "ana", "exp": int(time.time()) + 600, "grants": ["read:category/a/seen"], **claims}
    return {"authorization": f"Bearer {jwt.encode(whole, SECRET, 'HS256')}"}


@pytest.fixture
def no_key_cache(monkeypatch) -> None:
    """Keys are looked up at each use, so that a revocation takes effect at once."""
    monkeypatch.setattr(graph.app, "ApiKeyAuthenticator", partial(ApiKeyAuthenticator, cache_seconds=0.0))


def shown(page) -> list[tuple[str, str, bool]]:
    return [(change["event"], change["path"], change["nodeId"] is not None) for change in page["changes"]]


async def test_a_caller_of_a_part_gets_the_changes_of_this_part_and_no_event_of_others(store_url):
    async with following(store_url, reads="granted", heartbeat_seconds=0.2) as server:
        await write(server, create("a"), create("a/seen"), create("a/hidden"))
        _, headers = await key_of(server, "read:category/a/seen")
        async with server.client(headers=headers) as client:
            first = await client.next()
            assert first.page["changes"] == []
            await write(server, create("a/hidden/1"), create("a/hidden/2"))
            events = [(await client.next(heartbeats=True)).name for _ in range(2)]
            assert events == [":", ":"]
            await write(server, move("a/hidden/1", "a/seen/1"), move("a/seen/1", "a/hidden/3"))
            found = []
            while len(found) < 2:
                found += shown((await client.next()).page)
            assert found == [("CREATED", "a/seen/1", True), ("DELETED", "a/seen/1", True)]
        asked = (await server.ask(FEED, headers, tree="a", since=first.id))["data"]["changes"]
        assert shown(asked) == found


async def test_hidden_changes_delay_no_heartbeat(sqlite):
    """Neither would their rate be seen, nor would proxies close a stream for its silence."""
    async with following(sqlite, reads="granted", heartbeat_seconds=0.3) as server:
        await write(server, create("a"), create("a/seen"), create("a/hidden"))
        _, headers = await key_of(server, "read:category/a/seen")
        async with server.client(headers=headers) as client:
            await client.next()
            beat, number = asyncio.create_task(client.next(heartbeats=True)), 0
            while not beat.done() and number < 60:
                await write(server, create(f"a/hidden/{number}"))
                await asyncio.sleep(0.05)
                number += 1
            assert (await beat).name == ":"
            assert number < 60


async def test_a_hidden_tree_looks_like_one_that_does_not_exist(store_url):
    async with following(store_url, reads="granted", heartbeat_seconds=0.1) as server:
        await write(server, create("hidden"), create("hidden/1"))
        _, headers = await key_of(server, "read:category/a")
        seen = []
        for tree in ("hidden", "nothing"):
            async with server.client(tree, headers=headers) as client:
                events = [await client.next(heartbeats=True)]
                await write(server, create(f"hidden/{tree}"))
                events += [await client.next(heartbeats=True) for _ in range(3)]
            page = events[0].page
            seen.append(([event.name for event in events], len(events[0].id), page["changes"], page["hasMore"]))
        assert seen[0] == seen[1] == (["next", ":", ":", ":"], len(events[0].id), [], False)


async def test_without_a_credential_nothing_is_streamed_where_reads_are_granted(sqlite):
    async with following(sqlite, reads="granted") as server, server.client() as client:
        assert (await client.body())["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"
        assert client.status == 401


@pytest.mark.parametrize("cause", ["heartbeat", "change"])
async def test_a_revoked_key_ends_its_stream_before_the_next_change(sqlite, no_key_cache, cause):
    heartbeat = 0.1 if cause == "heartbeat" else 600
    async with following(sqlite, reads="granted", heartbeat_seconds=heartbeat) as server:
        await write(server, create("a"))
        key, headers = await key_of(server, "read:category")
        async with server.client(headers=headers) as client:
            await client.next()
            await revoke_key(server.store, key)
            if cause == "change":
                await write(server, create("a/secret"))
            assert (await client.next()).code == "UNAUTHENTICATED"
            assert (await client.next()).name == "complete"
            assert client.has_ended


async def test_a_token_that_expires_ends_its_stream(sqlite, monkeypatch):
    async with (
        following(sqlite, reads="granted", heartbeat_seconds=0.1, jwt_secret=SECRET) as server,
        server.client(headers=token()) as client,
    ):
        assert (await client.next()).name == "next"
        monkeypatch.setattr("graph.auth.jwt_tokens.time", SimpleNamespace(time=lambda: time.time() + 3_600))
        assert (await client.next()).code == "UNAUTHENTICATED"
        assert (await client.next()).name == "complete"
        assert client.has_ended


async def test_grants_that_change_during_a_stream_hold_for_the_next_page(sqlite, no_key_cache):
    async with following(sqlite, reads="granted") as server:
        await write(server, create("a"), create("a/seen"), create("a/other"))
        key, text = new_key("somebody", ["read:category/a"], None)
        await add_key(server.store, key)
        async with server.client(headers={"authorization": f"Bearer {text}"}) as client:
            await client.next()
            await write(server, create("a/other/1"))
            assert shown((await client.next()).page) == [("CREATED", "a/other/1", True)]
            fewer = replace(key, grants=["read:category/a/seen"])
            await server.store.commit([Put(fewer.item(), {"hash": key.hash})])
            await write(server, create("a/other/2"), create("a/seen/1"))
            assert shown((await client.next()).page) == [("CREATED", "a/seen/1", True)]
