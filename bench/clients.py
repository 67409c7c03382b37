"""Load generators: wrk if it is installed, or a client of our own.

Our client costs more CPU of the same cores, but waits for every response: wrk aborts the last requests when its time
is over, so their CPU time would be counted without them, which matters if there are few.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from urllib.parse import urlsplit

SCRIPT = Path(__file__).with_name("wrk.lua")


@dataclass(frozen=True)
class Load:
    """Result of a run; times in milliseconds."""

    requests: int
    seconds: float
    failed: int
    p50: float
    p99: float


def send(url: str, bodies: Sequence[bytes], *, connections: int, seconds: float, to_the_end: bool = False) -> Load:
    """Post the bodies in turn over some connections; each sends its next request after the last response."""
    if shutil.which("wrk") and not to_the_end:
        return _by_wrk(url, bodies, connections, max(1, round(seconds)))
    return asyncio.run(_by_own_client(url, bodies, connections, seconds))


def _by_wrk(url: str, bodies: Sequence[bytes], connections: int, seconds: int) -> Load:
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"\n".join(bodies) + b"\n")
        file.flush()
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", str(SCRIPT), url]
        environment = {**os.environ, "BENCH_BODIES": file.name}
        output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    found = re.search(r"^TOLD (.*)$", output, re.MULTILINE)
    assert found, output
    return Load(**json.loads(found[1]))


async def _by_own_client(url: str, bodies: Sequence[bytes], connections: int, seconds: float) -> Load:
    address = urlsplit(url)
    head = (
        f"POST {address.path} HTTP/1.1\r\nhost: {address.netloc}\r\ncontent-type: application/json\r\n"
        "accept: application/json\r\ncontent-length: "
    ).encode()
    requests = cycle([head + str(len(body)).encode() + b"\r\n\r\n" + body for body in bodies])
    began = time.perf_counter()
    end = began + seconds
    workers = [_connection(str(address.hostname), address.port or 80, requests, end) for _ in range(connections)]
    answered = [one for some in await asyncio.gather(*workers) for one in some]
    took = time.perf_counter() - began
    times = sorted(milliseconds for milliseconds, _ in answered)
    failed = sum(status != 200 for _, status in answered)
    return Load(len(times), took, failed, times[len(times) // 2], times[len(times) * 99 // 100])


async def _connection(host: str, port: int, requests: Iterator[bytes], end: float) -> list[tuple[float, int]]:
    """The milliseconds of each response, and its status."""
    reader, writer = await asyncio.open_connection(host, port)
    answered: list[tuple[float, int]] = []
    while (began := time.perf_counter()) < end or not answered:
        writer.write(next(requests))
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        assert length, "a response without its length"
        await reader.readexactly(int(length[1]))
        answered.append(((time.perf_counter() - began) * 1000, int(head.split(None, 2)[1])))
    writer.close()
    return answered
