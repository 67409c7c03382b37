"""Event streams: events, order, bounds and ends of subscriptions over HTTP, on both stores."""

import asyncio
import json

import pytest

from graph.app import create_app
from graph.settings import Settings
from resolvers.lists.arguments import CursorKind, encode_cursor
from store.engine import ReadUsage
from store.writing.create_update import Create
from tests.event_streams import CHANGES, EventClient, Following, following
from tests.hierarchies import CATEGORY
from tests.time_limits import TimeLimits


@pytest.fixture
def sqlite(tmp_path) -> str:
    """The URL of a new table in SQLite, for what does not depend on the store."""
    return f"sqlite:///{tmp_path / 'clade.db'}"


async def make(server: Following, *path: str) -> None:
    await server.writer.write(Create(CATEGORY, path, "CATEGORY", path[-1], {}), ReadUsage())


def paths(page) -> list[str]:
    return [change["path"] for change in page["changes"]]


async def test_a_stream_begins_with_the_current_cursor_and_continues_with_each_change(store_url):
    async with following(store_url) as server:
        await make(server, "a")
        async with server.client() as client:
            first = await client.next()
            assert first.name == "next"
            assert first.page == {"changes": [], "cursor": first.id, "hasMore": False}
            assert (client.status, client.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
            assert client.headers["cache-control"] == "no-store"
            for key in "bcd":
                await make(server, "a", key)
                event = await client.next()
                assert (paths(event.page), event.id) == ([f"a/{key}"], event.page["cursor"])
        before = (await server.ask(tree="a", since=first.id))["data"]["changes"]
        assert (paths(before), before["cursor"]) == (["a/b", "a/c", "a/d"], event.id)


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_client_resumes_by_cursor_or_by_the_id_of_the_last_event(store_url, method):
    async with following(store_url) as server:
        await make(server, "a")
        async with server.client(method=method) as client:
            cursor = (await client.next()).id
        for key in "bc":
            await make(server, "a", key)
        async with server.client(method=method, after=cursor) as client:
            middle = await client.next()
            assert paths(middle.page) == ["a/b", "a/c"]
        await make(server, "a", "d")
        async with server.client(method=method, after=cursor, headers={"last-event-id": middle.id}) as client:
            assert paths((await client.next()).page) == ["a/d"]


async def test_a_long_log_comes_in_pages_of_whole_transactions_without_gaps(sqlite):
    async with following(sqlite) as server:
        start = (await server.ask(tree="a"))["data"]["changes"]["cursor"]
        await make(server, "a")
        await asyncio.gather(*[make(server, "a", f"{number:03}") for number in range(230)])
        async with server.client(after=start) as client:
            pages = [(await client.next()).page for _ in range(3)]
        assert [len(page["changes"]) for page in pages] == [100, 100, 31]
        assert [page["hasMore"] for page in pages] == [True, True, False]
        found = [path for page in pages for path in paths(page)]
        assert found == ["a", *(f"a/{number:03}" for number in range(230))]


async def test_queries_and_request_errors_are_one_event_and_the_end(sqlite):
    async with following(sqlite) as server:
        for query, wanted in (
            ("{ __typename }", {"data": {"__typename": "Query"}}),
            ("{ nothing }", None),
            ("{", None),
        ):
            async with server.client(query=query) as client:
                event = await client.next()
                assert (event.name, event.data) == ("next", wanted or event.data)
                assert bool(wanted) != ("errors" in event.data)
                assert (await client.next()).name == "complete"
                assert (client.status, client.has_ended) == (200, True)


async def test_errors_of_arguments_end_the_stream(sqlite):
    async with following(sqlite) as server:
        cursor = (await server.ask(tree="b"))["data"]["changes"]["cursor"]
        late = encode_cursor(CursorKind.CHANGES, "category#a", "9")
        wrong = {"BAD_CURSOR": {"after": "x"}, "BAD_PATH": {"tree": "a//b"}, "CURSOR_EXPIRED": {"after": late}}
        for code, variables in wrong.items():
            async with server.client(**({"tree": "a"} | variables)) as client:
                assert (await client.next()).code == code
                assert (await client.next()).name == "complete"
        async with server.client(headers={"last-event-id": cursor}) as client:  # of another tree
            assert (await client.next()).code == "BAD_CURSOR"


async def test_a_subscription_is_refused_without_the_media_type_and_by_head(sqlite):
    async with following(sqlite) as server:
        answer = await server.ask(CHANGES, tree="a")
        assert "text/event-stream" in answer["errors"][0]["message"]
        async with server.client(method="HEAD") as client:
            assert "HEAD opens no event stream" in (await client.body())["errors"][0]["message"]
            assert client.status == 405
        async with server.client(query="mutation { __typename }", method="GET") as client:
            await client.body()
            assert client.status == 405


async def test_more_streams_than_the_bound_are_rejected_until_one_ends(sqlite, monkeypatch):
    monkeypatch.setattr("graph.server.events.MAX_STREAMS", 2)
    async with following(sqlite) as server:
        async with server.client() as one, server.client() as other:
            assert [(await client.next()).name for client in (one, other)] == ["next", "next"]
            async with server.client() as one_more:
                assert (await one_more.body())["errors"][0]["extensions"]["code"] == "OVERLOADED"
                assert (one_more.status, one_more.headers["retry-after"]) == (503, "1")
            assert "errors" not in await server.ask(tree="a")  # of which streams take no place
        async with server.client() as client:
            assert (await client.next()).name == "next"


async def test_an_internal_error_ends_the_stream_and_is_logged(sqlite, monkeypatch, caplog):
    async with following(sqlite) as server, server.client() as client:
        await client.next()
        monkeypatch.setattr(server.streams.execution, "answer", None)
        await make(server, "a")
        assert (await client.next()).code == "INTERNAL_SERVER_ERROR"
        assert (await client.next()).name == "complete"
    assert "Unexpected error" in caplog.text


async def test_a_stream_does_not_begin_while_the_store_is_unavailable_or_the_server_stops(sqlite):
    app = create_app(Settings(store=sqlite, log_level="error"))  # the table is not created
    async with app.lifespan(app), EventClient(app, CHANGES, tree="a") as client:
        assert (await client.body())["errors"][0]["extensions"]["code"] == "UNAVAILABLE"
        assert (client.status, client.headers["retry-after"]) == (503, "1")
    async with following(sqlite) as server:
        server.streams.drain.stop()
        async with server.client() as late:
            assert (await late.body())["errors"][0]["extensions"]["code"] == "UNAVAILABLE"
            assert late.status == 503


async def test_a_stream_without_events_has_heartbeats_and_lasts_longer_than_a_request_may(sqlite, monkeypatch):
    limits = TimeLimits(monkeypatch)
    async with following(sqlite, heartbeat_seconds=0.05) as server, server.client() as client:
        assert [(await client.next(heartbeats=True)).name for _ in range(4)] == ["next", ":", ":", ":"]
        assert not limits.running  # while it waits
        await make(server, "a")
        assert paths((await client.next()).page) == ["a"]


async def test_a_client_that_reads_nothing_for_long_is_disconnected(sqlite, monkeypatch):
    monkeypatch.setattr("graph.server.events.UNREAD_SECONDS", 0.1)
    async with following(sqlite) as server, server.client() as client:
        await client.next()
        client.is_reading.clear()
        await make(server, "a")
        async with asyncio.timeout(60):
            await client.task
        assert not client.has_ended  # the server closes the connection of a response that is not complete


async def test_the_end_of_the_server_ends_streams_without_complete(sqlite):
    async with following(sqlite) as server, server.client() as client:
        await client.next()
        server.streams.drain.stop()
        with pytest.raises(EOFError, match=r"^$"):
            await client.next()
        assert client.has_ended


async def test_trusted_documents_bind_streams_too_whose_line_in_the_log_has_events_and_reads(sqlite, tmp_path, caplog):
    file = tmp_path / "trusted.json"
    file.write_text(json.dumps({"changes": CHANGES}))
    async with following(sqlite, trusted_documents=str(file)) as server:
        caplog.set_level("INFO", "clade.request")
        async with server.client() as client:
            await client.next()
            await make(server, "a")
            await client.next()
        async with server.client(query=CHANGES.replace("hasMore", "")) as client:
            assert (await client.next()).code == "FORBIDDEN"
            assert (await client.next()).name == "complete"
        fields = next(one.fields for one in caplog.records if one.name == "clade.request")
        assert (fields["kind"], fields["operation"], fields["how"]) == ("subscription", "Changes", "streamed")
        assert (fields["status"], fields["events"], fields["requests"]) == (200, 2, 1)
