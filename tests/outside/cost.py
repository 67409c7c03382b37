"""Cost of one request: every list and input object of every field, filled to its bound and beyond it."""

import contextlib
import itertools
import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphql import (
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputObjectType,
    GraphQLList,
    GraphQLSchema,
    build_schema,
    get_named_type,
    get_nullable_type,
    is_leaf_type,
)

from tests.outside.failures import Wrong
from tests.outside.parts import Part
from tests.outside.processes import Place, Server, import_things, on_things
from tests.processes import Answer, status_of

NODES = 3000
CPU_SECONDS, BLOCKED_SECONDS, MEGABYTES = 1.0, 0.5, 100.0
CPU_OF_A_NODE = 0.0003  # seconds for each object of the response
CPU_OF_20_MB = 2.0  # which one transaction of SQLite moves, of one edit or of several
UNITS = 2000 * 1.2  # docs/security.md; "reads in progress still count"
BODY = 225_000
POLL_SECONDS = 0.02
LITERALS = 1800  # of the 2,000 tokens of a document
BOUNDS = {"orderBy": 4, "languages": 20, "level": 2, "paths": 1000, "ids": 1000, "representations": 1000,
          "names": 50, "in": 100, "and": 50, "or": 50, "edits": 100}  # fmt: skip
_made: dict[tuple[str, str, int], list[Any]] = {}
PROMISES = (
    ("security.md", "Arguments are bounded before they are processed"),
    ("security.md", "Computation yields"),
    ("security.md", "at most 0.5 s of processor time, 0.1 s in which the event loop is blocked, 100 MB of memory"),
    ("security.md", "read units; requests to the store; both including counts and lookups"),
)  # fmt: skip


@dataclass(frozen=True)
class Request:
    """A request with the place and the form of the argument that it fills."""

    label: str
    query: str
    variables: dict[str, Any]


@dataclass(frozen=True)
class Cost:
    """What one request took."""

    request: Request
    answer: Answer
    cpu: float
    blocked: float
    megabytes: float
    units: float
    objects: int

    @property
    def excess(self) -> str | None:
        """The bound that it exceeds."""
        allowed = CPU_SECONDS + self.objects * CPU_OF_A_NODE
        if " moves of the root" in self.request.label or " moves there" in self.request.label:
            allowed += CPU_OF_20_MB
        if "INTERNAL_SERVER_ERROR" in self.answer.codes or self.answer.status >= 500:
            return f"an internal error: {self.answer.bytes[:300]!r}"
        if self.cpu > allowed:
            return f"{self.cpu:.2f} s of CPU, more than {allowed:.2f} s"
        if self.blocked > BLOCKED_SECONDS:
            return f"the loop blocked for {self.blocked:.2f} s, more than {BLOCKED_SECONDS} s"
        if self.megabytes > MEGABYTES:
            return f"{self.megabytes:.0f} MB more memory, more than {MEGABYTES:.0f} MB"
        return f"{self.units} read units, more than {UNITS}" if self.units > UNITS else None

    def __str__(self) -> str:
        codes = ",".join(sorted(set(self.answer.codes))) or "data"
        return (
            f"{self.cpu:7.3f} s CPU {self.blocked:7.3f} s blocked {self.megabytes:6.1f} MB {self.units:7.1f} units "
            f"{len(self.answer.bytes):9,} bytes  {codes:24} {self.request.label}"
        )


