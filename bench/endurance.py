"""Endurance test: mixed load on a server whose engine fails: python -m bench.endurance [SECONDS [OUTAGE]].

64 connections read and write through `clade serve` on a local DynamoDB; every response is compared with the
expected one. A proxy between server and engine disturbs one call in a hundred. With OUTAGE the engine is killed in the
middle instead, and restarted after so many seconds.
Needs an engine (CLADE_TEST_DYNOXIDE, or npm's @dynoxide/linux-x64 in tests/).
"""

import asyncio
import contextlib
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.processes import CLADE, Process
from graph.hierarchies.categories import CategoryNode
from store.connect import open_store
from tests import engines, proxy
from tests.connection import Answer, Connection, Lost
from tests.systems.asking import plant

CONNECTIONS = 64
WRITERS = 12
SHELVES, BOXES, THINGS = 6, 12, 6  # of what is only read
KEPT = 8  # nodes of each writer
WARM_UP = 0.2  # of the time
PAUSE_SECONDS = 0.05  # of a client that got an error, as clients do

MENU = "{ category(path: %s) { name children { nodes { key name children { nodes { key name revision } } } } } }"
PAGE = "{ category(path: %s) { descendants(first: 30, level: VARIANT) { nodes { path } pageInfo { hasNextPage } } } }"
UPWARDS = "{ variant(path: %s) { name ancestors { key level } parent { key childCount } } }"
OWN = "query Own($path: Path!) { category(path: $path) { childCount children { nodes { key name } } } }"
CREATE = """mutation Create($parent: Path!, $key: String!, $name: String!, $once: String!) {
  createCategoryNode(
    input: {parent: {path: $parent}, key: $key, name: $name, attributes: {product: {}}}, idempotencyKey: $once
  ) { node { path name } } }"""
UPDATE = """mutation Update($path: Path!, $name: String!, $once: String!) {
  updateCategoryNode(input: {node: {path: $path}, name: $name}, idempotencyKey: $once) { node { path name } } }"""
DELETE = """mutation Delete($path: Path!, $once: String!) {
  deleteCategoryNode(input: {node: {path: $path}}, idempotencyKey: $once) { node { path name } } }"""


