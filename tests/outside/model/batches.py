"""Batches: several edits or none, each of which sees those before it.

A batch is a step with `edits`, which are steps themselves. Before it is sent, the edits are made in a copy of the
trees, each that has no fault; so their paths are those of their moment.
"""

import copy
import json
import random
import re
from typing import Any

from tests.outside.model import changes, codes, operations, promises, rules
from tests.outside.model.fields import OneOf, difference
from tests.outside.model.rules import Faults
from tests.outside.model.session import (
    PAYLOAD,
    RANKED_AGAIN,
    Session,
    check_id,
    learn_deletion,
    snapshot,
    written_at,
)
from tests.outside.model.trees import Node, Trees

Step = dict[str, Any]
NEW = "new"  # begins the ids of nodes in the copy whose ids the server will choose
KINDS = ("create",) * 4 + ("update",) * 4 + ("rename", "move", "move", "reorder", "delete")
PLACE = re.compile(r" at \[(\d+)\]")  # of an edit among the values of a variable
NODES = PAYLOAD.replace("node {", "nodes {", 1)


class Trial:
    """The edits of a batch made in a copy of the trees: their faults, and their inputs."""

    def __init__(self, trees: Trees, ids: dict[int, str]) -> None:
        self.trees = copy.deepcopy(trees)
        self.faults: list[Faults] = []
        self.inputs: list[Step] = []
        self.touched: set[str] = set()
        self.revisions = {id: node["revision"] for id, node in {**trees.nodes, **trees.deleted}.items()}
        self._ids = dict(ids)

    def take(self, step: Step) -> None:
        """The next edit, which changes nothing if it has a fault."""
        faults = rules.rules(self.trees, step, self._ids, self.revisions, several=True)
        self.faults.append(faults)
        verb = operations.MUTATIONS.get(step["do"], step["do"])
        self.inputs.append({verb: self._named(step, operations.input_of(step, self._ids))})
        if faults:
            return
        node = None if step["do"] == "create" else self.trees.at(step["path"])
        id = node["id"] if node else f"thing:{rules.sent_id(step, self._ids) or NEW + str(step['n'])}"
        below = [each["id"] for each in self.trees.descendants(id)] if node and step["do"] != "update" else []
        self.touched |= {id, *below}
        self.revisions.setdefault(id, 1)
        self._ids[step["n"]] = id
        changes.make(self.trees, step, id, "2026-01-01T00:00:00Z")

    def has_taken(self) -> bool:
        """Whether two nodes have one unique value after all edits, by which these are judged."""
        nodes = self.trees.nodes.values()
        return any(len(self.trees.with_sku(node["values"].get("sku"))) > 1 for node in nodes)

    def _named(self, step: Step, given: Step) -> Step:
        """The input with ids or unique values in the place of paths, where the step names its nodes by them."""
        if step.get("by") == "sku":
            return codes.named(self.trees, step, given)
        if step.get("by") == "id":
            nodes = [given.get("node"), given.get("parent"), (given.get("to") or {}).get("parent")]
            for one in nodes:
                node = self.trees.at(one["path"]) if one else None
                if one and node and not node["id"].startswith(f"thing:{NEW}"):
                    del one["path"]
                    one["id"] = node["id"]
        return given


def some_batch(chance: random.Random, trees: Trees, number: int, ids: dict[int, str]) -> Step:
    """Several edits, each chosen by what those before it leave."""
    step: Step = {"do": "batch", "n": number, "server": chance.randrange(2), "edits": []}
    trial = Trial(trees, ids)
    for edit in _passing(chance, trees, 10_100 + 100 * number):
        step["edits"].append(edit)
        trial.take(edit)
    for place in range(chance.choice((1, 2, 2, 3, 5, 8))):
        kind = chance.choice(KINDS) if trial.trees.nodes else "create"
        edit = operations.some_edit(chance, trial.trees, 10_000 + 100 * number + place, kind)
        node = None if kind == "create" else trial.trees.at(edit["path"])
        if isinstance(edit.get("id"), dict) and edit["id"]["of"] not in ids:
            del edit["id"]
        if "expected" in edit and node and node["id"] not in trees.nodes:
            del edit["expected"]
        elif "expected" in edit and node:
            edit["expected"] += trial.revisions[node["id"]] - node["revision"]
        if kind == "reorder" and node and (node["parent"], node["level"]) in trial.trees.unplaced:
            continue  # where a node comes to among siblings that were reordered, only the server knows
        if "by" not in edit and chance.random() < 0.5:
            edit["by"] = "id"
        step["edits"].append(edit)
        trial.take(edit)
        if trial.faults[-1] and chance.random() < 0.7:
            step["edits"].pop()  # most batches are made
            trial.faults.pop()
            trial.inputs.pop()
    if chance.random() < 0.15:
        step["dry"] = True
    elif chance.random() < 0.25:
        step["once"] = f"key-{number}-{chance.randrange(10**6)}"
    return step


def _passing(chance: random.Random, trees: Trees, number: int) -> list[Step]:
    """Now and then two nodes that change their unique values."""
    nodes = [node for node in trees.nodes.values() if "sku" in node["values"]]
    if len(nodes) < 2 or chance.random() < 0.6:
        return []
    one, other = chance.sample(nodes, 2)
    pairs = enumerate([(one, other), (other, one)], start=number - 2)
    return [
        {"do": "update", "n": n, "path": trees.path(to), "level": to["level"], "values": {"sku": of["values"]["sku"]}}
        for n, (to, of) in pairs
    ]


