"""A session: steps made on two servers of one store, each answer compared with the model."""

import json
import random
import re
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.outside.failures import Wrong
from tests.outside.known import KNOWN
from tests.outside.model import batches, operations, promises, reads
from tests.outside.model.batches import Outcome
from tests.outside.model.fields import answer, difference, text_of
from tests.outside.model.operations import CONTENT
from tests.outside.model.reads import Expected
from tests.outside.model.trees import Node, Trees, found
from tests.outside.model.values import ATTRIBUTES
from tests.outside.processes import Answer, Place, Server

Step = dict[str, Any]
CLOCK = timedelta(seconds=30)
MOVE_SECONDS = 90.0
WRITTEN = [
    {"field": name}
    for name in ("id", "path", "key", "name", "names", "level", "levelName", "depth", "revision", "label")
]
WRITTEN += [{"field": name} for name in dict.fromkeys([*ATTRIBUTES["BOX"], *ATTRIBUTES["CARD"]])]
FAULTS = "userErrors { code message field rule edit }"
NODE = f"{{ updatedAt changedBy {text_of(WRITTEN)} }}"
PLAN = "plan { nodes transactions writeUnits }"
PAYLOADS = {
    "create": f"node {NODE} {PLAN} {FAULTS}",
    "update": f"node {NODE} {PLAN} {FAULTS}",
    "move": f"node {NODE} previousParent {{ id }} move {{ id state }} {PLAN} {FAULTS}",
    "delete": f"node {NODE} previousParent {{ id }} move {{ id state }} {PLAN} {FAULTS}",
    "edit": f"nodes {NODE} {PLAN} {FAULTS}",
}
FIELDS = {
    "create": {"parent", "key", "name", "names", "level", "attributes", "id"},
    "update": {"node", "name", "names", "attributes", "expectedRevision"},
    "move": {"node", "to", "key", "position", "expectedRevision"},
    "delete": {"node", "policy", "expectedRevision"},
}
HIERARCHIES = "hierarchies { name }"