@dataclass
class Report:
    """Results: time and duration of each correct response, those with errors, and wrong responses."""

    answers: list[tuple[float, float]] = field(default_factory=list)
    errors: list[tuple[float, float, str]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    writes: int = 0
    warm_mb: float = 0.0
    end_mb: float = 0.0
    back_at: float = 0.0

    def milliseconds(self, share: float) -> float:
        """The duration at a quantile of all correct responses."""
        times = sorted(seconds for _, seconds in self.answers)
        return times[int(len(times) * share)] * 1000

    @property
    def codes(self) -> Counter[str]:
        return Counter(code for _, _, code in self.errors)

    @property
    def recovered_seconds(self) -> float:
        """Seconds between the restart of the engine and the last error."""
        return max([at - self.back_at for at, _, _ in self.errors if at > self.back_at], default=0.0)

    def rate(self, begin: float, end: float) -> float:
        """Correct responses a second between two times."""
        return sum(begin <= at < end for at, _ in self.answers) / (end - begin)


class Flaky(proxy.Proxy):
    """Proxy that disturbs a percentage of the calls and records none."""

    percent = 1.0

    def fault_for(self, call: proxy.Call) -> proxy.Fault:
        self.calls.clear()
        if random.random() * 100 >= self.percent:
            return super().fault_for(call)
        return random.choice(FAULTS)


FAULTS = [
    proxy.throttled, proxy.refused("InternalServerError", 500), proxy.status(503), proxy.dropped, proxy.answer_dropped,
    proxy.delayed(0.5),
]  # fmt: skip


async def endure(seconds: float, folder: Path, *, outage: float = 0.0, **settings: str) -> Report:
    """Run the load for some seconds; with an `outage` the engine is down for as many, from a third of the time on."""
    engine = engines.find(folder / "engine.db")
    report = Report()
    with engine:
        async with open_store(engine.address("clade")) as store:
            await store.create()
            await plant(store, CategoryNode, list(_rows()))
        async with _front(engine, disturbed=not outage) as address:
            environment = {"CLADE_STORE": address, "CLADE_WRITES": "on", "CLADE_LOG_LEVEL": "warning", **settings}
            port = engines.free_port()
            server = Process((*CLADE, "serve", "--port", str(port)), f"http://127.0.0.1:{port}/graphql", environment)
            await asyncio.to_thread(server.__enter__)
            try:
                await _load(f"http://127.0.0.1:{port}", server, engine, seconds, outage, report)
            finally:
                server.__exit__()
    return report


async def _load(
    url: str, server: Process, engine: engines.Engine, seconds: float, outage: float, report: Report
) -> None:
    expected = await _expected(url)
    end = time.monotonic() + seconds
    readers = [_read(url, expected, end, report) for _ in range(CONNECTIONS - WRITERS)]
    clients = [asyncio.create_task(one) for one in [*readers, *(_write(url, n, end, report) for n in range(WRITERS))]]
    await asyncio.sleep(seconds * WARM_UP)
    report.warm_mb = server.memory_mb()
    if outage:
        await asyncio.sleep(seconds * (1 / 3 - WARM_UP))
        assert engine.process is not None
        engine.process.kill()
        engine.process.wait()
        await asyncio.sleep(outage)
        await asyncio.to_thread(engine.start)
        report.back_at = time.monotonic()
    await asyncio.gather(*clients)
    report.end_mb = server.memory_mb()


@contextlib.asynccontextmanager
async def _front(engine: engines.Engine, *, disturbed: bool) -> AsyncIterator[str]:
    """The URL of the store, through the proxy or not."""
    if not disturbed:
        yield engine.address("clade")
        return
    async with Flaky(engine.url) as front:
        yield f"dynamodb://clade?region=eu-west-1&endpoint={front.url}"


def _rows() -> list[tuple[tuple[str, ...], str]]:
    rows: list[tuple[tuple[str, ...], str]] = []
    for shelf in range(SHELVES):
        rows.append(((f"s{shelf}",), "CATEGORY"))
        for box in range(BOXES):
            rows.append(((f"s{shelf}", f"b{box:02}"), "PRODUCT"))
            rows += [((f"s{shelf}", f"b{box:02}", f"t{thing}"), "VARIANT") for thing in range(THINGS)]
    return rows + [((f"w{writer}",), "CATEGORY") for writer in range(WRITERS)]


async def _expected(url: str) -> dict[str, Any]:
    """The queries for the nodes that nobody writes to, with their checked responses."""
    queries = [query % f'"s{shelf}"' for query in (MENU, PAGE) for shelf in range(SHELVES)]
    queries += [UPWARDS % f'"s{n % SHELVES}/b{n:02}/t{n % THINGS}"' for n in range(BOXES)]
    found: dict[str, Any] = {}
    async with await Connection.to(url) as connection:
        for query in queries:
            while "errors" in (answer := (await connection.ask(query)).json):
                pass
            found[query] = answer
    for shelf in range(SHELVES):
        boxes = found[MENU % f'"s{shelf}"']["data"]["category"]["children"]["nodes"]
        assert [len(box["children"]["nodes"]) for box in boxes] == [THINGS] * BOXES
    return found


async def _asked(url: str, report: Report, query: str, **variables: Any) -> Answer | None:
    """A correct response; None if it has errors that a fault explains. Any other response is wrong."""
    began = time.monotonic()
    try:
        async with await Connection.to(url) as connection:
            answer = await connection.ask(query, **variables)
    except (Lost, OSError):
        report.wrong.append("a connection was lost")
        return None
    now = time.monotonic()
    errors = answer.json.get("errors", ())
    if not errors:
        report.answers.append((now, now - began))
        return answer
    code = errors[0]["extensions"]["code"]
    report.errors.append((now, now - began, code))
    if code not in ("UNAVAILABLE", "TIMEOUT", "CONFLICT"):
        report.wrong.append(str(errors[0]))
    await asyncio.sleep(PAUSE_SECONDS)
    return None


async def _read(url: str, expected: dict[str, Any], end: float, report: Report) -> None:
    while time.monotonic() < end:
        query = random.choice(list(expected))
        answer = await _asked(url, report, query)
        if answer is not None and answer.json != expected[query]:
            report.wrong.append(f"{query}: {answer.body[:300]!r}")


async def _write(url: str, number: int, end: float, report: Report) -> None:
    """Create, rename and delete nodes below a node of this client, and check all of them after each."""
    top, names, count = f"w{number}", dict[str, str](), 0
    while time.monotonic() < end:
        count += 1
        once = f"{number}-{count}"
        if len(names) >= KEPT:
            key = random.choice(list(names))
            made = await _done(url, report, DELETE, path=f"{top}/{key}", once=once)
            del names[key]
        elif names and random.random() < 0.5:
            key = random.choice(list(names))
            names[key] = f"name {count}"
            made = await _done(url, report, UPDATE, path=f"{top}/{key}", name=names[key], once=once)
        else:
            key = f"p{count:06}"
            names[key] = f"name {count}"
            made = await _done(url, report, CREATE, parent=top, key=key, name=names[key], once=once)
        if made["node"]["path"] != f"{top}/{key}":
            report.wrong.append(f"{once}: {made}")
        report.writes += 1
        answer = await _asked(url, report, OWN, path=top)
        if answer is not None:
            own = answer.json["data"]["category"]
            found = {node["key"]: node["name"] for node in own["children"]["nodes"]}
            if found != names or own["childCount"] != len(names):
                report.wrong.append(f"{top}: {found} instead of {names}")


async def _done(url: str, report: Report, mutation: str, **variables: Any) -> Any:
    """The payload of a mutation, which is sent with its idempotency key until it succeeds."""
    while (answer := await _asked(url, report, mutation, **variables)) is None:
        pass
    (payload,) = answer.json["data"].values()
    return payload


def summary(report: Report, seconds: float) -> str:
    errors = ", ".join(f"{count} {code}" for code, count in report.codes.most_common()) or "none"
    slowest = max([took for _, took in report.answers] + [took for _, took, _ in report.errors])
    lines = [
        f"{len(report.answers):,} correct responses in {seconds:.0f} s over {CONNECTIONS} connections, "
        f"{report.writes:,} changes among them",
        f"errors: {errors}; wrong: {len(report.wrong)} {report.wrong[:3]}",
        f"p50 {report.milliseconds(0.5):.0f} ms, p99 {report.milliseconds(0.99):.0f} ms, slowest {slowest:.1f} s",
        f"memory {report.warm_mb:.1f} MB after warming up, {report.end_mb:.1f} MB at the end",
    ]
    if report.back_at:
        before = report.rate(report.answers[0][0], report.answers[0][0] + seconds / 4)
        after = report.rate(report.back_at + 5, report.back_at + 5 + seconds / 4)
        lines.append(
            f"the last error came {report.recovered_seconds:.1f} s after the engine was back; "
            f"{before:.0f} answers/s before, {after:.0f} from 5 s after it on; slowest error "
            f"{max([took for _, took, _ in report.errors], default=0.0):.1f} s"
        )
    return "\n".join(lines)


def main(seconds: float, outage: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        print(summary(asyncio.run(endure(seconds, Path(folder), outage=outage)), seconds))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 300.0, float(sys.argv[2]) if len(sys.argv) > 2 else 0.0)