def make_batch(session: Session, step: Step) -> None:
    """Send a batch, and compare its payload, its faults and what it has changed."""
    session.steps.append(step)
    trial = Trial(session.trees, session.ids)
    for edit in step["edits"]:
        trial.take(edit)
    head = "$edits: [ThingEdit!]!, $dry: Boolean!, $once: String"
    field = "made: editThings(edits: $edits, dryRun: $dry, idempotencyKey: $once)"
    edits = session.sent.get(step.get("once", ""), trial.inputs)
    sent = {"edits": edits, "dry": step.get("dry", False), "once": step.get("once")}
    session.shown.append(f"server {step['server']}: editThings {operations.brief(sent)}")
    named = sum('{"sku"' in text for text in map(json.dumps, edits))
    session.counts["mutations that name nodes by unique values"] += named
    got = session.server(step).ask(f"mutation({head}) {{ {field} {{ {NODES} }} }}", sent)
    payload, errors = (got.json.get("data") or {}).get("made"), got.errors
    is_made = payload is not None and (payload["nodes"] is not None or payload["plan"] is not None)
    session.counts[f"batch, {'dry run' if step.get('dry') else 'made' if is_made else 'rejected'}"] += 1
    if step.get("once") in session.once:
        session.repeated(step, payload, errors)
    elif not is_made:
        _rejected(session, step, trial, errors)
    elif any(trial.faults) or trial.has_taken() or errors or not step["edits"]:
        session.wrong(promises.SEVERAL_FAULTS, [str(one) for one in trial.faults], errors or payload)
    elif step.get("dry"):
        _dry(session, trial, payload)
    else:
        _made(session, step, payload["nodes"], trial.inputs)


def _rejected(session: Session, step: Step, trial: Trial, errors: list[Any]) -> None:
    """The faults are those of the first edit that has any, and more of those after it, as they would be without it."""
    places = [error.get("edit") for error in errors]
    if not step["edits"] and places == [None]:
        return  # "1 to 100 `edits`"
    if any("first" in edit and "last" in edit for edit in step["edits"]):
        _unread(session, step, errors)
        return
    told = [str(one) for one in trial.faults]
    others = [error for error in errors if error["extensions"]["code"] != "TOO_LARGE"]
    if len(others) < len(errors) and session.place.kind != "sqlite":
        if not all(trial.faults[error["edit"]].allows(error) for error in others if error["edit"] is not None):
            session.wrong(promises.SEVERAL_FAULTS, told, errors)
        return
    if errors and {error["extensions"]["code"] for error in errors} == {"TAKEN"}:
        if any(trial.faults) or not trial.has_taken() or any(error["field"][-1] != "sku" for error in errors):
            session.wrong(promises.UNIQUE, told, errors)
        return
    if not errors or None in places or places != sorted(places):
        session.wrong(promises.SEVERAL_FAULTS, told, errors)
    first = places[0]
    for place, faults in enumerate(trial.faults):
        own = [error for error in errors if error["edit"] == place]
        is_right = all(map(faults.allows, own))
        if place == first and faults:
            is_right = faults.agree(own)
        if not is_right or (place < first and faults):
            session.wrong(promises.SEVERAL_FAULTS, told, errors)
        if place == first and not faults:
            return  # the docs do not say whether it fails, so not what follows from that


def _unread(session: Session, step: Step, errors: list[Any]) -> None:
    """Edits that the schema does not take, of which all are told with their places before any edit is looked at."""
    expected = [place for place, edit in enumerate(step["edits"]) if "first" in edit and "last" in edit]
    told = [PLACE.search(error["message"]) for error in errors]
    places = [found and int(found[1]) for found in told]
    if places != expected or {error["extensions"]["code"] for error in errors} != {"BAD_USER_INPUT"}:
        session.wrong(promises.UNREAD_EDITS, expected, errors)


def _dry(session: Session, trial: Trial, payload: Any) -> None:
    """A plan that counts a node once however many edits touch it."""
    if payload["nodes"] is not None or not 0 <= payload["plan"]["nodes"] <= len(trial.touched) + RANKED_AGAIN:
        session.wrong(promises.ONE_PLAN, len(trial.touched), payload)


def _made(session: Session, step: Step, nodes: list[Node], inputs: list[Any]) -> None:
    trees, last, kept = session.trees, dict[str, Node](), list[tuple[str, Node | None]]()
    if len(nodes) != len(step["edits"]):
        session.wrong(promises.SEVERAL_NODES, len(step["edits"]), nodes)
    for edit, got in zip(step["edits"], nodes, strict=True):
        node, gone = None if edit["do"] == "create" else trees.at(edit["path"]), None
        if node is None:
            check_id(session, edit, got)
        id = node["id"] if node else got["id"]
        if edit["do"] == "delete":
            assert node
            below = trees.descendants(id) if edit["policy"] != "REPARENT" else []
            last |= {each["id"]: snapshot(session, each) for each in (node, *below)}
            gone = last[id]
        writes = node is None or (edit["do"] == "update" and trees.changed(node, edit))
        changes.make(trees, edit, id, written_at(session, got) if writes else "")
        kept.append((id, gone))
    if missing := [id for id, node in trees.deleted.items() if node["deletedAt"] == ""]:
        learn_deletion(session, missing[0])
    expected = []
    for (id, gone), got in zip(kept, nodes, strict=True):
        now = snapshot(session, trees.nodes[id]) if id in trees.nodes else last[id]
        # A node that was deleted and given again is both.
        one = now if gone is None or gone == now else OneOf([gone, now])
        found = difference(one, {name: value for name, value in got.items() if name in now})
        if found:
            session.wrong(promises.SEVERAL_NODES, f"{found[0]}: {found[1]!r}", found[2])
        expected.append({**now, "updatedAt": got["updatedAt"]} if one is now else got)
    if step.get("once"):
        session.once[step["once"]] = (step, expected)
        session.sent[step["once"]] = inputs
    session.learn_places(step)
