"""Writers: clients that send mutations with idempotency keys, and keep account of what was made or is unknown."""

import contextlib
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from tests.outside.failures import Wrong, settled
from tests.outside.processes import Server
from tests.processes import Answer
from tests.waiting import eventually

MADE, NOT_MADE, UNKNOWN = "made", "not made", "unknown"
Line = tuple[str, str, str | None]  # event, id and new path of a change
State = tuple[str, int, int]  # path, revision and number of a node
ATTEMPTS = 60
EXPECTED = {"UNAVAILABLE", "TIMEOUT", "OVERLOADED", "CONFLICT"}
OUTCOMES = "A mutation is atomic: all of it is made, or nothing. The response says which"
ONCE = "for 24 hours it is made only once, and every repetition returns the same payload"


def outcome(answer: Answer | None) -> str:
    """What a response to a mutation says, by the table of docs/writing.md."""
    if answer is None or answer.status in (502, 504):
        return UNKNOWN
    for error in answer.errors:
        extensions = error.get("extensions", {})
        if len(error.get("path") or ()) > 1:
            continue  # in the payload: the change was made
        if extensions.get("uncertain") or extensions.get("code") == "INTERNAL_SERVER_ERROR":
            return UNKNOWN
        return NOT_MADE
    return MADE


class Edit(NamedTuple):
    """An edit, with the event that the change log has if it was made."""

    verb: str
    given: str
    event: str
    node: str
    state: State
    to: str | None = None

    @property
    def line(self) -> Line:
        return self.event, self.node, self.to


@dataclass
class Sent:
    """A mutation of one edit or several, which are made together."""

    mutation: str
    edits: Sequence[Edit]
    outcome: str = UNKNOWN
    answers: list[str] = field(default_factory=list)
    payload: Any = None

    @property
    def lines(self) -> list[Line]:
        return [edit.line for edit in self.edits]

    def is_of(self, nodes: Collection[str]) -> bool:
        """Whether one of the edits is of one of these nodes."""
        return any(edit.node in nodes for edit in self.edits)


