"""Circuit breaker of a server: it opens when DynamoDB does not respond, and metrics and alarms show it."""

import asyncio
import re
from pathlib import Path

import httpx
import pytest

from tests import waiting
from tests.commands.test_metrics import scraped, until
from tests.ports import free_port
from tests.proxy import Fault, Proxy, mute, raw, slow, status
from tests.servers import served
from tests.tables import empty

PAGE = (Path(__file__).parents[2] / "docs" / "operation.md").read_text("utf-8")
QUERY = {"query": '{ location(path: "US") { name } }'}
REQUEST_SECONDS = 1.5
CALLS = 6  # one more than open the circuit
NOTHING = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"  # JSON that is no response of DynamoDB


async def ask(client: httpx.AsyncClient) -> set[str]:
    """The codes of the errors of a query."""
    answer = await client.post("/graphql", json=QUERY)
    return {error["extensions"]["code"] for error in answer.json().get("errors", ())}


@pytest.mark.thorough
async def test_missing_and_invalid_responses_open_the_circuit_breaker(tmp_path: Path) -> None:
    assert re.search(r"`clade_store_silent` > 0 for a minute", PAGE)
    address = f"127.0.0.1:{free_port()}"
    settings = {"CLADE_METRICS": address, "CLADE_REQUEST_SECONDS": f"{REQUEST_SECONDS}"}
    async with Proxy(usual=empty) as engine:
        server = served(tmp_path, f"dynamodb://clade?region=eu-west-1&endpoint={engine.url}", **settings)
        url, _ = await asyncio.to_thread(server.__enter__)
        try:
            async with httpx.AsyncClient(base_url=url, timeout=60) as client:
                for fault in (mute, slow, status(200), status(502), raw(NOTHING), raw(b"220 mail.example ESMTP\r\n")):
                    await check(engine, fault, client, address)
        finally:
            await asyncio.to_thread(server.__exit__, None, None, None)


async def is_skipped(engine: Proxy, client: httpx.AsyncClient) -> bool:
    """Whether a query fails without a call to the engine."""
    calls = len(engine.calls)
    return await ask(client) == {"UNAVAILABLE"} and len(engine.calls) == calls


async def check(engine: Proxy, fault: Fault, client: httpx.AsyncClient, address: str) -> None:
    assert await ask(client) == set()
    before = await asyncio.to_thread(scraped, address)
    engine.usual = fault
    told = set().union(*await asyncio.gather(*[ask(client) for _ in range(CALLS)]))
    assert told <= {"TIMEOUT", "UNAVAILABLE"}, fault
    assert any([await is_skipped(engine, client) for _ in range(3)]), fault
    skipped, failed = before["clade_store_skipped_total",], before["clade_store_failures_total",]
    found = await asyncio.to_thread(
        until, address, skipped.__lt__, "clade_store_skipped_total"
    )  # looked at each second
    assert found["clade_store_failures_total",] - failed >= CALLS - 1, fault
    assert found["clade_store_silent",] == 1.0
    engine.usual = empty

    async def is_well() -> bool:  # one a second looks again
        return not await ask(client)

    await waiting.until(is_well, 20)
    await asyncio.to_thread(until, address, (0.0).__eq__, "clade_store_silent")
