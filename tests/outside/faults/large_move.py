"""Large moves: subtrees are moved, renamed, deleted and restored while two servers are read; one may be killed.

On DynamoDB all indexes are late.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.outside.failures import Wrong
from tests.outside.faults.late_indexes import late_store
from tests.outside.faults.questions import Asking, Question, document, draw
from tests.outside.faults.tree import Path, Tree, text, with_subtree
from tests.outside.faults.writers import pages_of_log
from tests.outside.processes import Place, Server, expect_no_findings, import_things
from tests.processes import Answer
from tests.waiting import eventually

ONE_MOMENT = (
    "writing.md",
    "Requests during a move see the state before or after the commit in the whole response: lists, pages, counts, ids "
    "and former paths alike",
)
FREED = "A deleted node has no value, and takes its last one again when it is [restored](writing.md#undo-a-deletion)"
UNDONE = "So is a restore whose nodes have a unique value of another node"
CONFLICT = "taking one of their values is `CONFLICT`, and so is one that a large restore has taken again."
REPEATED = "Of a move that was `UNDONE` the repetition is a `CONFLICT` with its reason"
CODES = 3  # unique values that are looked up
PROMISES = (
    ONE_MOMENT,
    ("writing.md", "At one moment, the *commit*, the whole subtree changes from its old place to its new one."),
    ("writing.md", "another server, the next start, or `clade repair` continues it"),
    ("writing.md", "All other nodes are written as usual"),
    ("writing.md", UNDONE),
    ("writing.md", REPEATED),
    ("attributes.md", FREED),
    ("writing.md", "Of a large restore only the move finds it, which then is `UNDONE`"),
    ("attributes.md", CONFLICT),
    ("consistency.md", "a node by path, by id or by a unique value"),
    ("consistency.md", "A move of a large subtree is seen as a whole, before or after"),
)
REQUEST_SECONDS = {"sqlite": 4.0, "dynamodb": 2.0}  # a move takes twice as long; 20 MB are read before it begins
FINISHED_SECONDS = 150.0  # 30 s after its last progress another process takes a move, and then works on it
PATIENT = {"UNAVAILABLE", "TIMEOUT", "OVERLOADED"}


@dataclass(frozen=True)
class Change:
    """A mutation of a large subtree, with the states before and after it."""

    mutation: str
    before: Tree
    after: Tree
    old: Path
    new: Path | None
    restored: bool = False
    kept: Tree | None = None  # of a restore that is undone: the state that had the subtree

    @property
    def whole(self) -> Tree:
        """The state that has the subtree at its old place: of a restore, one after it, or where else it would be."""
        if self.kept:
            return self.kept
        return self.after.moved(self.new or (), self.old) if self.restored else self.before

    def questions(self, cursor: str) -> list[Question]:
        """Questions whose answers differ before and after, and some whose answers do not."""
        asking = Asking((self.before, self.after))
        whole = self.whole
        tails: list[Path] = [(), *(path[len(self.old) :] for path in whole.below(self.old)[:40:13])]
        paths = [self.old + tail for tail in tails] + [self.new + tail for tail in tails if self.new]
        fixed: list[Path] = [("T",), ("T", "dest"), ("T", "rest"), ("V",)]
        pool = asking.many([*paths, *fixed])
        for path in [*paths, *fixed]:
            pool += asking.by_path(path)
        for tail in tails:
            item = whole.nodes[self.old + tail]
            pool += asking.by_id(item.id)
            word = item.name.split()[-1]
            pool += [asking.search(word), asking.search(word, ("T",)), asking.search(word, self.old)]
        codes = [whole.nodes[path].sku for path in whole.below(self.old) if whole.nodes[path].sku]
        for code in [*codes[: CODES - 1], codes[-1]]:
            pool += asking.by_code(code)
        states = ("before", "before" if self.kept else "after")
        return [*pool, asking.fixed(self._moves(), states, self._state), self._changes(asking, cursor)]

    @property
    def tree(self) -> str:
        """The tree whose log tells of it."""
        return self.new[0] if self.restored and self.new else self.old[0]

    def _moves(self) -> str:
        return "moves(hierarchy: THING, first: 3) { from to state }"

    def _state(self, moves: Any) -> Any:
        """Before or after, as the progress of this move says; other moves do not count."""
        mine = [move for move in moves if (move["from"], move["to"]) == (text(self.old), text(self.new))]
        said = mine[0]["state"] if mine else "COPYING"
        known = {"COPYING": "before", "SWEEPING": "after", "DONE": "after"}
        if self.restored:  # one that was undone is made again
            known["UNDONE"] = "before"
        return known.get(said, said)

    def _changes(self, asking: Asking, cursor: str) -> Question:
        made = {"event": "MOVED", "from": text(self.old), "to": text(self.new)}
        if self.new is None or self.restored:
            made = {"event": "RESTORED" if self.restored else "DELETED", "from": None, "to": None}
        field = f'changes(hierarchy: THING, tree: "{self.tree}", after: "{cursor}")'
        return asking.fixed(
            f"{field} {{ changes {{ event from to withDescendants }} }}",
            ([], [] if self.kept else [{**made, "withDescendants": True}]),
            lambda feed: [change for change in feed["changes"] if change["withDescendants"]],
        )


class Watch:
    """Threads that ask servers, until closed, and compare each response with the states before and after."""

    def __init__(self, change: Change, pool: list[Question], seed: int) -> None:
        self.change, self.pool = change, pool
        self.counts: Counter[str] = Counter()
        self.wrong: list[Wrong] = []
        self.after_since: float | None = None
        self.killed: set[str] = set()
        self._over = threading.Event()
        self._chance = random.Random(seed)
        self._threads: list[threading.Thread] = []

    def add(self, server: Server, threads: int = 2) -> None:
        for _ in range(threads):
            thread = threading.Thread(target=self._ask_on, args=(server, random.Random(self._chance.random())))
            self._threads.append(thread)
            thread.start()

    def close(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def await_answers(self, number: int) -> None:
        """Wait until so many more responses were compared, or one was wrong."""
        until = self.counts.total() + number
        eventually(lambda: self.counts.total() >= until or self.wrong)

    def raise_wrong(self) -> None:
        if self.wrong:
            raise self.wrong[0]

    def _ask_on(self, server: Server, chance: random.Random) -> None:
        while not self._over.is_set() and not self.wrong:
            asked = draw(self.pool, chance)
            try:
                self.compare(server, asked, self.after_since)
            except Wrong as wrong:
                self.wrong.append(wrong)
            except OSError:
                if server.url in self.killed:
                    return
                self.counts["requests without a response"] += 1
                self._over.wait(0.2)

    def compare(self, server: Server, asked: Sequence[Question], after_since: float | None) -> None:
        """Ask, and raise Wrong if the response is of neither state, or of the one before after the commit was seen."""
        sent = time.monotonic()
        answer = server.ask(document(list(asked)))
        if answer.errors:
            if set(answer.codes) <= PATIENT:
                self.counts["responses that said to try again"] += 1
                return
            raise self._wrong(asked, "a response without errors", answer.json)
        got = [question.shape(answer.json["data"][f"a{number}"]) for number, question in enumerate(asked)]
        states = [state for state in (0, 1) if all(is_ == q.answers[state] for is_, q in zip(got, asked, strict=True))]
        if not states:
            mixed = _mixed(list(zip(asked, got, strict=True)))
            questions, answers = [question for question, _ in mixed], [answer for _, answer in mixed]
            raise self._wrong(questions, _differences(questions, answers), answers)
        if states == [1] and self.after_since is None:
            self.after_since = time.monotonic()
        if states == [0] and after_since is not None and after_since < sent:
            raise self._wrong(asked, "the state after the commit, which another response had already", got)
        self.counts[("before", "after", "either")[states[0] if len(states) == 1 else 2] + " the commit"] += 1

    def _wrong(self, asked: Sequence[Question], expected: object, got: object) -> Wrong:
        size = len(self.change.whole.below(self.change.old)) + 1
        script = [
            f"A tree T, with {size:,} nodes in {text(self.change.old)}, and two servers of one store",
            self.change.mutation,
            f"meanwhile: {document(list(asked))}",
        ]
        return Wrong(ONE_MOMENT[1], script, expected, got)


def _mixed(answers: list[tuple[Question, Any]]) -> list[tuple[Question, Any]]:
    """The fewest answers of a response that are not of one state."""
    neither = [pair for pair in answers if pair[1] not in pair[0].answers]
    old, new = ([pair for pair in answers if pair[1] != pair[0].answers[state]] for state in (1, 0))
    return neither[:1] or [*old[:1], *new[:1]]


def _differences(asked: Sequence[Question], got: list[Any]) -> str:
    """What each field of a mixed response shows."""
    said = []
    for question, answer in zip(asked, got, strict=True):
        states = [name for name, known in zip(("before", "after"), question.answers, strict=True) if known == answer]
        said.append(f"{question.field} is {' and '.join(states) or f'neither of {question.answers!r}'}")
    return "one state, but " + "; ".join(said)


def run(place: Place, seed: int, until: float) -> Counter[str]:
    """One subtree, moved, renamed, deleted and restored, in a short run moved, deleted and restored; servers that do it
    may be killed.
    """
    chance = random.Random(seed)
    long = until - time.monotonic() > 60
    before = _subtree(place.kind, chance, long)
    counts: Counter[str] = Counter()
    with late_store(place) as (store, proxy):
        import_things(place.folder / "tree.jsonl", store, before.lines())
        if proxy is not None:
            eventually(lambda: proxy.is_current)
        servers = [start(place, store) for _ in range(2)]
        for old, new in _ways(chance)[: 3 if long else 1]:
            change = _change(before, old, new)
            counts += watched(place, store, servers, change, chance, kill=long and chance.random() < 0.4)
            before, here = change.after, new
            if time.monotonic() > until - 75:
                break
        for back in chance.sample([here, ("T", "dest", "back"), ("V", "back")], 2 if long else 1):
            deletion = _change(before, here, None)
            counts += watched(place, store, servers, deletion, chance, kill=False)
            if not counts["large restores undone"]:
                counts += _undone(place, store, servers, deletion, back, chance)
            change = _restoring(deletion, back)
            counts += watched(place, store, servers, change, chance, kill=long and chance.random() < 0.7)
            if back == here or time.monotonic() > until - 45:
                break
            before, here = change.after, back
        for server in servers:
            server.stop()
        expect_no_findings(store, ONE_MOMENT[1], ["large moves"])
    return counts


def _subtree(kind: str, chance: random.Random, long: bool) -> Tree:
    """More than a transaction holds: 10,000 nodes or 20 MB in SQLite, about 30 nodes in DynamoDB."""
    if kind == "dynamodb":
        return with_subtree(12, 40) if long else with_subtree(3, 40)
    return with_subtree(111, 100) if long and chance.random() < 0.7 else with_subtree(14, 100, note=16_000)


def _ways(chance: random.Random) -> list[tuple[Path, Path]]:
    """Where the subtree goes, one after the other."""
    ways: list[tuple[Path, Path]] = [
        (("T", "big"), ("T", "dest", "big")),
        (("T", "dest", "big"), ("T", "dest", "m" if chance.random() < 0.5 else "Big")),
    ]
    last = ways[-1][1]
    return [*ways, (last, chance.choice([("V", last[-1]), ("T", last[-1])]))]


def start(place: Place, store: str) -> Server:
    return place.server(store, request_seconds=str(REQUEST_SECONDS[place.kind]))


def _change(before: Tree, old: Path, new: Path | None) -> Change:
    once, node = f'idempotencyKey: "{text(old)} {text(new)}"', f'node: {{path: "{text(old)}"}}'
    if new is None:
        delete = f"deleteThing({once}, input: {{{node}, policy: CASCADE}})"
        return Change(_mutation(delete), before, before.deleted(old), old, new)
    after = before.moved(old, new)
    place = f'key: "{new[-1]}"' if old[:-1] == new[:-1] else f'to: {{parent: {{path: "{text(new[:-1])}"}}}}'
    return Change(_mutation(f"moveThing({once}, input: {{{node}, {place}}})"), before, after, old, new)


def _undone(
    place: Place, store: str, servers: list[Server], deletion: Change, back: Path, chance: random.Random
) -> Counter[str]:
    """A restore of which another node has a unique value meanwhile, until it has given that up."""
    codes = sorted(item.sku for item in deletion.before.nodes.values() if item.sku)
    taken = chance.choice(codes)
    _give(servers[1], '{path: "T/rest"}', f'"{taken}"', taken)
    change = _restoring(deletion, back, taken)
    counts = watched(place, store, servers, change, chance, kill=False)
    _give(servers[0], f'{{sku: "{taken}"}}', "null", taken)

    # Its state is UNDONE as soon as it goes back; until its end another restore is a CONFLICT.
    def has_ended() -> bool:
        (last,) = servers[0].ask("{ moves(hierarchy: THING, first: 1) { endedAt } }").data["moves"]
        return last["endedAt"] is not None

    eventually(has_ended, FINISHED_SECONDS, lambda: Wrong(UNDONE, [change.mutation], "an end", "none"))
    return counts


def _give(server: Server, node: str, value: str, code: str) -> None:
    """Give a unique value to a node, or clear it."""
    field = f"updateThing(input: {{node: {node}, attributes: {{box: {{sku: {value}}}}}}}) {{ node {{ path sku }} }}"
    answer = server.ask(f"mutation {{ made: {field} }}")
    node_of = {"path": "T/rest", "sku": None if value == "null" else code}
    if answer.errors or answer.data["made"]["node"] != node_of:
        raise Wrong(FREED, [f"delete the node with {code}", field], node_of, answer.json)


def _restoring(deletion: Change, new: Path, taken: str = "") -> Change:
    """The restore of what was deleted, to its place or another one; undone if T/rest has taken a unique value."""
    top, old = deletion.before.nodes[deletion.old], deletion.old
    to = f', to: {{parent: {{path: "{text(new[:-1])}"}}}}, key: "{new[-1]}"' if new != old else ""
    once = f'idempotencyKey: "{top.id} again at {text(new)}{" in vain" if taken else ""}"'
    field = f'restoreThing({once}, input: {{id: "thing:{top.id}"{to}}})'
    before = deletion.after
    if taken:
        before = before.coded(("T", "rest"), taken)
        return Change(_mutation(field), before, before, old, new, restored=True, kept=deletion.before)
    return Change(_mutation(field), before, before.restored(deletion.before, old, new), old, new, restored=True)


def _mutation(field: str) -> str:
    return f"mutation {{ made: {field} {{ move {{ id state nodes from to }} }} }}"


def watched(
    place: Place, store: str, servers: list[Server], change: Change, chance: random.Random, *, kill: bool
) -> Counter[str]:
    """Make a change on the first server, and read from both all the while."""
    cursor = _end_of_log(servers[0], change.tree)
    watch = Watch(change, change.questions(cursor), chance.randrange(2**31))
    for server in servers:
        watch.add(server)
    try:
        watch.await_answers(4)
        move = _begun(servers[0], change)
        if not change.kept:  # else they might be made after the end
            watch.counts += _written_meanwhile(servers[1], change, move["id"])
        if kill:
            watch.await_answers(chance.randrange(100))
            watch.killed.add(servers[0].url)
            servers[0].kill()
            servers[0] = start(place, store)
            watch.counts["servers killed while they moved"] += 1
            watch.add(servers[0])
        _wait_until_done(servers[1], change, move["id"], watch)
        watch.await_answers(8)
    finally:
        watch.close()
    watch.raise_wrong()
    watch.counts["large restores undone" if change.kept else "subtrees restored"] += change.restored
    return watch.counts + _all_after(servers, change, watch)


def _begun(server: Server, change: Change) -> dict[str, Any]:
    """The large move in the payload; the mutation is sent again while its result is unknown, as the docs say."""
    answers = [server.ask(change.mutation)]
    while set(answers[-1].codes) & PATIENT and len(answers) < 11:
        answers.append(server.ask(change.mutation))
    answer = answers[-1]
    expected = (text(change.old), text(change.new), len(change.whole.below(change.old)) + 1)
    made = (answer.json["data"] or {}).get("made")
    move: dict[str, Any] = (made and made["move"]) or {}
    if (move.get("from"), move.get("to"), move.get("nodes")) != expected:
        script = [f"{change.mutation}: {one.codes}" for one in answers]
        script.append(str(server.ask("{ moves(hierarchy: THING) { id from to state } }").json))
        raise Wrong("`move` in a payload is the large move", script, expected, answer.json)
    return move


def _written_meanwhile(server: Server, change: Change, move: str) -> Counter[str]:
    """Writes while the subtree is copied: to the subtree and its new place a CONFLICT, elsewhere as usual."""
    leaf = change.whole.below(change.old)[-1]
    update = f'updateThing(input: {{node: {{path: "{text(leaf)}"}}, name: "other"}}) {{ node {{ id }} }}'
    away = "V" if change.tree != "V" else "T"
    move_away = f'moveThing(input: {{node: {{path: "{change.tree}"}}, to: {{parent: {{path: "{away}"}}}}}})'
    refused = [f"{move_away} {{ node {{ id }} }}", *([] if change.restored else [update])]
    if change.new:
        where = f'parent: {{path: "{text(change.new[:-1])}"}}, key: "{change.new[-1]}", name: "x"'
        refused.append(f"createThing(input: {{{where}, attributes: {{box: {{}}}}}}) {{ node {{ id }} }}")
    counts: Counter[str] = Counter()
    for field in refused:
        answer = server.ask(f"mutation {{ {field} }}")
        state = server.ask(f'{{ move(id: "{move}") {{ state }} }}').json.get("data", {}).get("move", {})["state"]
        if state == "COPYING" and answer.codes != ["CONFLICT"] and not set(answer.codes) & PATIENT:
            sentence = "While the move is in progress nobody else can write to the nodes of the subtree"
            raise Wrong(sentence, [change.mutation, f"mutation {{ {field} }}"], "CONFLICT", answer.json)
        counts["writes to what is moved"] += 1
    for _ in range(3):
        _taken_meanwhile(server, change, move)
        counts["unique values of what is moved"] += 1
    other = server.ask(
        'mutation { updateThing(input: {node: {path: "T/rest"}, attributes: {box: {small: 1}}}) { node { id } } }'
    )
    if other.errors and not set(other.codes) & PATIENT:
        raise Wrong("All other nodes are written as usual", [change.mutation, "update T/rest"], "made", other.json)
    return counts


def _taken_meanwhile(server: Server, change: Change, move: str) -> None:
    """A dry run that takes a unique value of the subtree, which is refused as long as that has it, or is losing it."""
    code = next(iter(sorted(change.whole.codes)))
    field = f'updateThing(dryRun: true, input: {{node: {{path: "T/rest"}}, attributes: {{box: {{sku: "{code}"}}}}}})'
    text = f"mutation {{ {field} {{ node {{ id }} }} }}"
    before = _state_of(server, move)
    answer = server.ask(text)
    after = _state_of(server, move)
    is_gone = change.new is None and after != "COPYING"
    is_missing = change.restored and before not in ("SWEEPING", "DONE")
    allowed = [["TAKEN"], ["CONFLICT"], *([[]] if is_gone or is_missing else [])]
    if answer.codes not in allowed and not set(answer.codes) & PATIENT:
        raise Wrong(CONFLICT, [change.mutation, f"{before}, then {after}: {text}"], allowed, answer.json)


def _state_of(server: Server, move: str) -> str | None:
    """The state of a large move; None if the server says to try again."""
    found = server.ask(f'{{ move(id: "{move}") {{ state }} }}').json.get("data") or {}
    return (found.get("move") or {}).get("state")


def _end_of_log(server: Server, tree: str) -> str:
    *_, last = pages_of_log(server, f'tree: "{tree}"', "changes { event }")
    return str(last["cursor"])


def _wait_until_done(server: Server, change: Change, move: str, watch: Watch) -> None:
    state: Any = None

    def is_over() -> bool:
        nonlocal state
        answer = server.ask(f'{{ move(id: "{move}") {{ state reason nodes written }} }}')
        state = answer.json["data"] and answer.json["data"]["move"]
        return bool(watch.wrong) or bool(state and state["state"] in ("DONE", "UNDONE"))

    expected = "UNDONE" if change.kept else "DONE"

    def problem() -> Wrong:
        return Wrong(PROMISES[2][1], [change.mutation, "kill -9 of its server"], expected, state)

    eventually(is_over, FINISHED_SECONDS, problem)
    watch.raise_wrong()
    if state["state"] != expected or bool(state["reason"]) is not bool(change.kept):
        raise Wrong(UNDONE, [f"unique values: {sorted(change.before.codes)}", change.mutation], expected, state)


def _all_after(servers: list[Server], change: Change, watch: Watch) -> Counter[str]:
    """When the move is done, every question has the answer of the state after it, on each server."""
    counts: Counter[str] = Counter()
    for server in servers:
        for number in range(0, len(watch.pool), 7):
            watch.compare(server, watch.pool[number : number + 7], time.monotonic() - 1)
            counts["answers after the end"] += 1
    if change.new is None or change.restored:
        leaf = change.whole.nodes[change.whole.below(change.old)[-1]]
        asked = f'deletedNode(id: "thing:{leaf.id}") {{ nodeId path }} thing(id: "thing:{leaf.id}") {{ revision }}'
        gone: Answer = servers[0].ask(f"{{ {asked} }}")
        if (gone.data["deletedNode"] is None) is not (change.restored and not change.kept):
            raise Wrong("`deletedNode` finds a node of a large deletion", [change.mutation], leaf.id, gone.json)
        again = servers[1].ask(change.mutation)
        if change.kept and "was undone" not in str(again.json):
            raise Wrong(REPEATED, [change.mutation] * 2, "CONFLICT", again.json)
        made = (again.json.get("data") or {}).get("made") or {}
        if change.restored and not change.kept and made.get("move") is None:
            raise Wrong("every repetition returns the same payload", [change.mutation] * 2, "its move", again.json)
    return counts