class Session:
    """Two servers, what they were told, and what they should hold."""

    def __init__(self, place: Place, store: str | None = None, servers: int = 2) -> None:
        self.place, self.store = place, store or place.store
        store = self.store
        settle = {"settle_seconds": "0.2"} if place.kind == "dynamodb" else {}
        self.servers: list[Server] = [place.server(store, **settle) for _ in range(servers)]
        self.trees = Trees()
        self.ids: dict[int, str] = {}
        self.steps: list[Step] = []
        self.counts: Counter[str] = Counter()
        self.once: dict[str, tuple[Step, list[Node]]] = {}
        self.shown: list[str] = []
        self.cursors: dict[str, tuple[str, int]] = {}
        self.kept: list[Any] = []

    def close(self) -> None:
        for server in self.servers:
            server.stop()

    # Mutations

    def change(self, step: Step) -> None:
        """Make a mutation, and compare its payload, its user errors and what is remembered of it."""
        self.steps.append(step)
        seen = self._outlook(step)
        text, sent = operations.request(step, PAYLOADS, self.ids)
        self.shown.append(f"server {step['server']}: {text.split('{', 2)[1].split('(')[0].strip()} {_brief(sent)}")
        forecast = self._forecast(step) if step.get("forecast") else None
        got = self.server(step).ask(text, sent)
        body = got.json
        if got.errors or not (body.get("data") or {}).get("made"):
            self.wrong(promises.USER_ERRORS, "a payload, perhaps with user errors, and no other error", body)
        payload = body["data"]["made"]
        faults = payload["userErrors"]
        self.counts[f"{step['do']}, {'rejected' if faults else 'dry run' if step.get('dry') else 'made'}"] += 1
        if step["do"] == "edit":
            self.counts["edits in batches"] += len(step["edits"])
        if forecast is not None and _told(forecast) != _told(faults):
            self.wrong(promises.SAME_FAULTS, forecast, faults)
        if step.get("once") in self.once:
            self._repeated(step, payload, faults)
        elif seen.faults or faults:
            self._rejected(step, seen, payload)
        elif step.get("dry"):
            self._dry(step, payload)
        else:
            self._made(step, payload, body)

    def _outlook(self, step: Step) -> Outcome:
        """What is right: faults, or none, and what the docs leave open."""
        if step.get("once") in self.once:
            return Outcome()
        if step["do"] == "edit":
            return batches.outcome(self.trees, self.ids, step["edits"])
        faults, may = operations.rules(self.trees, step, self.ids)
        return Outcome(faults, may)

    def _forecast(self, step: Step) -> Any:
        """The user errors of a dry run of a step, which is then made."""
        text, sent = operations.request({**step, "dry": True}, PAYLOADS, self.ids)
        got = self.server(step).ask(text, sent)
        if got.errors or got.json["data"]["made"].get("node") or got.json["data"]["made"].get("nodes"):
            self.wrong(promises.FORECAST, "a plan or user errors alone", got.json)
        return got.json["data"]["made"]["userErrors"]

    def _rejected(self, step: Step, seen: Outcome, payload: Any) -> None:
        """All faults that are known are told, each at a field of the input, and nothing else."""
        faults = payload["userErrors"]
        # What is larger than a transaction, or has no possible path, is not looked at any further.
        ends = seen.may & {error["code"] for error in faults} & {"TOO_LARGE", "BAD_PATH"}
        needed = [] if ends else _needed(seen)
        left = [group for group in needed if not any(one.is_in(faults) for one in group)]
        strange = [
            error for error in faults
            if not (seen.is_open or error["code"] in seen.may or any(one.is_in([error]) for one in seen.faults))
        ]  # fmt: skip
        if not faults or left or strange or any(payload.get(part) for part in ("node", "nodes", "plan", "move")):
            self.wrong(promises.ALL_FAULTS, [" or ".join(map(str, one)) for one in needed] or sorted(seen.may), payload)
        for error in faults:
            self._check_field(step, error)

    def _check_field(self, step: Step, error: Node) -> None:
        """ "`field` is the path to the value in the input"; `edit` is the place of the edit in a batch."""
        is_batch = step["do"] == "edit"
        whole = error["field"] is None or error["field"] == ["edits"]
        if is_batch and error["edit"] is None and whole:
            return
        if (error["edit"] is not None) != is_batch or (is_batch and not 0 <= error["edit"] < len(step["edits"])):
            self.wrong(promises.ALL_FAULTS, "the place of an edit" if is_batch else "no place of an edit", error)
        edit = step["edits"][error["edit"]] if is_batch else step
        if error["field"] is None:
            return
        first, *rest = error["field"]
        level = edit.get("level")
        fits = first in FIELDS[edit["do"]] and (not rest or first == "attributes")
        if rest:
            fits = fits and level and rest[0] == level.lower() and rest[1:2] <= [*rest[1:2]]
            fits = fits and (len(rest) == 1 or rest[1] in ATTRIBUTES[level])
        if not fits:
            self.wrong(promises.ALL_FAULTS, "a path of the input", error)

    def _dry(self, step: Step, payload: Any) -> None:
        if payload.get("node") or payload.get("nodes") or payload["plan"] is None:
            self.wrong(promises.FORECAST, "a plan", payload)
        if step["do"] == "move":
            node = found(self.trees, step["node"], self.ids)
            assert node
            nodes = 1 + len(self.trees.descendants(node["id"]))
            if payload["plan"]["nodes"] not in (nodes, 1, 0) and "position" not in step:
                self.wrong(promises.FORECAST, nodes, payload)

    def _repeated(self, step: Step, payload: Any, faults: list[Node]) -> None:
        """ "With an `idempotencyKey` … it is made only once, and every repetition returns the same payload." """
        first, written = self.once[step["once"]]
        same = all(first.get(name) == step.get(name) for name in {*first, *step} - {"n", "server"})
        nodes = payload["nodes"] if step["do"] == "edit" else [payload["node"]]
        if not same:
            if not faults or nodes not in ([None], None):
                self.wrong(promises.ONE_KEY, "a user error", payload)
            return
        if faults or nodes is None or None in nodes or len(nodes) != len(written):
            self.wrong(promises.REPEATED, written, payload)
        for one, other in zip(written, nodes, strict=True):
            problem = difference(one, {name: value for name, value in other.items() if name in one})
            if problem:
                self.wrong(promises.REPEATED, *problem[1:])

    def _made(self, step: Step, payload: Any, body: Any) -> None:
        nodes = payload["nodes"] if step["do"] == "edit" else [payload["node"]]
        if not nodes or None in nodes or payload["plan"] is not None:
            self.wrong(promises.ATOMIC, "nodes without errors", body)
        if payload.get("move"):
            self._await_move(step, payload["move"])
        written = self._batch(step, nodes) if step["do"] == "edit" else [self._one(step, payload)]
        for expected, node in zip(written, nodes, strict=True):
            problem = difference(expected, {name: value for name, value in node.items() if name in expected})
            if problem:
                self.wrong(promises.PAYLOAD, f"{problem[0]}: {problem[1]!r}", problem[2])
        self._learn_deletions()
        if step.get("once"):
            kept = [{**one, "updatedAt": node["updatedAt"]} for one, node in zip(written, nodes, strict=True)]
            self.once[step["once"]] = (step, kept)
        self._learn_places(step)

    def _one(self, step: Step, payload: Any) -> Node:
        """Make a step on the model; its node as the payload has to have it."""
        got, trees = payload["node"], self.trees
        before = found(trees, step["node"], self.ids) if "node" in step else None
        former = before["parent"] if before else None
        if step["do"] == "create":
            self._check_new_id(step, got["id"])
        written = _snapshot(self, before) if before and step["do"] == "delete" else None
        is_written = step["do"] == "create" or (step["do"] == "update" and before and trees.changed(before, step))
        at = self._time(got) if is_written else ""
        node = operations.apply(trees, step, self.ids, got["id"], at)
        if step["do"] in ("move", "delete") and payload["previousParent"] != (former and {"id": former}):
            self.wrong(promises.FORMER_PARENT, former, payload["previousParent"])
        return written or _snapshot(self, node)

    def _batch(self, step: Step, nodes: list[Node]) -> list[Node]:
        """Make a batch on the model. Of a node that is deleted in it, only the id is compared."""
        if len(nodes) != len(step["edits"]):
            self.wrong(promises.BATCH, len(step["edits"]), nodes)
        for edit, got in zip(step["edits"], nodes, strict=True):
            if edit["do"] == "create":
                self._check_new_id(edit, got["id"])
        at = max(node["updatedAt"] for node in nodes)
        logged = {tree: len(log) for tree, log in self.trees.logs.items()}
        seen = batches.simulate(self.trees, self.ids, step["edits"], lambda place: str(nodes[place]["id"]), at)
        assert not seen.faults
        for tree, log in self.trees.logs.items():
            for entry in log[logged.get(tree, 0) :]:
                entry["batch"] = step["n"]
        alive = (None if id in seen.gone else self.trees.nodes.get(id) for id in seen.ids)
        return [_snapshot(self, node) if node else {"id": id} for id, node in zip(seen.ids, alive, strict=True)]

    def _check_new_id(self, step: Step, got: str) -> None:
        id = operations.sent_id(step, self.ids)
        if id and got != f"thing:{id}":
            self.wrong(promises.NEW_ID, id, got)
        if not id and (got in self.trees.nodes or got in self.trees.deleted):
            self.wrong(promises.NEW_ID, "a new id", got)

    def _time(self, node: Node) -> str:
        """The time of a write, which has to be now."""
        at = str(node["updatedAt"])
        if abs(datetime.now(UTC) - datetime.fromisoformat(at)) > CLOCK:
            self.wrong(promises.WRITTEN_AT, "now", node)
        return at

    def _learn_deletions(self) -> None:
        new = [id for id, each in self.trees.deleted.items() if each["deletedAt"] == ""]
        for id in new:
            query = f"{{ deletedNode(id: {json.dumps(id)}) {{ deletedAt }} }}"
            gone = self.servers[0].ask(query).data["deletedNode"]
            if gone:
                self.trees.deleted[id]["deletedAt"] = gone["deletedAt"]

    def _await_move(self, step: Step, move: Node) -> None:
        """The end of a large move: "Query it if the mutation returned before the end"."""
        end = time.monotonic() + MOVE_SECONDS
        self.counts["large moves"] += 1
        while time.monotonic() < end and move["state"] != "DONE":
            time.sleep(0.2)
            move = self.server(step).ask(f"{{ move(id: {json.dumps(move['id'])}) {{ id state reason }} }}").data["move"]
        if move["state"] != "DONE":
            self.wrong(promises.LARGE_MOVE, "DONE", move)

    def _learn_places(self, step: Step) -> None:
        """Where nodes came to among siblings that somebody had reordered; the others have to keep their order."""
        for group, new in self.trees.unplaced.items():
            if group[0] and group[0] not in self.trees.nodes:
                continue  # which a later edit of the batch deleted
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
            problem = self._problem(expected, got)
            if problem and got.json.get("data") is None and "wrong:" in beside:
                self.shown.append(f"server {number}: {text}")
                self.wrong(promises.BESIDE, *problem)
            if problem:
                if expected.known:
                    assert expected.known in KNOWN
                    self.counts[f"known: {expected.known}"] += 1
                    return
                self.shown.append(f"server {number}: {text}")
                self.wrong(expected.promise, *problem)

    def _failing(self, chance: random.Random) -> str:
        """A root field that is an error: "the rest of the response is valid"."""
        nodes = list(self.trees.nodes.values())
        node = chance.choice(nodes) if nodes else None
        wrong = 'wrong: things(after: "nonsense") { totalCount }'
        if node and chance.random() < 0.5:
            level = {"BOX": "card", "CARD": "box"}[node["level"]]
            wrong = f"wrong: {level}(path: {json.dumps(self.trees.path(node))}) {{ id }}"
        elif chance.random() < 0.4:
            wrong = chance.choice(('wrong: thing(path: "a//b") { id }', 'wrong: searchThings(text: "") { complete }'))
        return wrong

    def _problem(self, expected: Expected, got: Answer) -> tuple[Any, Any] | None:
        body = got.json
        errors = [error for error in body.get("errors", ()) if (error.get("path") or ["read"])[0] == "read"]
        codes = {error["extensions"]["code"] for error in errors}
        if codes != expected.codes if not expected.known else not codes <= {"WRONG_LEVEL"}:
            return sorted(expected.codes) or "no error", [error["message"] for error in errors] or body
        if body.get("data") is None:
            return "data of this field, whatever another field's error is", body
        found = difference(expected.data, body["data"]["read"])
        return (f"{found[0]} {found[1]!r}", found[2]) if found else None

    def wrong(self, promise: tuple[str, str], expected: object, got: object) -> None:
        raise Wrong(f"{promise[0]}: {promise[1]}", self.shown, expected, got)


def _brief(sent: dict[str, Any]) -> str:
    """Variables as JSON, with long runs of one character as its number."""
    text = re.sub(r"(.)\1{59,}", lambda run: f"{run[1]}[{len(run[0])} times]", json.dumps(sent, ensure_ascii=False))
    return text if len(text) < 4_000 else text[:4_000] + "…"


def _snapshot(session: Session, node: Node) -> Node:
    return {**answer(session.trees, node, WRITTEN), "changedBy": None}


def _told(faults: list[Node]) -> list[Any]:
    """User errors without their texts, in any order."""
    return sorted((one["code"], one["field"] or [], one["rule"] or "", one["edit"] or 0) for one in faults)


def _needed(seen: Outcome) -> list[list[operations.Fault]]:
    """The faults that have to be told, of each list at least one."""
    stages = {one.stage for one in seen.faults}
    if stages & {operations.FORM, operations.NAMES} or not seen.is_open:
        # Ids and targets are followed through a batch before anything else is looked at.
        return operations.required(seen.faults)
    first = min((one.edit or 0 for one in seen.faults), default=0)
    return operations.required([one for one in seen.faults if (one.edit or 0) == first or one.stage == CONTENT])