class Account:
    """What one writer sent, in order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sent: list[Sent] = []

    def expect(self, log: list[Line], script: list[str]) -> int:
        """Raise Wrong unless a log has what was made, once and in order, and of the rest at most what is unknown."""
        made = [line for sent in self.sent if sent.outcome == MADE for line in sent.lines]
        unknown = [sent for sent in self.sent if sent.outcome == UNKNOWN]
        loose = Counter(line for sent in unknown for line in sent.lines)
        loose &= Counter(log) - Counter(made)
        for sent in unknown:
            if len({loose[line] > 0 for line in sent.lines}) > 1:
                raise Wrong(OUTCOMES, [*script, sent.mutation], "all edits of it in the log, or none", sent.lines)
        kept: list[Line] = []
        for line in reversed(log):  # a node is left alone after an unknown change, so that one is its last
            if loose[line]:
                loose[line] -= 1
            else:
                kept.append(line)
        kept.reverse()
        if kept != made:
            at = next(
                (n for n, (a, b) in enumerate(zip(kept, made, strict=False)) if a != b), min(len(kept), len(made))
            )
            near = {line[1] for line in (*kept[at : at + 1], *made[at : at + 1])}
            steps = [f"{sent.mutation} with the responses {sent.answers}" for sent in self.sent if sent.is_of(near)]
            raise Wrong(OUTCOMES, [*script, *steps], made[at : at + 2], f"the log has {kept[at : at + 2]}")
        return len(made)


class Writer:
    """A client with a box of its own, so that no other writer changes what it knows of it."""

    def __init__(self, name: str, seed: int, servers: Callable[[], list[Server]], tree: str = "W") -> None:
        self.account = Account(name)
        self.tree, self.box = tree, f"{tree}/{name}"
        self.counts: Counter[str] = Counter()
        self.wrong: Wrong | None = None
        self.unanswered: list[tuple[str, float, float]] = []
        self._servers = servers
        self._chance = random.Random(seed)
        self.known: dict[str, State] = {}
        self.gone: dict[str, State] = {}  # deleted nodes
        self.loose: set[str] = set()  # nodes after a mutation whose result is unknown
        self._numbers = iter(range(1_000_000))

    def work(self, over: threading.Event) -> None:
        """Write until it is over, or something is wrong."""
        while not over.is_set() and self.wrong is None:
            try:
                self.write()
            except Wrong as wrong:
                self.wrong = wrong

    def write(self) -> None:
        """Send one mutation until its result is known, or give it up; then try whether it is made once."""
        sent = self._draw()
        self.account.sent.append(sent)
        key = f"{self.account.name}-{next(self._numbers)}-{self._chance.randrange(10**9)}"
        mutation = sent.mutation.replace("KEY", json.dumps(key))
        gives_up = self._chance.random() < 0.3
        for attempt in range(ATTEMPTS):
            server = self._chance.choice(self._servers())
            answer = self._ask(server, mutation)
            self._take(sent, answer)
            if sent.outcome == MADE or (gives_up and attempt >= self._chance.randrange(2)):
                break
            time.sleep(0.05 + 0.1 * self._chance.random())
        self.counts[f"mutations {sent.outcome}"] += 1
        self._learn(sent)
        if sent.outcome == MADE and self._chance.random() < 0.15:
            self._repeat(sent, mutation)

    def _ask(self, server: Server, mutation: str) -> Answer | None:
        begun = time.monotonic()
        try:
            return server.ask(mutation)
        except OSError:
            self.unanswered.append((server.url, begun, time.monotonic()))
            return None

    def _take(self, sent: Sent, answer: Answer | None) -> None:
        """Keep what a response says of this attempt, and so of all attempts together."""
        said = outcome(answer)
        codes = " ".join(answer.codes) if answer else ""
        sent.answers.append(f"{said} {codes}".strip())
        self.counts[f"responses: {said} {codes}".strip()] += 1
        if answer and not set(answer.codes) <= EXPECTED:
            raise Wrong(OUTCOMES, [f"{sent.mutation} with the responses {sent.answers}"], EXPECTED, answer.json)
        if said == MADE:
            assert answer
            sent.outcome, sent.payload = MADE, answer.json["data"]["made"]
            self._compare(sent)
        elif len(sent.answers) == 1:
            sent.outcome = said
        elif said == UNKNOWN:
            sent.outcome = UNKNOWN

    def _compare(self, sent: Sent) -> None:
        """The nodes of a payload are as the mutation left them."""
        nodes = sent.payload and (sent.payload["nodes"] if "nodes" in sent.payload else [sent.payload["node"]])
        if not nodes or None in nodes:
            return  # the payload could not be read, which is an error below the field
        for edit, node in zip(sent.edits, nodes, strict=True):
            path, revision, small = edit.state
            expected = {"id": edit.node, "path": path, "revision": revision, "small": small}
            if {name: node[name] for name in expected} != expected:
                promise = "the node in a mutation's payload is as the mutation left it"
                raise Wrong(promise, [sent.mutation], expected, node)

    def _repeat(self, sent: Sent, mutation: str) -> None:
        """Send a mutation again that was made: the payload is the same."""
        answer = self._ask(self._chance.choice(self._servers()), mutation)
        said = outcome(answer)
        if said == MADE:
            assert answer
            if answer.json["data"]["made"] != sent.payload:
                raise Wrong(ONCE, [mutation, mutation], sent.payload, answer.json)
            self.counts["repetitions with the same payload"] += 1
        elif answer and not set(answer.codes) & {"UNAVAILABLE", "TIMEOUT", "OVERLOADED"}:
            raise Wrong(ONCE, [mutation, mutation], sent.payload, answer.json)

    def _draw(self) -> Sent:
        """A mutation that nothing but a fault can refuse."""
        if self._chance.random() < 0.25:
            nodes = self._chance.sample(sorted(self.known), min(len(self.known), self._chance.choice((1, 2, 4))))
            edits = [self._edit("create"), *(self._edit(node=node) for node in nodes)]
            self._chance.shuffle(edits)
            given = ", ".join(f"{{{edit.verb}: {edit.given}}}" for edit in edits)
            return _sent(f"editThings(edits: [{given}]", "nodes", edits)
        if self.gone and self._chance.random() < 0.15:
            node = self._chance.choice(sorted(self.gone))
            path, revision, small = self.gone[node]
            edit = Edit("restore", f'{{id: "{node}"}}', "RESTORED", node, (path, revision + 1, small))
        else:
            edit = self._edit("create" if len(self.known) < 3 else "")
        return _sent(f"{edit.verb}Thing(input: {edit.given}", "node", [edit])

    def _edit(self, kind: str = "", node: str = "") -> Edit:
        number = next(self._numbers)
        kinds = ("update", "update", "add", "rename", "delete")
        kind = kind or self._chance.choice(kinds if node else ("create", "create", *kinds))
        if kind == "create":
            node, path = f"{self.account.name}-{number}", f"{self.box}/k{number}"
            where = f'parent: {{path: "{self.box}"}}, key: "k{number}", id: "{node}", name: "n{number}"'
            given = f"{{{where}, attributes: {{box: {{small: {number}}}}}}}"
            return Edit("create", given, "CREATED", f"thing:{node}", (path, 1, number))
        node = node or self._chance.choice(sorted(self.known))
        path, revision, small = self.known[node]
        at = f'node: {{path: "{path}"}}'
        if kind == "update":
            given = f"{{{at}, attributes: {{box: {{small: {number}}}}}}}"
            return Edit("update", given, "UPDATED", node, (path, revision + 1, number))
        if kind == "add":
            amount = -100_000 - number  # so that no later update finds its number there already
            given = f'{{{at}, add: [{{field: SMALL, amount: "{amount}"}}]}}'
            return Edit("update", given, "UPDATED", node, (path, revision + 1, small + amount))
        if kind == "delete":
            return Edit("delete", f"{{{at}}}", "DELETED", node, (path, revision, small))
        to = f"{self.box}/k{number}"
        return Edit("move", f'{{{at}, key: "k{number}"}}', "MOVED", node, (to, revision, small), to)

    def _learn(self, sent: Sent) -> None:
        """Go on from what was made; a node whose state is unknown is left alone."""
        for edit in sent.edits:
            if sent.outcome == UNKNOWN:
                self.loose.add(edit.node)
            if sent.outcome != NOT_MADE:
                self.known.pop(edit.node, None)
                self.gone.pop(edit.node, None)
            if sent.outcome == MADE:
                (self.gone if edit.event == "DELETED" else self.known)[edit.node] = edit.state
                self.counts["nodes restored"] += edit.event == "RESTORED"


def _sent(field: str, payload: str, edits: Sequence[Edit]) -> Sent:
    selection = f"{{ {payload} {{ id path revision ... on Box {{ small }} }} }}"
    return Sent(f"mutation {{ made: {field}, idempotencyKey: KEY) {selection} }}", edits)


def pages_of_log(server: Server, where: str, changes: str) -> Iterator[dict[str, Any]]:
    """The pages of the change log of a place, up to the last one."""
    feed: dict[str, Any] = {"cursor": "", "hasMore": True}
    while feed["hasMore"]:
        after = f', after: "{feed["cursor"]}"' if feed["cursor"] else ""
        field = f"changes(hierarchy: THING, {where}{after}) {{ {changes} cursor hasMore }}"
        feed = server.ask(f"{{ {field} }}").data["changes"]
        yield feed


def log_of(server: Server, box: str) -> list[Line]:
    """What the change log has of the nodes below a box, in order."""
    where = f'tree: "{box.split("/")[0]}", under: "{box}"'
    pages = pages_of_log(server, where, "changes { event nodeId path to }")
    lines = [line for page in pages for line in page["changes"] if line["path"] != box]
    return [(line["event"], line["nodeId"], line["to"]) for line in lines if line["nodeId"] != f"thing:{box}"]


def nodes_of(server: Server, box: str) -> dict[str, State]:
    """Path, revision and number of each node below a box."""
    selection = "nodes { id path revision ... on Box { small } } totalCount"
    found = server.ask(f'{{ thing(path: "{box}") {{ childCount children {{ {selection} }} }} }}').data["thing"]
    nodes = found["children"]["nodes"]
    if not found["childCount"] == found["children"]["totalCount"] == len(nodes):
        raise Wrong("Counts are stored with each node", [f"children of {box}"], found["childCount"], len(nodes))
    return {node["id"]: (node["path"], node["revision"], node["small"]) for node in nodes}


@contextlib.contextmanager
def writing(servers: Callable[[], list[Server]], number: int, chance: random.Random) -> Iterator[list[Writer]]:
    """So many writers, each with a thread, until the block ends."""
    names = [f"w{n}" for n in range(number)]
    prepare(servers()[0], names)
    writers, over = [Writer(name, chance.randrange(2**31), servers) for name in names], threading.Event()
    threads = [threading.Thread(target=writer.work, args=(over,)) for writer in writers]
    for thread in threads:
        thread.start()
    try:
        yield writers
    finally:
        over.set()
        for thread in threads:
            thread.join()


def more_is_made(writers: list[Writer], number: int, promise: str, seconds: float = 30.0) -> None:
    """Wait until the writers have made so many mutations more; raises Wrong if that takes too long."""
    made = _made(writers)

    def problem() -> Wrong:
        answers = [writer.account.sent[-1].answers for writer in writers]
        return next((writer.wrong for writer in writers if writer.wrong), Wrong(promise, [], f"{number} made", answers))

    eventually(lambda: _made(writers) >= made + number or any(writer.wrong for writer in writers), seconds, problem)


def _made(writers: list[Writer]) -> int:
    return sum(writer.counts["mutations made"] for writer in writers)


def prepare(server: Server, names: list[str], tree: str = "W") -> None:
    """The box of each writer, in one tree."""
    for where in (f'key: "{tree}"', *(f'parent: {{path: "{tree}"}}, key: "{name}"' for name in names)):
        create = f'createThing(input: {{{where}, name: "x", attributes: {{box: {{}}}}}}) {{ node {{ id }} }}'
        assert server.ask(f"mutation {{ {create} }}").data


def settle(writers: list[Writer], server: Server, script: list[str], seconds: float = 0) -> Counter[str]:
    """Compare the log and the nodes of each writer with its account; lists are complete after some seconds."""
    counts: Counter[str] = Counter()
    until = time.monotonic() + seconds
    for writer in writers:
        if writer.wrong:
            raise writer.wrong
        counts += writer.counts
        log = [line for line in log_of(server, writer.box) if line[1].startswith(f"thing:{writer.account.name}-")]
        counts["changes found in the log"] += writer.account.expect(log, script)
        counts["nodes compared at the end"] += settled(partial(_compare_nodes, writer, server, script), until)
    return counts


def _compare_nodes(writer: Writer, server: Server, script: list[str]) -> int:
    """The number of nodes below the box of a writer, which are as it knows them."""
    found = nodes_of(server, writer.box)
    got = {node: state for node, state in found.items() if node not in writer.loose}
    if got != writer.known:
        wrong = {node for node in {*got, *writer.known} if got.get(node) != writer.known.get(node)}
        steps = [f"{s.mutation} with the responses {s.answers}" for s in writer.account.sent if s.is_of(wrong)]
        expected = {node: writer.known.get(node) for node in wrong}
        raise Wrong(OUTCOMES, [*script, *steps], expected, {node: got.get(node) for node in wrong})
    return len(found)
