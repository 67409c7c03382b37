"""A session: steps made on two servers of one store, each answer compared with the model."""

import json
import random
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.outside.failures import Wrong
from tests.outside.model import changes, codes, fields, operations, promises, reads, rules
from tests.outside.model.fields import answer, difference, text_of
from tests.outside.model.reads import Expected
from tests.outside.model.rules import Faults
from tests.outside.model.trees import Node, Trees
from tests.outside.model.values import ATTRIBUTES
from tests.outside.processes import Place, Server
from tests.processes import Answer

Step = dict[str, Any]
LISTED_ERRORS = 100  # of one code (reference/errors.md)
CLOCK = timedelta(seconds=300)
MOVE_SECONDS = 90.0
WRITTEN = [
    {"field": name}
    for name in ("id", "path", "key", "name", "names", "level", "levelName", "depth", "revision", "label")
]
WRITTEN += [{"field": name} for name in dict.fromkeys(name for one in ATTRIBUTES.values() for name in one)]
PAYLOAD = f"node {{ updatedAt changedBy {text_of(WRITTEN)} }} plan {{ nodes transactions writeUnits }}"
LARGE = "move { id state }"  # in payloads of moves, deletions and restores alone
MOVED = f"previousParent {{ id }} {LARGE}"
RANKED_AGAIN = 40  # siblings at most, so that there is room for another one
HIERARCHIES = "hierarchies { name }"


