"""Graceful shutdown: a server that stops under load loses no accepted request."""

import asyncio
import json
import re
import signal
import sqlite3

import httpx
import pytest

from store.connect import open_store
from tests.connection import Connection
from tests.processes import status_of
from tests.servers import served
from tests.waiting import eventually

CLIENTS = 16
SHOP = {"origin": "https://shop.example"}
QUERY = '{ city(path: "US/NE/Omaha") { name children { nodes { name } } } }'
START_SECONDS = 60


async def ask_on(url, answers_before, until_told):
    """Ask over one connection until the server closes it politely, as a load balancer does: how many were answered.

    `answers_before` gets an item for each answer that comes before the server is told to stop.
    """
    answered = 0
    async with await Connection.to(url) as connection:
        while True:
            answer = await connection.ask(QUERY)  # raises Lost
            assert answer.status == 200
            assert answer.json["data"]["city"]["name"] == "Omaha"
            answered += 1
            if answer.is_last:
                assert until_told.is_set()
                return answered
            answers_before.release()


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.thorough)])
async def test_no_request_is_lost_when_a_server_is_stopped_under_load(tmp_path, demo_store, workers):
    settings = {"CLADE_DRAIN_SECONDS": "600", "CLADE_CACHE_MB": "0", "CLADE_CORS_ORIGINS": SHOP["origin"]}
    with served(tmp_path, demo_store, "--workers", str(workers), **settings) as (url, process):
        told, begun = asyncio.Event(), [asyncio.Semaphore(0) for _ in range(CLIENTS)]
        clients = [asyncio.create_task(ask_on(url, one, told)) for one in begun]
        async with asyncio.timeout(START_SECONDS):
            for answers_before in (*begun, *begun):  # each client has two
                await answers_before.acquire()
            told.set()
            process.send_signal(signal.SIGTERM)
            answered = await asyncio.gather(*clients)
        ready, alive = [
            await asyncio.to_thread(httpx.get, url + path, headers=SHOP) for path in ("/readyz", "/healthz")
        ]
        assert (ready.status_code, alive.status_code) == (503, 200)
        assert ready.headers["access-control-allow-origin"] == SHOP["origin"]
        if workers == 1:
            process.send_signal(signal.SIGTERM)  # the second one ends the wait for balancers
        else:
            process.kill()  # the parent, without which workers get their second one
        await asyncio.to_thread(process.wait, START_SECONDS)
        await asyncio.to_thread(until_refused, url)
    said = (tmp_path / "said.txt").read_text()
    assert said.count('"/graphql"') == sum(answered)  # the log has lost none either
    assert "Traceback" not in said
    if workers == 1:
        ((number, _, seconds),) = stops(said)
        assert (number, seconds) == (process.pid, 600)


def stops(said):
    """The processes that say how they stop, each twice and at the level info: process, requests running, seconds."""
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    begins, ends = [
        {line["process"]: line for line in lines if line["message"] == message}
        for message in ("The server is stopping.", "The server has stopped.")
    ]
    assert begins.keys() == ends.keys()
    assert {line["level"] for line in (*begins.values(), *ends.values())} == {"info"}
    assert {line["cancelled"] for line in ends.values()} == {0}
    return [(process, line["running"], line["drain_seconds"]) for process, line in begins.items()]


async def begin(connection, length, more=""):
    """Send the head of a request, and return as soon as the server runs it and asks for the body."""
    connection.begin(length, f"expect: 100-continue\r\n{more}")
    assert (await connection.answer()).status == 100


@pytest.mark.thorough
async def test_stopping_workers_accept_no_connections_while_one_still_answers(tmp_path, demo_store):
    with served(tmp_path, demo_store, "--workers", "2", CLADE_DRAIN_SECONDS="0.5") as (url, process):
        async with await Connection.to(url) as connection:
            body = b'{"query": "{ __typename }"}'
            await begin(connection, len(body))
            process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(until_refused, url)
            assert process.poll() is None
            connection.writer.write(body)  # what was taken before is finished
            answer = await connection.answer()
            assert (answer.status, answer.json) == (200, {"data": {"__typename": "Query"}})
        await asyncio.to_thread(process.wait, START_SECONDS)
    assert [seconds for *_, seconds in stops((tmp_path / "said.txt").read_text())] == [0.5, 0.5]


def until_refused(url):
    """Wait until nobody can connect to the server any more."""
    eventually(lambda: status_of(f"{url}/healthz") is None)


@pytest.mark.thorough
async def test_a_request_that_does_not_end_in_time_is_cancelled_with_503(tmp_path, demo_store):
    settings = {"CLADE_DRAIN_SECONDS": "0", "CLADE_STOP_SECONDS": "1", "CLADE_REQUEST_SECONDS": "60"}
    settings |= {"CLADE_CORS_ORIGINS": SHOP["origin"], "CLADE_LOG_FORMAT": "text"}
    with served(tmp_path, demo_store, **settings) as (url, process):
        async with await Connection.to(url) as connection:
            await begin(connection, 100, f"origin: {SHOP['origin']}\r\n")  # and no body ever comes
            process.send_signal(signal.SIGTERM)
            answer = await connection.answer()
        assert (answer.status, answer.is_last) == (503, True)
        assert answer.json["errors"][0]["extensions"] == {"code": "UNAVAILABLE"}
        assert answer.headers["access-control-allow-origin"] == SHOP["origin"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        await asyncio.to_thread(process.wait, START_SECONDS)
    said = (tmp_path / "said.txt").read_text()
    assert re.search(rf"info The server is stopping\. process={process.pid} drain_seconds=0\.0 running=[01]\n", said)
    assert f"info The server has stopped. process={process.pid} cancelled=1\n" in said
    assert "Traceback" not in said
    assert "Exception" not in said


@pytest.mark.thorough
async def test_a_cancelled_mutation_has_an_unknown_outcome(tmp_path):
    async with open_store(f"sqlite:///{tmp_path / 'clade.db'}") as store:
        await store.create()
    settings = {"CLADE_DRAIN_SECONDS": "0", "CLADE_STOP_SECONDS": "1", "CLADE_WRITES": "on"}
    query = (
        'mutation { createCategoryNode(input: {key: "a", name: "a", attributes: {category: {}}}) { node { path } } }'
    )
    with served(tmp_path, f"sqlite:///{tmp_path / 'clade.db'}", **settings) as (url, process):
        other = sqlite3.connect(tmp_path / "clade.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        async with await Connection.to(url) as connection:
            body = json.dumps({"query": query}).encode()
            await begin(connection, len(body))
            connection.writer.write(body)
            process.send_signal(signal.SIGTERM)
            answer = await connection.answer()
        other.close()
        (error,) = answer.json["errors"]
        assert (answer.status, error["extensions"]) == (503, {"code": "UNAVAILABLE", "uncertain": True})
        assert "idempotencyKey" in error["message"]


@pytest.mark.thorough
@pytest.mark.parametrize("sent", [[signal.SIGINT], [signal.SIGTERM, signal.SIGTERM]], ids=["ctrl-c", "twice"])
def test_ctrl_c_or_a_second_signal_stops_a_server_at_once_also_with_idle_connections(tmp_path, demo_store, sent):
    settings = {"CLADE_DRAIN_SECONDS": "600", "CLADE_STOP_SECONDS": "600"}
    with served(tmp_path, demo_store, **settings) as (url, process), httpx.Client() as client:
        assert client.get(f"{url}/healthz").status_code == 200
        for number in sent:
            process.send_signal(number)
            while number == signal.SIGTERM and process.poll() is None and client.get(f"{url}/readyz").is_success:
                pass
        process.wait(START_SECONDS)
