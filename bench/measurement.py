"""Measurement: one query to many servers in turn, several times, so that other load affects all alike."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from statistics import median

import orjson

from bench import clients, processes
from bench.places import Place
from bench.queries import MENU, PLACES, Query, body, clade_id, peer_id, plain
from bench.servers import STATIC, Server
from bench.tree import Tree

MAIN = 8  # connections at which processor time is compared
WARM_SECONDS = 1.0
UNHURRIED_MS = 10.0  # from here on there are so few responses that those aborted at the end of a run would count
SLOW_MS = 150.0  # for one response; slower servers get one connection only, without a queue
CHECKED = 32  # of the different requests of a query


@dataclass(frozen=True)
class Figures:
    """The figures of a run: requests a second, milliseconds, and those of processor time for one request."""

    requests_a_second: float
    p50: float
    p99: float
    cpu: float
    cpu_behind: float | None = None


class WrongResponse(Exception):
    """A response differs from the expected one."""


@dataclass(frozen=True)
class Workload:
    """A query with its requests to one server."""

    server: Server
    query: Query
    bodies: Sequence[bytes]
    pace_ms: float = UNHURRIED_MS
    """The time of one response without other load."""

    def run(self, connections: int, seconds: float) -> Figures:
        measured = [process for process in (self.server.process, self.server.behind) if process]
        before = [process.cpu_seconds() for process in measured]
        url, to_the_end = self.server.url(self.query), self.pace_ms >= UNHURRIED_MS
        given = {"seconds": seconds, "to_the_end": to_the_end, "gzip": self.server.gzip}
        load = clients.send(url, self.bodies, connections=connections, **given)
        used = [process.cpu_seconds() - one for process, one in zip(measured, before, strict=True)]
        if load.failed or not load.requests:
            failed = f"{load.failed} of {load.requests} requests failed"
            raise WrongResponse(f"{self.server.name}, {self.query.name}: {failed}")
        own, *behind = [seconds * 1000 / load.requests for seconds in used]
        return Figures(load.requests / load.seconds, load.p50, load.p99, own, behind[0] if behind else None)


@dataclass(frozen=True)
class Schedule:
    """Duration and number of runs: `rounds` at the main number of connections, one at the others."""

    seconds: float
    rounds: int
    connections: Sequence[int] = (MAIN,)


Results = dict[tuple[str, str, int], list[Figures]]
"""The figures of each run, by name of the server, name of the query, and number of connections."""


def measure(
    servers: Sequence[Server],
    queries: Sequence[Query],
    expected: "ExpectedData",
    schedule: Schedule,
    tell: Callable[[str], None],
) -> Results:
    """Measure all servers with each query. Raises WrongResponse for one of Clade; other servers are then left out."""
    results: Results = {}
    for query in queries:
        workloads = [expected.workload(server, query) for server in servers if query in server.queries]
        workloads = [one for one in workloads if _is_right(one, expected, tell)]
        paced = [replace(one, pace_ms=one.run(1, WARM_SECONDS).p50) for one in workloads]
        quick = [one for one in paced if one.pace_ms < SLOW_MS]
        slow = [one for one in paced if one.pace_ms >= SLOW_MS]
        for connections in schedule.connections:
            rounds = schedule.rounds if connections == MAIN else 1
            results |= _rounds(quick, rounds, connections, schedule.seconds)
        results |= _rounds(slow, schedule.rounds, 1, schedule.seconds)
        tell(f"{query.name} {query.what}: {len(workloads)} servers measured")
        for one in workloads:
            expected.check(one)
    return results


def _is_right(workload: "Workload", expected: "ExpectedData", tell: Callable[[str], None]) -> bool:
    try:
        expected.check(workload)
    except WrongResponse as wrong:
        if not workload.server.is_peer:
            raise
        tell(str(wrong))
        return False
    return True


def _rounds(workloads: Sequence["Workload"], rounds: int, connections: int, seconds: float) -> Results:
    """All run once in every round, in another order each time: none always follows the heaviest."""
    results: Results = {(one.server.name, one.query.name, connections): [] for one in workloads}
    for turn in range(rounds):
        start = turn % max(1, len(workloads))
        for one in (*workloads[start:], *workloads[:start]):
            results[one.server.name, one.query.name, connections].append(one.run(connections, seconds))
    return results


def middle(runs: Sequence[Figures]) -> Figures:
    """The median of each figure by itself."""
    rates, p50s, p99s, cpus, behind = zip(*map(astuple, runs), strict=True)
    shared = None if None in behind else median(behind)
    return Figures(median(rates), median(p50s), median(p99s), median(cpus), shared)


@dataclass(frozen=True)
class ExpectedData:
    """The data that responses are checked against."""

    tree: Tree
    country: str
    menu: object = None

    def workload(self, server: Server, query: Query) -> Workload:
        return Workload(server, query, self.bodies(query, is_peer=server.is_peer))

    def bodies(self, query: Query, *, is_peer: bool = False) -> list[bytes]:
        return [body(query, place, is_peer=is_peer) for place in self._places(query)]

    def check(self, workload: Workload) -> None:
        """Raise WrongResponse unless the server returns the data, or no error for an unknown query.

        Static bytes are not checked.
        """
        if workload.server.name == STATIC:
            return
        identify = peer_id if workload.server.is_peer else clade_id
        for place, sent in list(zip(self._places(workload.query), workload.bodies, strict=True))[:CHECKED]:
            response = orjson.loads(processes.ask(workload.server.url(workload.query), sent))
            data: Mapping[str, object] = response.get("data") or {}
            found = plain(data.get("location" if place else "categories"))
            expected = found
            if workload.query in (*PLACES, MENU):
                expected = self.menu if place is None else self.tree.expected(workload.query, place, identify)
            if "errors" in response or found != expected:
                difference = f"{str(response)[:500]} is not {str(expected)[:500]}"
                raise WrongResponse(f"{workload.server.name}, {workload.query.name}: {difference}")

    def _places(self, query: Query) -> Sequence[Place | None]:
        return [None] if query is MENU else self.tree.places_of(query, self.country)


def cpu(results: Results, server: str, query: str) -> list[Figures]:
    """The runs whose processor time counts: at the main number of connections, or at one for a slow server."""
    return results.get((server, query, MAIN)) or results.get((server, query, 1)) or []


def ratio(runs: Sequence[Figures], others: Sequence[Figures]) -> float:
    """The median of the ratios of each round, processor time of `others` to that of `runs`; NaN if one is missing."""
    return median([other.cpu / one.cpu for one, other in zip(runs, others, strict=False)] or [math.nan])