class Session:
    """Two servers, what they were told, and what they should hold."""

    def __init__(self, place: Place, store: str | None = None, servers: int = 2) -> None:
        self.place, self.store = place, store or place.store
        store = self.store
        # A large move waits for as long as a request may take.
        brief = {"settle_seconds": "0.2", "request_seconds": "5"} if place.kind == "dynamodb" else {}
        self.servers: list[Server] = [place.server(store, **brief) for _ in range(servers)]
        self.trees = Trees()
        self.ids: dict[int, str] = {}
        self.steps: list[Step] = []
        self.counts: Counter[str] = Counter()
        self.once: dict[str, tuple[Step, Node | list[Any]]] = {}
        self.sent: dict[str, Any] = {}  # inputs of batches, and variables, by their keys, as they are repeated
        self.shown: list[str] = []
        self.cursors: dict[str, tuple[str, int]] = {}
        self.kept: list[Any] = []

    def close(self) -> None:
        for server in self.servers:
            server.stop()

    # Mutations

    def change(self, step: Step) -> None:
        """Make a mutation, and compare its payload, its error and what is remembered of it."""
        self.steps.append(step)
        more = {"create": "", "update": "", "restore": LARGE}.get(step["do"], MOVED)
        text, sent = operations.request(step, f"{PAYLOAD} {more}", self.ids)
        once = step.get("once", "")
        if once in self.sent and is_same(self.once[once][0], step):
            sent = self.sent[once]  # a node that was named by a unique value may have another one since
        elif step.get("by") == "sku":
            sent["input"] = codes.named(self.trees, step, sent["input"])
            self.counts["mutations that name nodes by unique values"] += '{"sku"' in json.dumps(sent)
        self.shown.append(
            f"server {step['server']}: {text.split('{', 1)[1].split('{')[0].strip()} {operations.brief(sent)}"
        )
        faults = rules.rules(self.trees, step, self.ids)
        got = self.server(step).ask(text, sent)
        body = got.json
        payload = (body.get("data") or {}).get("made")
        errors = got.errors
        self.counts[f"{step['do']}, {'dry run' if step.get('dry') else 'rejected' if payload is None else 'made'}"] += 1
        if step.get("once") in self.once:
            self.repeated(step, payload, errors)
        elif faults.below and payload and payload.get("move") and step["do"] == "restore":
            self._undone(step, faults, payload["move"])
        elif faults or payload is None:
            self._rejected(faults, payload, errors)
        elif step.get("dry"):
            self._dry(step, payload, errors)
        else:
            self._made(step, payload, errors, body)
        if once in self.once:
            self.sent.setdefault(once, sent)

    def _rejected(self, faults: Faults, payload: Any, errors: list[Any]) -> None:
        if payload is not None or not faults.agree(errors):
            self.wrong(promises.FAULTS, str(faults), errors or payload)
        self.counts["unique values that others have"] += any(one["extensions"]["code"] == "TAKEN" for one in errors)

    def _dry(self, step: Step, payload: Any, errors: list[Any]) -> None:
        promise = promises.FORECAST
        if payload["node"] or errors:
            self.wrong(promise, "a plan alone", [payload, errors])
        elif step["do"] in ("move", "rename"):
            node = self.trees.at(step["path"])
            assert node
            nodes = 1 + len(self.trees.descendants(node["id"]))
            if payload["plan"]["nodes"] not in (nodes, 0):
                self.wrong(promise, nodes, payload)
        elif step["do"] == "restore":
            gone = self.trees.restored_with(f"thing:{rules.sent_id(step, self.ids)}")
            most = gone[0]["below"] + 1 + RANKED_AGAIN  # of those that were deleted with it, some may be elsewhere
            if not len(gone) <= payload["plan"]["nodes"] <= most:
                self.wrong(promise, [len(gone), most], payload)

    def repeated(self, step: Step, payload: Any, errors: list[Any]) -> None:
        """ "With an `idempotencyKey` … it is made only once, and every repetition returns the same payload." """
        promise = promises.REPEATED
        first, written = self.once[step["once"]]
        what = "node" if isinstance(written, dict) else "nodes"
        if not is_same(first, step):
            if payload is not None or not errors:
                self.wrong(promises.ONE_KEY, "an error", payload)
        elif payload is None or payload[what] is None:
            self.wrong(promise, written, errors)
        else:
            found = difference(written, payload[what])
            if found or errors:
                self.wrong(promise, *(found[1:] if found else (written, errors)))

    def _made(self, step: Step, payload: Any, errors: list[Any], body: Any) -> None:
        node = payload["node"]
        if errors or node is None or payload["plan"] is not None:
            self.wrong(promises.ATOMIC, "a node without errors", body)
        if payload.get("move"):
            self._await_move(step, payload["move"])
        before = self.trees.at(step["path"]) if "path" in step else None
        former = before["parent"] if before else None
        expected = _applied(self, step, node, before)
        found = difference(expected, {name: value for name, value in node.items() if name in expected})
        if found:
            self.wrong(promises.PAYLOAD, f"{found[0]}: {found[1]!r}", found[2])
        parent = {"id": former} if former else None
        if step["do"] in ("move", "delete") and payload["previousParent"] != parent:
            self.wrong(promises.FORMER_PARENT, parent, payload["previousParent"])
        if step.get("once"):
            self.once[step["once"]] = (step, {**expected, "updatedAt": node["updatedAt"]})
        self.learn_places(step)

    def _undone(self, step: Step, faults: Faults, move: Node) -> None:
        """A large restore that began although there is a fault of a node below."""
        move = self._await_move(step, move, "UNDONE")
        if step.get("dry") or not move["reason"]:
            self.wrong(promises.LARGE_MOVE, str(faults), move)
        self.counts["large restores that were undone"] += 1

    def _await_move(self, step: Step, move: Node, state: str = "DONE") -> Node:
        """The end of a large move: "Query it if the mutation returned before the end"."""
        end = time.monotonic() + MOVE_SECONDS
        self.counts["large restores" if step["do"] == "restore" else "large moves"] += 1
        text = f"{{ move(id: {json.dumps(move['id'])}) {{ id state reason }} }}"
        move = self.server(step).ask(text).data["move"]
        while time.monotonic() < end and move["state"] not in ("DONE", "UNDONE"):
            time.sleep(0.2)
            move = self.server(step).ask(text).data["move"]
        if move["state"] != state:
            self.wrong(promises.LARGE_MOVE, state, move)
        return move

    def learn_places(self, step: Step) -> None:
        """Where nodes came to among siblings that somebody had reordered; the others have to keep their order."""
        for group, new in self.trees.unplaced.items():
            order = self.trees.siblings[group]
            where = f"thing(id: {json.dumps(group[0])}) {{ " if group[0] else ""
            field = f"{'children' if group[0] else 'things'}(level: {group[1]}) {{ nodes {{ id }} }}"
            data = self.server(step).ask(f"{{ {where}{field} {'}' if where else ''} }}").data
            got = [each["id"] for each in (data["thing"]["children"] if group[0] else data["things"])["nodes"]]
            stay = [each for each in order if each not in new]
            if sorted(got) != sorted(order) or [each for each in got if each in stay] != stay:
                self.wrong(promises.POSITION, order, got)
            self.trees.siblings[group] = got
        self.trees.unplaced.clear()

    # Reads

    def server(self, step: Step) -> Server:
        return self.servers[int(step["server"]) % len(self.servers)]

    def read(self, step: Step) -> None:
        """Ask for a field alone, beside another one, and beside one with an error."""
        self.steps.append(step)
        expected = reads.expected(self.trees, step, self.ids)
        self.compare(self.server(step), expected, step.get("seed", len(self.steps)))

    def compare(self, server: Server, expected: Expected, seed: int) -> None:
        number = self.servers.index(server)
        for beside in ("", HIERARCHIES, self._failing(random.Random(seed))):
            text = f"{{ read: {expected.text} {beside} }}"
            got = server.ask(text)
            self.counts["reads compared"] += 1
            self.counts["look-ups by unique values"] += expected.codes_asked
            problem = self._problem(expected, got)
            if problem and got.json.get("data") is None and "wrong:" in beside:
                self.shown.append(f"server {number}: {text}")
                self.wrong(promises.BESIDE, *problem)
            if problem:
                self.shown.append(f"server {number}: {text}")
                self.wrong(expected.promise, *problem)

    def _failing(self, chance: random.Random) -> str:
        """A root field that is an error: "the rest of the response is valid"."""
        nodes = list(self.trees.nodes.values())
        node = chance.choice(nodes) if nodes else None
        wrong = 'wrong: things(after: "nonsense") { totalCount }'
        if node and chance.random() < 0.5:
            level = {"BOX": "card", "CARD": "slip", "SLIP": "box"}[node["level"]]
            wrong = f"wrong: {level}(path: {json.dumps(self.trees.path(node))}) {{ id }}"
        elif chance.random() < 0.4:
            wrong = chance.choice(('wrong: thing(path: "a//b") { id }', 'wrong: searchThings(text: "") { complete }'))
        return wrong

    def _problem(self, expected: Expected, got: Answer) -> tuple[Any, Any] | None:
        body = got.json
        errors = [error for error in body.get("errors", ()) if (error.get("path") or ["read"])[0] == "read"]
        failures = {*fields.failures(expected.data, ("read",))}
        known = {(place, code) for place, code in failures if code}
        if len(known) >= LISTED_ERRORS:  # of which an error without a place says the number
            errors = [error for error in errors if "more" not in error["extensions"]]
        places = {(tuple(error.get("path") or ()), error["extensions"]["code"]) for error in errors}
        unknown = {place for place, code in failures if code is None}
        self.counts["lists of which the docs leave open what is in them"] += len(unknown)
        codes = {code for at, code in places - known if not any(at[: len(one)] == one for one in unknown)}
        missing = known - places if len(places) < LISTED_ERRORS else set()
        if codes != expected.codes or missing:
            promised = [*sorted(expected.codes), *sorted(missing, key=str)]
            return promised or "no error", [error["message"] for error in errors] or body
        if body.get("data") is None:
            return "data of this field, whatever another field's error is", body
        found = difference(expected.data, body["data"]["read"])
        return (f"{found[0]} {found[1]!r}", found[2]) if found else None

    def wrong(self, promise: tuple[str, str], expected: object, got: object) -> None:
        raise Wrong(f"{promise[0]}: {promise[1]}", self.shown, expected, got)


