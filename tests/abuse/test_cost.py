"""No request that a server accepts by default costs more than the bounds.

A plain run asserts what requests read and return. Time and memory depend on the machine: a thorough run asserts them.
"""

import asyncio
import json
import multiprocessing
import resource
import time
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import orjson
import pytest
from graphql import parse

from resolvers.session.budget import BudgetLimits
from store.engine.usage import PAGE_UNITS, REQUESTS_A_UNIT
from tests import selection
from tests.abuse import costly_nodes
from tests.abuse.costly_requests import TRUSTED, Body, requests
from tests.servers import Server

NODES, ENGINE_NODES = 10_000, 4_400  # an engine on this machine takes its time to be filled
TICK_SECONDS = 0.005
MEMORY_LIMIT_BYTES = 6 * 1024**3
WARM = 'location(path: "%s") { ancestors { id } descendants(first: 2) { nodes { id history { totalCount } } } }'
REFUSED = dict.fromkeys([
    "representations that are lists", "many unknown fields", "many directives", "long number", "deep braces",
    "deep lists", "large node many times", "large nodes many times", "ids of no nodes", "unknown value in every list",
    "more orders of many lists", "more alternatives", "nested conditions", "more paths",
], 400) | {"long text": 413}  # fmt: skip
COUNTED = {
    "answer_bytes": 20_000_000,
    "units": BudgetLimits.read_units + 4 * PAGE_UNITS,  # a gateway's 1,000 entities take 1,502; some are under way
    "requests": BudgetLimits.read_units * REQUESTS_A_UNIT + 32,  # which are under way
}
MEASURED = COUNTED | {"cpu": 1.8, "blocked": 0.3, "peak_mb": 100}  # others use the same cores
REFUSAL_CPU_SECONDS = 0.1
TIMED = {"cpu", "blocked"}
PARSING_SECONDS = 0.020  # of DOCUMENT, up to which the bounds of time have room; a slower machine gets more
DOCUMENT = "{ location { " + " ".join(f"nothing{number}" for number in range(1_500)) + " } }"
_CPU_CLOCK = 2  # of a process as a whole, in Linux's numbers for the clocks of others


class Cost(NamedTuple):
    """The cost of a request; `blocked` is the longest CPU time of the event loop's thread without yielding."""

    status: int
    answer_bytes: int
    requests: int
    units: float
    cpu: float
    blocked: float
    peak_mb: float

    def over(self, bounds: dict[str, float], slowness: float = 1.0) -> list[str]:
        """The bounds that do not hold."""
        if self.status >= 400 and "cpu" in bounds:
            bounds = bounds | {"cpu": REFUSAL_CPU_SECONDS}
        bounds = {name: bound * slowness if name in TIMED else bound for name, bound in bounds.items()}
        return [name for name, bound in bounds.items() if getattr(self, name) > bound]


class Meter:
    """A server with default settings, which is sent one request at a time."""

    def __init__(self, server: Server, blocked: Any) -> None:
        self._server, self._blocked = server, blocked
        self._client = httpx.Client(timeout=600)

    def measure(self, body: Body) -> Cost:
        pid = self._server.pid
        Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak of its memory begins anew
        self._blocked.value, cpu, memory = 0.0, cpu_seconds(pid), memory_mb(pid, "VmRSS")
        headers = {"clade-reads": "1", "accept": "application/graphql-response+json"}
        answer = self._client.post(f"{self._server.url}/graphql", json=body, headers=headers)
        time.sleep(2 * TICK_SECONDS)  # the tick after the response has the time that was blocked until then
        used, peak = cpu_seconds(pid) - cpu, memory_mb(pid, "VmHWM") - memory
        reads = orjson.loads(answer.content).get("extensions", {}).get("reads", {"requests": 0, "units": 0.0})
        figures = (reads["requests"], reads["units"], used, self._blocked.value, peak)
        return Cost(answer.status_code, len(answer.content), *figures)


def cpu_seconds(pid: int) -> float:
    return time.clock_gettime((~pid << 3) | _CPU_CLOCK)


