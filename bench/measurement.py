"""One question put to many servers in turn, again and again, so that what disturbs the machine disturbs all alike."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from statistics import median

import orjson

from bench import clients, processes
from bench.places import Place
from bench.questions import MENU, Question, body, clade_id, peer_id, plain
from bench.servers import STATIC, Server
from bench.tree import Tree

MAIN = 8  # connections at which processor time is compared
WARM_SECONDS = 1.0
UNHURRIED_MS = 10.0  # from here on there are so few answers that those cut off at the end of a run would count
SLOW_MS = 150.0  # for one answer; whoever takes longer is asked over one connection only, where nothing queues up
CHECKED = 32  # of a question's different requests; the answers to all others are made the same way


@dataclass(frozen=True)
class Figures:
    """The medians of some runs: requests a second, milliseconds, and those of processor time for one request."""

    requests_a_second: float
    p50: float
    p99: float
    cpu: float
    cpu_behind: float | None = None


class Wrong(Exception):
    """An answer that is not what it must be."""


@dataclass(frozen=True)
class Asked:
    """A question as one server gets it."""

    server: Server
    question: Question
    bodies: Sequence[bytes]
    pace_ms: float = UNHURRIED_MS
    """How long one answer takes where nothing else is asked."""

    def run(self, connections: int, seconds: float) -> Figures:
        measured = [process for process in (self.server.process, self.server.behind) if process]
        before = [process.cpu_seconds() for process in measured]
        url, to_the_end = self.server.url(self.question), self.pace_ms >= UNHURRIED_MS
        load = clients.send(url, self.bodies, connections=connections, seconds=seconds, to_the_end=to_the_end)
        used = [process.cpu_seconds() - one for process, one in zip(measured, before, strict=True)]
        if load.failed or not load.requests:
            raise Wrong(f"{self.server.name}, {self.question.name}: {load.failed} of {load.requests} requests failed")
        own, *behind = [seconds * 1000 / load.requests for seconds in used]
        return Figures(load.requests / load.seconds, load.p50, load.p99, own, behind[0] if behind else None)


@dataclass(frozen=True)
class Schedule:
    """How long and how often is measured: `rounds` times at the main number of connections, once at the others."""

    seconds: float
    rounds: int
    connections: Sequence[int] = (MAIN,)


Results = dict[tuple[str, str, int], Figures]
"""Figures by the server's name, the question's, and the number of connections."""


def measure(
    servers: Sequence[Server],
    questions: Sequence[Question],
    right: "Right",
    schedule: Schedule,
    tell: Callable[[str], None],
) -> Results:
    """All servers with each question; raises Wrong for an answer of ours that is not right, others are left out."""
    results: Results = {}
    for question in questions:
        asked = [right.asked(server, question) for server in servers if question in server.questions]
        asked = [one for one in asked if _is_right(one, right, tell)]
        paced = [replace(one, pace_ms=one.run(1, WARM_SECONDS).p50) for one in asked]
        quick = [one for one in paced if one.pace_ms < SLOW_MS]
        slow = [one for one in paced if one.pace_ms >= SLOW_MS]
        for connections in schedule.connections:
            rounds = schedule.rounds if connections == MAIN else 1
            results |= _rounds(quick, rounds, connections, schedule.seconds)
        results |= _rounds(slow, schedule.rounds, 1, schedule.seconds)
        tell(f"{question.name} {question.what}: {len(asked)} servers measured")
        for one in asked:
            right.check(one)
    return results


def _is_right(asked: "Asked", right: "Right", tell: Callable[[str], None]) -> bool:
    try:
        right.check(asked)
    except Wrong as wrong:
        if not asked.server.is_peer:
            raise
        tell(str(wrong))
        return False
    return True


def _rounds(asked: Sequence["Asked"], rounds: int, connections: int, seconds: float) -> Results:
    """The medians of each; all run once in every round."""
    runs = [[one.run(connections, seconds) for one in _turned(asked, turn)] for turn in range(rounds)]
    return {
        (one.server.name, one.question.name, connections): middle(
            [run[(number - turn) % len(asked)] for turn, run in enumerate(runs)]
        )
        for number, one in enumerate(asked)
    }


def _turned(asked: Sequence[Asked], turn: int) -> Iterator[Asked]:
    """The same in another order each time: nobody is always the one after the heaviest."""
    for number in range(len(asked)):
        yield asked[(number + turn) % len(asked)]


def middle(runs: Sequence[Figures]) -> Figures:
    """The median of each figure by itself."""
    rates, p50s, p99s, cpus, behind = zip(*map(astuple, runs), strict=True)
    shared = None if None in behind else median(behind)
    return Figures(median(rates), median(p50s), median(p99s), median(cpus), shared)


@dataclass(frozen=True)
class Right:
    """The data that answers are checked against."""

    tree: Tree
    country: str
    menu: object = None

    def asked(self, server: Server, question: Question) -> Asked:
        return Asked(server, question, self.bodies(question, is_peer=server.is_peer))

    def bodies(self, question: Question, *, is_peer: bool = False) -> list[bytes]:
        return [body(question, place, is_peer=is_peer) for place in self._places(question)]

    def check(self, asked: Asked) -> None:
        """Raises Wrong unless the server answers as the data says; static bytes are right as they are."""
        if asked.server.name == STATIC:
            return
        identify = peer_id if asked.server.is_peer else clade_id
        for place, sent in list(zip(self._places(asked.question), asked.bodies, strict=True))[:CHECKED]:
            told = orjson.loads(processes.ask(asked.server.url(asked.question), sent))
            data: Mapping[str, object] = told.get("data") or {}
            found = plain(data.get("location" if place else "categories"))
            wanted = self.menu if place is None else self.tree.answer(asked.question, place, identify)
            if "errors" in told or found != wanted:
                raise Wrong(f"{asked.server.name}, {asked.question.name}: {str(told)[:500]} is not {str(wanted)[:500]}")

    def _places(self, question: Question) -> Sequence[Place | None]:
        return [None] if question is MENU else self.tree.asked(question, self.country)


def cpu(results: Results, server: str, question: str) -> Figures | None:
    """The figures whose processor time counts: at the main number of connections, or at one for a slow server."""
    return results.get((server, question, MAIN)) or results.get((server, question, 1))


def ratio(results: Results, question: str, one: str, other: str) -> float:
    """How many times the processor time of `one` that of `other` is; not a number where one is missing."""
    found = [cpu(results, name, question) for name in (one, other)]
    if found[0] is None or found[1] is None or not found[0].cpu:
        return math.nan
    return found[1].cpu / found[0].cpu
