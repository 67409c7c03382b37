"""Load generators: wrk if it is installed, or a client of our own.

Our client costs more CPU of the same cores, but waits for every response: wrk aborts the last requests when its time
is over, so their CPU time would be counted without them, which matters if there are few.
"""

import asyncio
import json
import math
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from urllib.parse import urlsplit

MAX_SECONDS = 300.0  # until the last response
SCRIPT = Path(__file__).with_name("wrk.lua")


@dataclass(frozen=True)
class Load:
    """Result of a run; times in milliseconds."""

    requests: int
    seconds: float
    failed: int
    p50: float
    p99: float


def send(
    url: str, bodies: Sequence[bytes], *, connections: int, seconds: float, to_the_end: bool = False, gzip: bool = False
) -> Load:
    """Post the bodies in turn over some connections; each sends its next request after the last response."""
    if shutil.which("wrk") and not to_the_end:
        return _by_wrk(url, bodies, connections, max(1, round(seconds)), gzip)
    return send_each(url, cycle(bodies), connections=connections, seconds=seconds, gzip=gzip)


def _by_wrk(url: str, bodies: Sequence[bytes], connections: int, seconds: int, gzip: bool) -> Load:
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"\n".join(bodies) + b"\n")
        file.flush()
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", str(SCRIPT), url]
        environment = {**os.environ, "BENCH_BODIES": file.name} | ({"BENCH_ACCEPTS": "gzip"} if gzip else {})
        output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    found = re.search(r"^TOLD (.*)$", output, re.MULTILINE)
    assert found, output
    return Load(**json.loads(found[1]))


def send_each(
    url: str, bodies: Iterable[bytes], *, connections: int, seconds: float = math.inf, gzip: bool = False
) -> Load:
    """Post each body once by our own client, until they or the seconds end."""
    return asyncio.run(_measured(url, iter(bodies), connections, seconds, gzip))


async def _measured(url: str, bodies: Iterator[bytes], connections: int, seconds: float, gzip: bool) -> Load:
    address = urlsplit(url)
    accepted = "accept-encoding: gzip\r\n" if gzip else ""
    head = (
        f"POST {address.path} HTTP/1.1\r\nhost: {address.netloc}\r\ncontent-type: application/json\r\n"
        f"accept: application/json\r\n{accepted}content-length: "
    ).encode()
    requests = (head + str(len(body)).encode() + b"\r\n\r\n" + body for body in bodies)
    began = time.perf_counter()
    end = began + seconds
    workers = [_connection(str(address.hostname), address.port or 80, requests, end) for _ in range(connections)]
    async with asyncio.timeout(MAX_SECONDS + (0 if math.isinf(seconds) else seconds)):
        answered = [one for some in await asyncio.gather(*workers) for one in some]
    took = time.perf_counter() - began
    times = sorted(milliseconds for milliseconds, _ in answered)
    failed = sum(not is_right for _, is_right in answered)
    return Load(len(times), took, failed, times[len(times) // 2], times[len(times) * 99 // 100])


async def _connection(host: str, port: int, requests: Iterator[bytes], end: float) -> list[tuple[float, bool]]:
    """The milliseconds of each response, and whether it is a result without errors."""
    reader, writer = await asyncio.open_connection(host, port)
    answered: list[tuple[float, bool]] = []
    for request in requests:
        began = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        assert length, "a response without its length"
        body = await reader.readexactly(int(length[1]))
        now = time.perf_counter()
        answered.append(((now - began) * 1000, head.split(None, 2)[1] == b"200" and b'"errors":' not in body))
        if now >= end:
            break
    writer.close()
    return answered
