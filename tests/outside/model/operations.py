"""Random mutations, and the requests that make them.

A step is a dictionary that says everything, so that a script of steps can be made again on a new store, also in part:
then a step whose node is missing is one that has to be rejected.
"""

import json
import random
import re
from collections.abc import Iterator
from typing import Any

from tests.outside.model import values
from tests.outside.model.amounts import FIELDS, some_additions
from tests.outside.model.rules import SAFE_BYTES, sent_id
from tests.outside.model.trees import LEVELS, Trees

Step = dict[str, Any]
ARGUMENTS = {
    "create": ("parent", "key", "name", "names", "id", "attributes"),
    "update": ("path", "name", "names", "attributes", "add"),
    "rename": ("path", "key"),
    "move": ("path", "to"),
    "reorder": ("path", "first", "last", "before", "after"),
    "delete": ("path", "policy"),
    "restore": ("id", "to", "key"),
}
MUTATIONS = {"rename": "move", "reorder": "move"}


def some_step(
    chance: random.Random, trees: Trees, number: int, earlier: list[Step], *, of_deletions: bool = False
) -> Step:
    """An operation, most of the time one that is right; with `of_deletions` often a deletion or a restore."""
    paths = [trees.path(node) for node in trees.nodes.values()]
    size = len(paths)
    kinds = ["create"] * (9 if size < 12 else 4 if size < 50 else 1)
    kinds += ["update"] * 3 + ["rename"] * 2 + ["move"] * 3 + ["reorder"] * 2 + ["delete"] * (2 if size < 40 else 4)
    kinds += ["restore"] * (3 if trees.deleted else 0)
    if of_deletions:
        kinds = [*MAKERS, "create", "move", "rename", *["delete"] * 3, *["restore"] * (6 if trees.deleted else 0)]
    if chance.random() < 0.12 and any("once" in step for step in earlier):
        again = chance.choice([step for step in earlier if "once" in step])
        return {**again, "n": number, "server": chance.randrange(2), **_varied(chance, again)}
    step = some_edit(chance, trees, number, chance.choice(kinds) if paths or of_deletions else "create")
    if of_deletions and step["do"] == "delete" and chance.random() < 0.7:
        parents = [trees.path(node) for node in trees.nodes.values() if trees.children(node["id"])]
        step |= {"path": chance.choice(parents or paths or ["nowhere"]), "policy": "CASCADE"}
        step.pop("expected", None)
    step["server"] = chance.randrange(2)
    if chance.random() < 0.08:
        step["dry"] = True
    elif chance.random() < 0.15:
        step["once"] = f"key-{number}-{chance.randrange(10**6)}"
        node = trees.at(step["path"]) if step["do"] == "update" else None
        if node and chance.random() < 0.4:
            # A mutation that changes nothing is made only once, too.
            step |= {"level": node["level"], "name": node["name"], "values": {}}
            step.pop("names", None)
            step.pop("add", None)
    return step


def some_edit(chance: random.Random, trees: Trees, number: int, kind: str) -> Step:
    """An edit of a kind, most of the time one that is right."""
    paths = [trees.path(node) for node in trees.nodes.values()]
    kind = kind if paths or kind == "restore" else "create"
    step: Step = {"do": kind, "n": number, **MAKERS[kind](chance, trees, paths)}
    skus = [one["values"]["sku"] for one in trees.deleted.values() if "sku" in one["values"]]
    if kind in ("create", "update") and skus and chance.random() < 0.2:
        step["values"]["sku"] = chance.choice(skus)  # so that its node cannot come back with it
    if "path" in step and chance.random() < 0.15:
        node = trees.at(step["path"])
        right = node["revision"] if node else 1
        step["expected"] = right if chance.random() < 0.6 else right + chance.choice((-1, 1, 7))
    if kind == "create" and chance.random() < 0.3:
        step["values"]["sku"] = chance.choice(values.SKUS)
    if chance.random() < 0.06:
        step |= _spoiled(chance, step)
    if chance.random() < 0.3:
        step["by"] = "sku"
        if "expected" in step and chance.random() < 0.8:
            del step["expected"]
    return step


def each_kind(chance: random.Random, trees: Trees, first: int) -> Iterator[Step]:
    """A step of each kind; the deletions are of nodes with children, with each policy."""
    policies = ["CASCADE", "REPARENT", "REPARENT", "REFUSE"]
    for number, kind in enumerate((*MAKERS, *["delete"] * 3), start=first):
        nodes = [*trees.nodes.values()]
        paths = [trees.path(node) for node in nodes]
        step: Step = {"do": kind if paths else "create", "n": number, "server": chance.randrange(2)}
        step |= MAKERS[step["do"]](chance, trees, paths)
        if step["do"] == "delete":
            parents = [path for node, path in zip(nodes, paths, strict=True) if trees.children(node["id"])]
            step |= {"path": chance.choice(parents or paths), "policy": policies.pop()}
        yield step