def values(name: str, kind: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Each list inside of an argument, filled, with its label."""
    kind = get_nullable_type(kind)
    if isinstance(kind, GraphQLList):
        size = len(json.dumps(small(kind.of_type, name, 10_000))) + 2
        most = BODY // size
        for count in dict.fromkeys((BOUNDS.get(name, most), min(most, BOUNDS.get(name, most) * 10), most)):
            key = (str(kind), name, count)
            if key not in _made:  # lists of tens of thousands, which many fields take
                _made[key] = [small(kind.of_type, name, number) for number in range(count)]
            yield f"{name} of {count}", _made[key]
        if name == "edits":
            yield from _edits()
        if name == "orderBy":
            for count in (BOUNDS["languages"], BOUNDS["languages"] * 10):
                tags = [_tag(number) for number in range(count)]
                yield f"{name} with languages of {count}", [{"field": "NAME", "languages": tags}]
            for field, direction in itertools.product(("KEY", "PATH", "POSITION"), ("ASC", "DESC")):
                yield f"{name} {field} {direction}", [{"field": field, "direction": direction}]
    elif isinstance(kind, GraphQLInputObjectType):
        if depth > 3:
            return
        seen = set()
        for field, one in kind.fields.items():
            if str(one.type) in seen:
                continue
            seen.add(str(one.type) if field not in ("and", "or", "not", "in") else "")
            if (depth and field in ("and", "or", "not")) or (depth and is_leaf_type(get_nullable_type(one.type))):
                continue
            for label, value in values(field, one.type, depth + 1):
                yield f"{name}.{label}", {**(small(kind, name) if not kind.is_one_of else {}), field: value}
        if depth == 0 and "path" in kind.fields:
            for count in (10, BOUNDS["or"], BOUNDS["or"] * 10):
                yield f"{name}.or of {count} paths", {"or": [{"path": {"startsWith": f"R/{n}"}} for n in range(count)]}
                ranges = [{"key": {"gte": f"{n}", "lt": f"{n}5"}} for n in range(count)]
                yield f"{name}.or of {count} ranges of keys", {"or": ranges}
                yield f"{name}.and of {count} conditions not on a key", {"and": [{"not": each} for each in ranges]}
            circle = {"latitude": 1, "longitude": 1, "kilometers": 2000}
            yield f"{name}.search and near", {"or": [{"search": {"text": "n o d e 1 2 3 4"}}, {"near": circle}]}
            names = [{"name": {"contains": f"{n}"}} for n in range(BOUNDS["or"] - 5)]
            for one in ("some", "none"):
                yield f"{name}.children {one} of {len(names)} conditions", {"children": {one: {"or": names}}}
        if depth == 0 and "not" in kind.fields:
            for levels in (5, 50):
                value = small(kind, name)
                for _ in range(levels):
                    value = {"not": value}
                yield f"{name}.not {levels} deep", value


def _edits() -> Iterator[tuple[str, Any]]:
    """Batches of edits each of which is dear by itself, also since those before it are seen."""
    root, names = {"path": "R"}, [{"language": _tag(n), "text": "x" * 50} for n in range(BOUNDS["names"])]
    shapes: dict[str, Callable[[int], list[Any]]] = {
        "moves of the root": lambda n: [{"move": {"node": {"path": f"R{n}" if n else "R"}, "key": f"R{n + 1}"}}],
        "moves there and back": lambda n: [{"move": {"node": {"path": "RS"[n % 2]}, "key": "SR"[n % 2]}}],
        "updates of one node": lambda n: [{"update": {"node": root, "name": f"x{n}", "names": names}}],
        "updates": lambda n: [{"update": {"node": {"path": f"R/{n}"}, "name": f"x{n}", "names": names}}],
        "amounts": lambda n: [{"update": {"node": {"path": "R"}, "add": [{"field": "SMALL", "amount": "1"}]}}],
        "positions": lambda n: [{"move": {"node": {"path": f"R/{n}"}, "position": {"first": True}}}],
        "deletions": lambda n: [{"delete": {"node": {"path": f"R/{n}"}}}],
        "nodes below one another": lambda n: [
            {"create": {"parent": {"path": "/".join(["R", *"abcdefghij"[: n % 10]])}, "key": "abcdefghij"[n % 10],
                        "name": "x", "attributes": {"box": {}}}},
            *([{"delete": {"node": {"path": "R/a"}, "policy": "CASCADE"}}] if n % 10 == 9 else []),
        ],
        "deletions of the root": lambda n: [
            {"delete": {"node": root, "policy": "CASCADE"}} if n % 2 == 0 else
            {"create": {"key": "R", "name": "x", "attributes": {"box": {}}}}
        ],
        "nodes that are not there": lambda n: [{"update": {"node": {"path": f"nowhere/{n}"}, "name": ""}}],
    }  # fmt: skip
    for label, edits in shapes.items():
        found = [one for n in range(BOUNDS["edits"]) for one in edits(n)]
        for count in (10, BOUNDS["edits"]):
            yield f"{count} {label}", found[:count]


def small(kind: Any, name: str, number: int = 0) -> Any:
    """A small value of a type; those with different numbers differ where they can."""
    kind = get_nullable_type(kind)
    if isinstance(kind, GraphQLList):
        return []
    if isinstance(kind, GraphQLEnumType):
        return list(kind.values)[number % len(kind.values)]
    if isinstance(kind, GraphQLInputObjectType):
        needed = {f: small(one.type, f, number) for f, one in kind.fields.items() if str(one.type).endswith("!")}
        if "and" in kind.fields:
            return {"name": {"eq": f"x{number}"}}
        return needed or {next(iter(kind.fields)): small(next(iter(kind.fields.values())).type, "")}
    known = {"Path": f"R/{number}", "ID": f"thing:{number}", "Boolean": True, "Int": number, "Long": 2**60 + number,
             "Float": number + 0.5, "Decimal": f"{number}.5", "Date": "2024-02-29", "DateTime": "2024-02-29T00:00:00Z",
             "Url": f"http://a.example/{number}", "_Any": {"__typename": "Card", "path": f"R/{number}"}}  # fmt: skip
    return known.get(kind.name, _tag(number) if name in ("languages", "language") else f"x{number}")


def _tag(number: int) -> str:
    return "".join(chr(97 + number // place % 26) for place in (17576, 676, 26, 1))[-3:]


def requests(schema: GraphQLSchema) -> Iterator[Request]:
    """Each of them at the root, below one node, and below thousands; as a literal and as a variable."""
    assert schema.query_type
    assert schema.mutation_type
    node = schema.type_map["Thing"]
    below = f"descendants(first: {NODES})"
    places: list[tuple[str, str, Any]] = [
        ("2", f'query(%s) {{ thing(path: "R") {{ {below} {{ nodes {{ %s }} }} }} }}', node),
        ("1", 'query(%s) { thing(path: "R") { %s } }', node),
        ("1", 'query(%s) { thing(path: "R") { descendants(first: 1) { %s } } }', schema.type_map["ThingConnection"]),
        ("0", "query(%s) { %s }", schema.query_type),
        ("0", "mutation(%s) { %s }", schema.mutation_type),
    ]
    for depth, shape, kind in places:
        for name, field in kind.fields.items():
            for argument, one in field.args.items():
                if is_leaf_type(get_nullable_type(one.type)):
                    continue
                for label, value in values(argument, one.type):
                    yield from _forms(f"depth {depth}: {name}({label})", shape, name, field, argument, value)


def _forms(label: str, shape: str, name: str, field: GraphQLField, argument: str, value: Any) -> Iterator[Request]:
    fixed = {"path": '"R"', "key": '"new"', "name": '"new"', "text": '"a"', "latitude": "1", "longitude": "1",
             "dryRun": "true"}  # fmt: skip
    fixed["attributes"] = "{box: {}}" if name.startswith("create") else ""
    given = {}
    for other, one in field.args.items():
        if other != argument and fixed.get(other) and (str(one.type).endswith("!") or other == "dryRun"):
            given[other] = fixed[other]
    if "first" in field.args:
        given["first"] = "1"
    kind = field.args[argument].type

    def made(text: str) -> str:
        arguments = ", ".join(f"{a}: {v}" for a, v in {**given, argument: text}.items())
        return f"{name}({arguments}){_leaf(field.type)}"

    yield Request(f"{label} as a variable", shape % (f"$v: {kind}", made("$v")), {"v": value})
    if re.search(r" of \d{5}", label):
        return
    text = _literal(value, kind)
    if len(text) < 60_000 and text.count(",") + text.count(":") * 2 + text.count("{") * 2 < LITERALS:
        yield Request(f"{label} as a literal", (shape % ("", made(text))).replace("()", "", 1), {})


def _leaf(kind: Any) -> str:
    named = get_named_type(kind)
    if is_leaf_type(named):
        return ""
    fields = getattr(named, "fields", {})
    chosen = next((one for one in ("totalCount", "complete", "path", "id") if one in fields), None)
    return " { plan { nodes } }" if "plan" in fields else f" {{ {chosen or '__typename'} }}"


def _literal(value: Any, kind: Any) -> str:
    kind = get_nullable_type(kind)
    if isinstance(value, list):
        return f"[{', '.join(_literal(one, kind.of_type) for one in value)}]"
    if isinstance(value, dict):
        fields = kind.fields if isinstance(kind, GraphQLInputObjectType) else {}
        inner = (f"{key}: {_literal(one, fields[key].type if key in fields else kind)}" for key, one in value.items())
        return f"{{{', '.join(inner)}}}"
    return str(value) if isinstance(kind, GraphQLEnumType) else json.dumps(value)


class Meter:
    """Measures requests to a server, which does nothing else, by the figures of its process."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._pid = server.pid

    def take(self, request: Request) -> Cost:
        """The cost of one request; the second time it is sent if the first one was dear, to leave out start-up."""
        self._reset_peak()
        memory, cpu = self._memory("VmRSS"), self._cpu()
        ended = threading.Event()
        gaps: list[float] = [0.0]
        poller = threading.Thread(target=self._poll, args=(ended, gaps))
        poller.start()
        try:
            answer = self.server.ask(request.query, request.variables, clade_reads="1")
        finally:
            ended.set()
            poller.join()
        body = answer.json
        units = body.get("extensions", {}).get("reads", {}).get("units", 0)
        peak = max(0.0, self._memory("VmHWM") - memory)
        return Cost(request, answer, self._cpu() - cpu, max(gaps), peak, units, answer.bytes.count(b"{"))

    def _poll(self, ended: threading.Event, gaps: list[float]) -> None:
        """Ask `/healthz` all the while. While it waits for an answer, what the main thread computes blocks the loop."""
        while not ended.wait(POLL_SECONDS):
            computed, started = self._main_thread(), time.monotonic()
            status_of(f"{self.server.url}/healthz")
            gaps.append(min(self._main_thread() - computed, time.monotonic() - started))

    def _cpu(self) -> float:
        """Seconds of processor time of all its threads."""
        tasks = Path(f"/proc/{self._pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def _main_thread(self) -> float:
        return int(Path(f"/proc/{self._pid}/task/{self._pid}/schedstat").read_text().split()[0]) / 1e9

    def _memory(self, name: str) -> float:
        for line in Path(f"/proc/{self._pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) / 1024
        raise AssertionError(name)

    def _reset_peak(self) -> None:
        with contextlib.suppress(OSError):
            Path(f"/proc/{self._pid}/clear_refs").write_text("5")


def load(found: Place) -> None:
    """One tree with thousands of nodes below its root."""
    rows: list[dict[str, Any]] = [{"path": "R", "level": "BOX", "name": "root"}]
    rows += [{"path": f"R/{n}", "level": "CARD", "name": f"node {n}", "title": f"{n}"} for n in range(NODES)]
    import_things(found.folder / "cost.jsonl", found.store, rows)


def measure(found: Place, seed: int, until: float, report: Callable[[Cost], None], least: int) -> int:
    """Send requests in an order of the seed, every second one below many nodes; the number that was sent."""
    load(found)
    server = found.server()
    file = found.folder / "cost.graphql"
    on_things("schema", str(file), store=found.store)
    every = list(requests(build_schema(file.read_text(), assume_valid_sdl=True)))
    random.Random(seed).shuffle(every)
    deep = [request for request in every if request.label.startswith("depth 2")]
    flat = [request for request in every if not request.label.startswith("depth 2")]
    every = [one for pair in itertools.zip_longest(deep, flat) for one in pair if one]
    meter = Meter(server)
    meter.take(Request("warm", "{ things { nodes { name children(first: 1) { totalCount } } } }", {}))
    for number, request in enumerate(every):
        if number >= least and time.monotonic() > until:
            return number
        cost = meter.take(request)
        if cost.excess:
            cost = min(cost, meter.take(request), key=lambda one: one.cpu)
        report(cost)
    return len(every)


def run(found: Place, seed: int, until: float) -> Counter[str]:
    """The part of the suite; raises Wrong at the first request that costs too much."""

    def report(cost: Cost) -> None:
        if cost.excess:
            page, sentence = PROMISES[2 if "CPU" in cost.excess else 1]
            body = json.dumps({"query": cost.request.query, "variables": cost.request.variables})
            script = [cost.request.label, body if len(body) < 2000 else f"{body[:1000]} … {body[-200:]}"]
            raise Wrong(f"docs/{page}: {sentence}", script, "a bounded cost", f"{cost.excess}; {cost}")

    return Counter({"requests measured": measure(found, seed, until, report, 12)})


PART = Part("cost", run, PROMISES)