# What mutations do to the model


def is_same(first: Step, step: Step) -> bool:
    """Whether a step makes the same mutation as an earlier one, on whatever server."""
    return all(first.get(name) == step.get(name) for name in {*first, *step} - {"n", "server"})


def snapshot(session: Session, node: Node) -> Node:
    return {**answer(session.trees, node, WRITTEN), "changedBy": None}


def written_at(session: Session, node: Node) -> str:
    """The time of a write, which has to be now."""
    at = str(node["updatedAt"])
    if abs(datetime.now(UTC) - datetime.fromisoformat(at)) > CLOCK:
        session.wrong(promises.WRITTEN_AT, "now", node)
    return at


def check_id(session: Session, step: Step, got: Node) -> None:
    """The id of a new node is the one that was given, or a new one."""
    id = rules.sent_id(step, session.ids)
    promise = promises.NEW_ID
    if id and got["id"] != f"thing:{id}":
        session.wrong(promise, id, got["id"])
    if not id and (got["id"] in session.trees.nodes or got["id"] in session.trees.deleted):
        session.wrong(promise, "a new id", got["id"])
    session.ids[step["n"]] = got["id"]


def _applied(session: Session, step: Step, got: Node, before: Node | None) -> Node:
    """What a mutation does to the model; the node that its payload must have."""
    trees = session.trees
    if before and step["do"] == "delete":
        written = snapshot(session, before)
        changes.make(trees, step, before["id"], "")
        learn_deletion(session, before["id"])
        return written
    if step["do"] == "create":
        check_id(session, step, got)
    if step["do"] == "restore" and got["id"] != f"thing:{rules.sent_id(step, session.ids)}":
        session.wrong(promises.PAYLOAD, step["id"], got)
    writes = before is None or (step["do"] == "update" and trees.changed(before, step))
    id = got["id"] if before is None else before["id"]
    changes.make(trees, step, id, written_at(session, got) if writes else "")
    return snapshot(session, trees.nodes[id])


def learn_deletion(session: Session, id: str) -> None:
    """The time of a deletion, which all have that were deleted with a node."""
    gone = session.servers[0].ask(f"{{ deletedNode(id: {json.dumps(id)}) {{ deletedAt }} }}").data["deletedNode"]
    for each in session.trees.deleted.values():
        if each["deletedAt"] == "" and gone:
            each["deletedAt"] = gone["deletedAt"]