def _spoiled(chance: random.Random, step: Step) -> Step:
    """Several parts of a step with a fault each, which are all told at once."""
    faults: Step = {"path": "nowhere", "parent": "nowhere/x", "to": "nowhere/y", "name": "", "expected": 99}
    faults["key"] = chance.choice(values.BAD_KEYS)
    given = [part for part in faults if step.get(part) is not None]
    return {part: faults[part] for part in chance.sample(given, chance.randint(min(1, len(given)), len(given)))}


def _varied(chance: random.Random, step: Step) -> Step:
    """Now and then the same key with other arguments."""
    if chance.random() < 0.7 or step["do"] not in ("create", "update", "restore"):
        return {}
    if step["do"] == "restore":
        return {"key": f"{step.get('key')} or another"}
    return {"name": f"{step.get('name')} or another"}


def _some_path(chance: random.Random, trees: Trees, paths: list[str]) -> str:
    """Mostly the path of a node, else a former one or one of nothing."""
    if chance.random() < 0.06:
        gone = sorted(trees.former) or ["nowhere"]
        below = f"{chance.choice(paths)}/nowhere"
        fits = values.sort_bytes(below.split("/")) <= SAFE_BYTES  # else it is no path, which is another error
        return chance.choice(("nowhere", below if fits else "nowhere", chance.choice(gone)))
    return chance.choice(paths)


def _some_key(chance: random.Random) -> str:
    dice = chance.random()
    return chance.choice(values.KEYS if dice < 0.9 else values.ODD_KEYS if dice < 0.96 else values.BAD_KEYS)


def _some_create(chance: random.Random, trees: Trees, paths: list[str]) -> Step:
    parent: str | None = None
    if paths and chance.random() < 0.85:
        boxes = [trees.path(node) for node in trees.nodes.values() if node["level"] == "BOX"]
        parent = _some_path(chance, trees, boxes or paths if chance.random() < 0.95 else paths)
        if chance.random() < 0.3:
            parent = max(boxes or paths, key=lambda path: path.count("/"))
    level = chance.choice(("BOX", "BOX", "CARD", "SLIP"))
    found = some = values.some_values(chance, level, clear=False)
    if level == "CARD" and chance.random() < 0.93:
        found = {**some, "title": values.some_value(chance, "title")}
    step: Step = {"parent": parent, "key": _some_key(chance), "name": _some_name(chance), "level": level}
    step["values"] = _broken(chance, level, found)
    if chance.random() < 0.3:
        step["names"] = values.some_names(chance)
    if trees.deleted and chance.random() < 0.3:
        id = chance.choice(sorted(trees.deleted))
        step |= {"id": {"of": trees.deleted[id]["step"]}, "level": trees.deleted[id]["level"]}
        step["values"] = {"title": "again"} if step["level"] == "CARD" else {}
    elif chance.random() < 0.15:
        step["id"] = chance.choice(("one", "TWO", "drei-3", "ид", "🏔", "a/b", "é", *[f"id-{chance.randrange(99)}"] * 6))
    return step


def _some_name(chance: random.Random) -> str:
    return "" if chance.random() < 0.02 else chance.choice(values.NAMES)


def _broken(chance: random.Random, level: str, found: values.Values) -> values.Values:
    """The values, now and then one of them against a rule of the class file."""
    if chance.random() > 0.05:
        return found
    wrong = {
        "BOX": ({"latitude": 90.5}, {"text": "x" * 1001}, {"longitude": -181.0}, {"parcel": {"code": "x" * 21}}),
        "CARD": ({"grade": 10}, {"title": "a\nb"}, {"note": "x" * 16_385}),
        "SLIP": ({"mark": "x" * 16_385},),
    }
    return {**found, **chance.choice(wrong[level])}


def _some_update(chance: random.Random, trees: Trees, paths: list[str]) -> Step:
    path = _some_path(chance, trees, paths)
    node = trees.at(path)
    level = node["level"] if node and chance.random() < 0.95 else chance.choice(LEVELS)
    step: Step = {"path": path, "level": level}
    step["values"] = _broken(chance, level, values.some_values(chance, level, clear=True))
    if level == "CARD" and chance.random() < 0.05:
        step["values"]["title"] = None
    if chance.random() < 0.3:
        step["add"] = some_additions(chance, level)
        added = {FIELDS[one["field"]] for one in step["add"]}
        if chance.random() < 0.95:  # else a value is given, too
            step["values"] = {name: value for name, value in step["values"].items() if name not in added}
    if chance.random() < 0.5:
        step["name"] = _some_name(chance)
    if chance.random() < 0.4:
        step["names"] = None if chance.random() < 0.2 else values.some_names(chance)
        for item in step["names"] or ():
            item["text"] = None if chance.random() < 0.3 else item["text"]
    return step


