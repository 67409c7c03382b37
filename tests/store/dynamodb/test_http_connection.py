"""HTTP connections: reuse, limits, timeouts and invalid responses."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import SplitResult, urlsplit

import httptools
import pytest

from store.dynamodb import http_connection
from store.dynamodb.http_connection import Connection, NotConnected, Pool

Answers = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(answers: Answers) -> AsyncIterator[SplitResult]:
    """A server that does with each connection what it is told, whatever is asked."""
    async with await asyncio.start_server(answers, "127.0.0.1", 0) as server:
        yield urlsplit(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")


def pool(url: SplitResult, limit: int = 4, seconds: float = 5.0) -> Pool:
    return Pool(url, limit, seconds, seconds, None)


def telling(*answers: bytes) -> tuple[Answers, list[int]]:
    """Tells these to whatever comes over one connection, and closes it; and the numbers of bytes that came on each."""
    heard: list[int] = []

    async def tell(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(0)
        number = len(heard) - 1
        for answer in answers:
            heard[number] += len(await reader.read(100))
            writer.write(answer)
            await writer.drain()
        writer.close()

    return tell, heard


WHOLE = b"HTTP/1.1 200 OK\r\nX-Amz-Crc32: 7\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"
LAST = b"HTTP/1.1 503 Slow Down\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


async def test_one_connection_serves_one_call_after_the_other() -> None:
    tell, heard = telling(WHOLE, CHUNKED, WHOLE)
    async with serving(tell) as url:
        lines = pool(url)
        replies = [await lines.post(b"asked") for _ in range(3)]
        lines.close()
    assert [(reply.status, reply.body) for reply in replies] == [(200, b"{}")] * 3
    assert replies[0].headers["x-amz-crc32"] == "7"
    assert heard == [15]


@pytest.mark.parametrize("pause", [0.0, 0.02], ids=["together", "one after the other"])
async def test_what_tells_of_an_answer_to_come_is_not_the_answer(pause: float) -> None:
    async def early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while asked := await reader.read(100):
            writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n")
            await asyncio.sleep(pause)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + asked)

    async with serving(early) as url:
        lines = pool(url)
        replies = [await lines.post(asked) for asked in (b"1", b"2", b"3")]
        lines.close()
    assert [(reply.status, reply.body, "link" in reply.headers) for reply in replies] == [
        (200, asked, False) for asked in (b"1", b"2", b"3")
    ]


async def test_a_connection_on_which_more_comes_than_was_asked_is_not_used_again() -> None:
    async def twice(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.read(100)
        whole = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"
        writer.write(whole + asked + whole[:20])
        await reader.read(100)
        writer.write(whole[20:] + asked)
        writer.close()

    async with serving(twice) as url:
        lines = pool(url)
        assert [(await lines.post(asked)).body for asked in (b"1", b"2", b"3")] == [b"1", b"2", b"3"]
        lines.close()


async def test_nothing_is_asked_over_a_connection_that_was_lost_at_once() -> None:
    tell, _ = telling(WHOLE)
    loop = asyncio.get_running_loop()
    async with serving(tell) as url:
        _, line = await loop.create_connection(lambda: Connection(loop), url.hostname, url.port)
        line.close()
        await asyncio.sleep(0)  # in which it hears of that
        await asyncio.sleep(0)
        async with asyncio.timeout(10):
            with pytest.raises(ConnectionResetError):
                await line.send(b"asked", 30.0)


async def test_a_connection_that_was_closed_is_not_used_again() -> None:
    tell, heard = telling(LAST)
    async with serving(tell) as url:
        lines = pool(url)
        assert [(await lines.post(b"asked")).status for _ in range(2)] == [503, 503]
        lines.close()
    assert heard == [5, 5]


async def test_a_connection_that_lay_idle_for_long_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "KEEP_SECONDS", 0.0)
    tell, heard = telling(WHOLE, WHOLE)
    async with serving(tell) as url:
        lines = pool(url)
        await lines.post(b"asked")
        await lines.post(b"asked")
        lines.close()
    assert heard == [5, 5]


async def test_as_many_connections_are_open_as_there_may_be() -> None:
    open_now, most, none_left = 0, 0, asyncio.Event()

    async def tell(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        while await reader.read(100):
            await asyncio.sleep(0.001)
            writer.write(WHOLE)
        open_now -= 1
        writer.close()
        if not open_now:
            none_left.set()

    async with serving(tell) as url:
        lines = pool(url, limit=3)
        await asyncio.gather(*[lines.post(b"asked") for _ in range(20)])
        assert (open_now, most) == (3, 3)
        lines.close()
        await none_left.wait()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (WHOLE[:-1], ConnectionResetError), (b"", ConnectionResetError),
        (b"SSH-2.0-OpenSSH_9.2\r\n", httptools.HttpParserError),
        (b"HTTP/1.1 101 Upgrade\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", ConnectionError),
    ],
    ids=["broken off", "nothing", "another protocol", "a wish for another protocol"],
)  # fmt: skip
async def test_what_is_no_whole_answer_is_an_error(answer: bytes, error: type[Exception]) -> None:
    tell, _ = telling(answer)
    async with serving(tell) as url:
        lines = pool(url)
        with pytest.raises(error):
            await lines.post(b"asked")
        lines.close()


async def test_a_response_that_is_too_large_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "MAX_BYTES", 100)
    tell, _ = telling(WHOLE, WHOLE, b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + 99 * b" ")
    async with serving(tell) as url:
        lines = pool(url)
        for _ in range(2):
            assert (await lines.post(b"asked")).body == b"{}"
        with pytest.raises(ConnectionError, match="100 bytes"):
            await lines.post(b"asked")
        lines.close()


async def test_nobody_waits_for_ever() -> None:
    ended = asyncio.Event()

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(WHOLE[:-1])
        await reader.read(100)
        await reader.read(100)  # until the other side gives up
        writer.close()
        ended.set()

    async with serving(never) as url:
        lines = pool(url, seconds=0.05)
        with pytest.raises(TimeoutError):
            await lines.post(b"asked")
        await ended.wait()
        lines.close()


async def test_a_port_where_nobody_listens_is_an_error_of_the_system() -> None:
    with pytest.raises(NotConnected) as caught:
        await pool(urlsplit("http://127.0.0.1:9/")).post(b"asked")
    assert isinstance(caught.value.__cause__, ConnectionRefusedError)