def memory_mb(pid: int, what: str) -> float:
    (line,) = [one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith(f"{what}:")]
    return int(line.split()[1]) / 1024


def watch(blocked: Any) -> None:
    """Make `clade serve` in this process tell how long its event loop is blocked, and limit its memory.

    A timer that is due every few milliseconds sees how much CPU the loop's thread took meanwhile: that is what a
    computation blocks, also on a machine that is busy with others.
    """
    from commands.serving import workers

    make = workers.worker_app
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))

    def tick(before: float) -> None:
        now = time.thread_time()
        blocked.value = max(blocked.value, now - before)
        asyncio.get_running_loop().call_later(TICK_SECONDS, tick, now)

    def app() -> Any:
        made = make()

        async def watched(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "lifespan":
                tick(time.thread_time())
            await made(scope, receive, send)

        return watched

    workers.worker_app = app


def slowness() -> float:
    """How many times longer than PARSING_SECONDS this machine takes for the same computation now; at least 1."""

    def seconds() -> float:
        began = time.thread_time()
        parse(DOCUMENT)
        return time.thread_time() - began

    return max(1.0, min(seconds() for _ in range(5)) / PARSING_SECONDS)


def metered(folder: Path, store: str, nodes: int) -> Iterator[Meter]:
    """The meter of a server on a new store with so many nodes in the tree WIDE."""
    asyncio.run(costly_nodes.fill(store, nodes))
    trusted, blocked = folder / "trusted.json", multiprocessing.get_context("forkserver").RawValue("d")
    trusted.write_text(json.dumps(TRUSTED))
    whole = {} if selection.thorough() else {"request_seconds": "600"}  # what is counted is counted to its end
    settings = {"store": store, "writes": "on", "trusted_documents": str(trusted), "trusted_mode": "prefer", **whole}
    server = Server(folder, "server", **settings)
    with asyncio.Runner() as runner:
        runner.run(server.start(partial(watch, blocked)))
        costly_nodes.age(f"{server.url}/graphql")
        meter = Meter(server, blocked)
        for path in ("C000", "nowhere"):  # loads all modules
            meter.measure({"query": "{ " + WARM % path + " }"})
        yield meter
        runner.run(server.close())


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cost")
    yield from metered(folder, f"sqlite:///{folder / 'clade.db'}", NODES)


@pytest.fixture(scope="module")
def dynamodb(tmp_path_factory, engine):
    if not engine.exact:
        pytest.skip(f"{engine.name} tells no read units")
    yield from metered(tmp_path_factory.mktemp("cost"), engine.address(f"clade-cost-{uuid.uuid4().hex}"), ENGINE_NODES)


@pytest.mark.parametrize("name", requests())
def test_requests_keep_the_bounds_of_what_is_counted(sqlite, name):
    cost = sqlite.measure(requests()[name])
    assert cost.over(COUNTED) == [], cost
    assert cost.status == REFUSED.get(name, 200)
    assert cost.requests == 0 or name not in REFUSED


@pytest.mark.thorough
@pytest.mark.parametrize("name", requests())
@pytest.mark.parametrize("store", ["sqlite", "dynamodb"])
def test_requests_keep_the_bounds_of_time_and_memory(request, store, name):
    meter = request.getfixturevalue(store)
    for _ in range(2):  # the second time with what was cached, whose keys are compared
        cost = meter.measure(requests()[name])
        over = cost.over(MEASURED)
        if over and TIMED.issuperset(over):  # others use the machine as well
            cost = meter.measure(requests()[name])
            over = cost.over(MEASURED, slowness())
        assert over == [], cost


def test_what_is_past_a_bound_is_named():
    cost = Cost(200, 100, 1, 0.5, 0.01, 0.01, 1.0)
    assert cost.over(MEASURED) == []
    for name, bound in MEASURED.items():
        assert cost._replace(**{name: 1.1 * bound}).over(MEASURED) == [name]
    assert cost._replace(status=400, cpu=0.2).over(MEASURED) == ["cpu"]