def _some_rename(chance: random.Random, trees: Trees, paths: list[str]) -> Step:
    path = _some_path(chance, trees, paths)
    beside = path.rpartition("/")[0]
    left = [former.rpartition("/")[2] for former in sorted(trees.former) if former.rpartition("/")[0] == beside]
    if left and chance.random() < 0.4:
        # A place that another node has left, so that its former path is taken.
        return {"path": path, "key": chance.choice(left).replace("%2F", "/").replace("%25", "%")}
    return {"path": path, "key": _some_key(chance)}


def _some_move(chance: random.Random, trees: Trees, paths: list[str]) -> Step:
    boxes = [trees.path(node) for node in trees.nodes.values() if node["level"] == "BOX"]
    to = None if chance.random() < 0.15 else _some_path(chance, trees, boxes or paths)
    return {"path": _some_path(chance, trees, paths), "to": to}


def _some_reorder(chance: random.Random, trees: Trees, paths: list[str]) -> Step:
    path = _some_path(chance, trees, paths)
    node = trees.at(path)
    beside = [trees.path(other) for other in trees.children(node["parent"]) if other is not node] if node else []
    where: list[Step] = [{"first": True}, {"last": True}]
    if beside:
        where += [{"before": chance.choice(beside)}, {"after": chance.choice(beside)}] * 2
    if chance.random() < 0.06:
        where = [{}, {"first": True, "last": True}, {"before": path}, {"after": chance.choice(beside or [path])}]
    return {"path": path, **chance.choice(where)}


def _some_delete(chance: random.Random, trees: Trees, paths: list[str]) -> Step:
    path = _some_path(chance, trees, paths)
    if chance.random() < 0.5:
        path = max((path, _some_path(chance, trees, paths)), key=lambda one: one.count("/"))
    return {"path": path, "policy": chance.choice(("REFUSE", "CASCADE", "REPARENT"))}


def _some_restore(chance: random.Random, trees: Trees, paths: list[str]) -> Step:
    """Mostly a node whose former parent is there, often the top of its deletion."""
    gone = list(trees.deleted.values())
    ready = [one for one in gone if one["parent"] is None or one["parent"] in trees.nodes]
    tops = [one for one in ready if one["below"]]
    pool = chance.choice((tops, ready, ready, gone)) or ready or gone
    if not pool or chance.random() < 0.05:
        there = [node["step"] for node in trees.nodes.values()]
        return {"id": {"of": chance.choice(there)} if there and chance.random() < 0.7 else "thing:nobody"}
    one = chance.choice(pool)
    step: Step = {"id": {"of": one["step"]}}
    boxes = [trees.path(node) for node in trees.nodes.values() if node["level"] == "BOX"]
    if chance.random() < (0.3 if one in ready else 0.6):
        step["to"] = None if chance.random() < 0.3 else _some_path(chance, trees, boxes or paths or ["nowhere"])
    if chance.random() < 0.3:
        step["key"] = _some_key(chance)
    return step


MAKERS = {
    "create": _some_create,
    "update": _some_update,
    "rename": _some_rename,
    "move": _some_move,
    "reorder": _some_reorder,
    "delete": _some_delete,
    "restore": _some_restore,
}


# Requests


def request(step: Step, selection: str, ids: dict[int, str]) -> tuple[str, dict[str, Any]]:
    """The operation and its variables."""
    variables = {"input": input_of(step, ids), "dry": step.get("dry", False), "once": step.get("once")}
    verb = MUTATIONS.get(step["do"], step["do"])
    head = f"$input: {verb.capitalize()}ThingInput!, $dry: Boolean!, $once: String"
    field = f"made: {verb}Thing(input: $input, dryRun: $dry, idempotencyKey: $once)"
    return f"mutation({head}) {{ {field} {{ {selection} }} }}", variables


def input_of(step: Step, ids: dict[int, str]) -> dict[str, Any]:
    """The input of the mutation of a step."""
    sent = {name: step[name] for name in ARGUMENTS[step["do"]] if name in step}
    if "level" in step and (step["values"] or step["do"] == "create"):
        sent["attributes"] = {step["level"].lower(): step["values"]}
    if sent.get("id"):
        sent["id"] = sent_id(step, ids) if step["do"] == "create" else f"thing:{sent_id(step, ids)}"
    given: dict[str, Any] = {}
    for name, value in sent.items():
        match name:
            case "path":
                given["node"] = {"path": value}
            case "parent" if value is not None:
                given["parent"] = {"path": value}
            case "to":
                given["to"] = {"root": True} if value is None else {"parent": {"path": value}}
            case "first" | "last":
                given["position"] = given.get("position", {}) | {name: value}
            case "before" | "after":
                given["position"] = {name: {"path": value}}
            case _ if name != "parent":
                given[name] = value
    if "expected" in step:
        given["expectedRevision"] = step["expected"]
    return given


def brief(sent: dict[str, Any]) -> str:
    """Variables as JSON, with long runs of one character as its number."""
    text = re.sub(r"(.)\1{59,}", lambda run: f"{run[1]}[{len(run[0])} times]", json.dumps(sent, ensure_ascii=False))
    return text if len(text) < 4_000 else text[:4_000] + "…"
