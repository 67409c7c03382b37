"""Random mutations, the rules that reject them, and what each changes in the model.

A step is a dictionary that says everything, so that a script of steps can be made again on a new store, also in part:
then a step whose node is missing is one that has to be rejected. A node is named by its path, or as `{"of": number}` by
the id of the node that a step created.
"""

import random
from dataclasses import dataclass, replace
from typing import Any

from tests.outside.model import values
from tests.outside.model.trees import LEVELS, Node, Trees, found, id_of

Step = dict[str, Any]
MAX_SEGMENTS = 32
SAFE_BYTES, MAX_BYTES = 850, 1_024
UNDER = {"BOX": (None, "BOX"), "CARD": (None, "BOX")}
IN_BATCHES = 10_000  # from here on are the numbers of edits
VERBS = ("create", "update", "move", "delete")
BAD_PATHS = ("", "a//b", "/a", "a/", "50%", "a%2", "a\x00b", "k" * 8_001)


def some_step(chance: random.Random, trees: Trees, number: int, earlier: list[Step]) -> Step:
    """An operation, most of the time one that is right."""
    if chance.random() < 0.12 and any("once" in step for step in earlier):
        again = chance.choice([step for step in earlier if "once" in step])
        return {**again, "n": number, "server": chance.randrange(2), **_varied(chance, again)}
    step = some_edit(chance, trees, number) | {"server": chance.randrange(2)}
    if chance.random() < 0.08:
        step["dry"] = True
    elif chance.random() < 0.15:
        step["once"] = f"key-{number}-{chance.randrange(10**6)}"
        node = trees.at(step["node"]) if step["do"] == "update" and isinstance(step["node"], str) else None
        if node and chance.random() < 0.4:
            # A mutation that changes nothing is made only once, too.
            step |= {"level": node["level"], "name": node["name"], "values": {}}
            step.pop("names", None)
    elif chance.random() < 0.2:
        step["forecast"] = True
    return step


def some_edit(chance: random.Random, trees: Trees, number: int) -> Step:
    """One change, which may be part of a batch."""
    paths = [trees.path(node) for node in trees.nodes.values()]
    size = len(paths)
    kinds = ["create"] * (9 if size < 12 else 4 if size < 50 else 1)
    kinds += ["update"] * 3 + ["move"] * 7 + ["delete"] * (1 if size < 40 else 4)
    kind = chance.choice(kinds) if paths else "create"
    step: Step = {"do": kind, "n": number, **MAKERS[kind](chance, trees, paths)}
    if kind != "create" and chance.random() < 0.15:
        node = trees.at(step["node"])
        right = node["revision"] if node else 1
        step["expected"] = right if chance.random() < 0.6 else right + chance.choice((-1, 1, 7))
    return _named(chance, trees, step)


def _named(chance: random.Random, trees: Trees, step: Step) -> Step:
    """The step with some of its nodes named by their ids, now and then by one that no node has, or by no path."""

    def name(path: Any) -> Any:
        node = trees.at(path) if isinstance(path, str) else None
        if node and not node["id"].startswith("new:") and chance.random() < 0.3:
            return {"of": node["step"]} if node["step"] < IN_BATCHES else {"id": node["id"]}
        if isinstance(path, str) and chance.random() < 0.015:
            return chance.choice(({"id": "thing:nowhere"}, {"id": "nowhere"}, {"id": "other:one"}, *BAD_PATHS))
        return path

    for part in ("node", "parent", "to"):
        if part in step:
            step[part] = name(step[part])
    if "position" in step:
        step["position"] = {side: name(beside) for side, beside in step["position"].items()}
    return step


def _varied(chance: random.Random, step: Step) -> Step:
    """Now and then the same key with other arguments."""
    if chance.random() < 0.7 or step["do"] not in ("create", "update"):
        return {}
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
    level = chance.choice(("BOX", "BOX", "CARD"))
    found = some = values.some_values(chance, level, clear=False)
    if level == "CARD" and chance.random() < 0.93:
        found = {**some, "title": values.some_value(chance, "title")}
    step: Step = {"parent": parent, "key": _some_key(chance), "name": _some_name(chance), "level": level}
    step["values"] = _broken(chance, level, found)
    dice = chance.random()
    step["says"] = "both" if dice < 0.1 else "level" if dice < 0.2 and not step["values"] else "attributes"
    if dice > 0.98:
        step["says"] = chance.choice(("nothing", "two levels"))
    if chance.random() < 0.3:
        step["names"] = values.some_names(chance)
    if trees.deleted and chance.random() < 0.3:
        id = chance.choice(sorted(trees.deleted))
        step |= {"id": {"of": trees.deleted[id]["step"]}, "level": trees.deleted[id]["level"]}
        step["values"] = {"title": "again"} if step["level"] == "CARD" else {}
        step["says"] = "attributes"
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
    }
    return {**found, **chance.choice(wrong[level])}


def _some_update(chance: random.Random, trees: Trees, paths: list[str]) -> Step:
    path = _some_path(chance, trees, paths)
    node = trees.at(path)
    level = node["level"] if node and chance.random() < 0.95 else chance.choice(LEVELS)
    step: Step = {"node": path, "level": level}
    step["values"] = _broken(chance, level, values.some_values(chance, level, clear=True))
    if level == "CARD" and chance.random() < 0.05:
        step["values"]["title"] = None
    if chance.random() < 0.5:
        step["name"] = _some_name(chance)
    if chance.random() < 0.4:
        step["names"] = None if chance.random() < 0.2 else values.some_names(chance)
        for item in step["names"] or ():
            item["text"] = None if chance.random() < 0.3 else item["text"]
    return step


def _some_move(chance: random.Random, trees: Trees, paths: list[str]) -> Step:
    """Another parent, key or position, or several of them at once; now and then none of them."""
    path = _some_path(chance, trees, paths)
    dice = chance.random()
    step: Step = {"node": path}
    if dice < 0.35 or dice > 0.75:
        step["key"] = _some_new_key(chance, trees, path)
    if 0.3 < dice < 0.6 or dice > 0.8:
        boxes = [trees.path(node) for node in trees.nodes.values() if node["level"] == "BOX"]
        step["to"] = ROOT if chance.random() < 0.15 else _some_path(chance, trees, boxes or paths)
    if 0.55 < dice < 0.85 or dice > 0.95:
        step["position"] = _some_position(chance, trees, path, step.get("to"), paths)
        if step.get("to") and {"before", "after"} & {*step["position"]} and chance.random() < 0.5:
            del step["to"]
    if chance.random() < 0.01:
        step = {"node": path, **chance.choice(({}, {"to": {"root": False}}, {"position": {"first": False}}))}
    return step


def _some_new_key(chance: random.Random, trees: Trees, path: str) -> str:
    beside = path.rpartition("/")[0]
    left = [former.rpartition("/")[2] for former in sorted(trees.former) if former.rpartition("/")[0] == beside]
    if left and chance.random() < 0.4:
        # A place that another node has left, so that its former path is taken.
        return chance.choice(left).replace("%2F", "/").replace("%25", "%")
    return _some_key(chance)


def _some_position(chance: random.Random, trees: Trees, path: str, to: Any, paths: list[str]) -> Step:
    node = trees.at(path)
    parent = trees.at(to) if isinstance(to, str) else None
    above = None if to == ROOT else parent["id"] if parent else node["parent"] if node else None
    level = node["level"] if node else "BOX"
    beside = [trees.path(other) for other in trees.children(above) if other is not node and other["level"] == level]
    where: list[Step] = [{"first": True}, {"last": True}]
    if beside:
        where += [{"before": chance.choice(beside)}, {"after": chance.choice(beside)}] * 2
    if chance.random() < 0.08:
        where = [{"before": path}, {"after": chance.choice(paths)}, {"before": f"{path}/nowhere"}, {"after": "nowhere"}]
    return chance.choice(where)


def _some_delete(chance: random.Random, trees: Trees, paths: list[str]) -> Step:
    path = _some_path(chance, trees, paths)
    if chance.random() < 0.5:
        path = max((path, _some_path(chance, trees, paths)), key=lambda one: one.count("/"))
    return {"node": path, "policy": chance.choice(("REFUSE", "CASCADE", "REPARENT"))}


ROOT = {"root": True}
MAKERS = {
    "create": _some_create,
    "update": _some_update,
    "move": _some_move,
    "delete": _some_delete,
}


# Rules

FORM, NAMES, STORE, LATER = range(4)
CONTENT = -1


@dataclass(frozen=True)
class Fault:
    """A fault that a step has: one of these codes has to be among the user errors, with the field that has it.

    Faults are found in stages: of the input alone (FORM), of ids and targets (NAMES), by what is stored (STORE), and
    where nothing else was wrong (LATER). A `decisive` one leaves others of its stage open. Faults of the content
    are found in any case.
    """

    codes: frozenset[str]
    fields: tuple[str | None, ...]
    stage: int
    is_decisive: bool = False
    is_taken: bool = False
    edit: int | None = None

    def is_in(self, errors: list[Node]) -> bool:
        return any(
            error["code"] in self.codes
            and error["edit"] == self.edit
            and ".".join(error["field"] or ()) in [field or "" for field in self.fields]
            for error in errors
        )

    def __str__(self) -> str:
        place = "" if self.edit is None else f" of edit {self.edit}"
        return f"{' or '.join(sorted(self.codes))} at {' or '.join(map(str, self.fields))}{place}"


def fault(codes: str, fields: str | None, stage: int = STORE, **more: bool) -> Fault:
    return Fault(frozenset(codes.split()), tuple(fields.split()) if fields else (None,), stage, **more)


def required(faults: list[Fault]) -> list[list[Fault]]:
    """What has to be among the user errors: of each of these lists at least one."""
    content = [[one] for one in faults if one.stage == CONTENT]
    stage = min((one.stage for one in faults if one.stage != CONTENT), default=None)
    here = [one for one in faults if one.stage == stage]
    if stage in (NAMES, LATER):
        return [*content, here]
    needed = [*content]
    for edit in dict.fromkeys(one.edit for one in here):
        own = [one for one in here if one.edit == edit]
        decisive = [one for one in own if one.is_decisive]
        needed += [decisive] if decisive else [[one] for one in own]
    return needed


def rules(
    trees: Trees, step: Step, ids: dict[int, str], revisions: dict[str, int] | None = None
) -> tuple[list[Fault], set[str]]:
    """The faults of a step, and codes that may come although the change is allowed too.

    `revisions` are those before a batch.
    """
    faults: list[Fault] = []
    may: set[str] = set()
    node: Node | None = None
    if "node" in step:
        node = _node(trees, step["node"], ids, "node", faults)
        revision = (revisions or {}).get(node["id"], node["revision"]) if node else None
        if node and "expected" in step and step["expected"] != revision:
            faults.append(fault("CONFLICT", "expectedRevision", is_decisive=True))
    RULES[step["do"]](trees, step, ids, node, faults, may)
    return faults, may


def _node(trees: Trees, name: Any, ids: dict[int, str], field: str, faults: list[Fault]) -> Node | None:
    """The node of a name, whose absence is a fault.

    "Mutations follow no redirects: a client that changes a node has to use its current path."
    """
    node = found(trees, name, ids)
    if node is None:
        if name in BAD_PATHS:
            faults.append(fault("BAD_PATH", field, FORM))
        elif isinstance(name, dict):
            # An id of a node that an earlier edit of the batch has deleted is found only in its turn.
            faults.append(fault("NOT_FOUND", field, NAMES, is_decisive=True))
        else:
            faults.append(fault("NOT_FOUND", field, is_decisive=field == "node"))
    return node


BROKEN = {  # attributes against a rule of the class file, and the fields that are told
    "latitude": lambda value: abs(value) > 90,
    "longitude": lambda value: abs(value) > 180,
    "text": lambda value: len(value) > 1000,
    "note": lambda value: len(value) > 16_384,
    "grade": lambda value: value > 9,
    "title": lambda value: "\n" in value,
    "parcel": lambda value: value.get("code") is None or len(value["code"]) > 20,
}


def _content_rules(step: Step, faults: list[Fault]) -> None:
    if step.get("name") == "":
        faults.append(fault("BAD_USER_INPUT", "name", CONTENT))
    for name, value in step["values"].items():
        if name in BROKEN and value is not None and BROKEN[name](value):
            faults.append(fault("BAD_USER_INPUT", f"attributes.{step['level'].lower()}.{name}", CONTENT))


def _update_rules(
    trees: Trees, step: Step, ids: dict[int, str], node: Node | None, faults: list[Fault], may: set[str]
) -> None:
    _content_rules(step, faults)
    if node and node["level"] != step["level"] and step["values"]:
        faults.append(fault("WRONG_LEVEL", "attributes"))
    if step["level"] == "CARD" and step["values"].get("title", "") is None:
        faults.append(fault("BAD_USER_INPUT", "attributes.card.title", CONTENT))


def _create_rules(
    trees: Trees, step: Step, ids: dict[int, str], node: Node | None, faults: list[Fault], may: set[str]
) -> None:
    parent = None if step["parent"] is None else _node(trees, step["parent"], ids, "parent", faults)
    if step["says"] == "nothing":
        faults.append(fault("BAD_USER_INPUT", "level", FORM))
    if step["says"] == "two levels":
        faults.append(fault("BAD_USER_INPUT", "level", CONTENT))
    if step["says"] in ("attributes", "both", "two levels"):
        _content_rules(step, faults)
    elif step["name"] == "":
        faults.append(fault("BAD_USER_INPUT", "name", CONTENT))
    if step["level"] == "CARD" and step["values"].get("title") is None:
        faults.append(fault("BAD_USER_INPUT", "attributes.card.title"))
    if parent is None and step["parent"] is not None:
        _unplaced(step["key"], step["parent"], faults, may)
    else:
        if (parent["level"] if parent else None) not in UNDER[step["level"]]:
            faults.append(fault("MISPLACED", "parent"))
        _place(trees, step["key"], parent, None, "key", faults, may)
    id = sent_id(step, ids)
    if id and f"thing:{id}" in trees.nodes:
        faults.append(fault("ALREADY_EXISTS", "id"))
    past = trees.deleted.get(f"thing:{id}")
    if past and past["level"] != step["level"]:
        may |= {"WRONG_LEVEL", "BAD_USER_INPUT", "ALREADY_EXISTS"}


def _text(trees: Trees, name: Any) -> str | None:
    """The path of a node or of a name, "" for the roots; None for an id of no node."""
    if isinstance(name, str):
        return values.normal(name)
    if isinstance(name, dict) and "root" in name:
        return ""
    return trees.path(name) if isinstance(name, dict) and "key" in name else None


def _unplaced(key: str, parent: Any, faults: list[Fault], may: set[str]) -> None:
    """A key below nothing."""
    if key in values.BAD_KEYS:
        faults.append(fault("BAD_PATH", "key", FORM))
    elif key in values.ODD_KEYS or (isinstance(parent, str) and parent.count("/") >= MAX_SEGMENTS - 1):
        may.add("BAD_PATH")


def _place(
    trees: Trees, key: str, parent: Node | None, moved: Node | None, fields: str, faults: list[Fault], may: set[str]
) -> None:
    """The rules of a key at a place, for a new node or for one that comes there with its subtree."""
    if key in values.BAD_KEYS:
        faults.append(fault("BAD_PATH", "key", FORM))
        return
    above = trees.keys(parent) if parent else []
    places = [[*above, values.normal(key)]]
    if moved:
        own = len(trees.keys(moved))
        places += [places[0] + trees.keys(below)[own:] for below in trees.descendants(moved["id"])]
    if len(places[0]) > MAX_SEGMENTS:
        faults.append(fault("BAD_PATH", "key", NAMES))
    elif max(map(len, places)) > MAX_SEGMENTS:
        faults.append(fault("BAD_PATH", "key to position policy", LATER))
        may.add("BAD_PATH")
    if key in values.ODD_KEYS or any(values.sort_bytes(place) > SAFE_BYTES for place in places):
        may.add("BAD_PATH")
    taken = any(
        node["key"] == values.normal(key) and node is not moved
        for node in trees.children(parent["id"] if parent else None)
    )
    if taken:
        faults.append(fault("ALREADY_EXISTS", fields, is_taken=True))


def _move_rules(
    trees: Trees, step: Step, ids: dict[int, str], node: Node | None, faults: list[Fault], may: set[str]
) -> None:
    to, key, position = step.get("to"), step.get("key"), step.get("position")
    if to is None and key is None and position is None:
        faults.append(fault("BAD_USER_INPUT", None, FORM))
    parent = None if to is None or "root" in to else _node(trees, to, ids, "to", faults)
    if to == {"root": False}:
        faults.append(fault("BAD_USER_INPUT", "to", FORM))
    if position == {"first": False}:
        faults.append(fault("BAD_USER_INPUT", "position", FORM))
    if key in values.BAD_KEYS:
        faults.append(fault("BAD_PATH", "key", FORM))
    side, beside_name = next(iter(position.items())) if position else ("first", True)
    beside = None
    if side in ("before", "after"):
        beside = found(trees, beside_name, ids)
        if beside_name in BAD_PATHS:
            faults.append(fault("BAD_PATH", "position", FORM))
        elif beside is None and isinstance(beside_name, dict):
            faults.append(fault("NOT_FOUND", "position", NAMES))
        elif beside is None:
            # Its parent, which it implies, may be missing, too.
            below = _text(trees, beside_name) or ""
            is_below = node is not None and f"{below}/".startswith(f"{trees.path(node)}/")
            faults.append(fault("NOT_FOUND MISPLACED" if is_below else "NOT_FOUND", "position to", LATER))
            may |= {"NOT_FOUND", "BAD_PATH", "MISPLACED", "ALREADY_EXISTS", "BAD_USER_INPUT"}
    given = _text(trees, parent or to) if to is not None else None
    sibling = _text(trees, beside or beside_name) if side in ("before", "after") else None
    if given is not None and sibling is not None and sibling.rpartition("/")[0] != given:
        # Told by the paths alone, whether there are nodes or not.
        faults.append(fault("BAD_USER_INPUT", "position", NAMES))
    if node is None:
        # By the paths alone the new one may be too long.
        faults[:] = [replace(one, codes=one.codes | {"BAD_PATH"}, fields=(*one.fields, "key")) for one in faults]
    if node is None or any(one.stage == FORM for one in faults):
        may |= {"BAD_PATH", "MISPLACED", "BAD_USER_INPUT", "NOT_FOUND"}
        return
    if side in ("before", "after") and beside is None:
        return
    if to is not None and "root" not in to and parent is None:
        _unplaced(key or node["key"], to, faults, may)
        if isinstance(to, str) and values.normal(to).startswith(f"{values.normal(trees.path(node))}/"):
            # Below the node itself, at a place that is none: both are true.
            faults[:] = [replace(one, codes=one.codes | {"MISPLACED"}) if "to" in one.fields else one for one in faults]
        if beside:
            faults.append(fault("BAD_USER_INPUT", "position", NAMES))
        return
    target = beside["parent"] if beside else node["parent"]
    if to is not None:
        target = parent["id"] if parent else None
        if beside and beside["parent"] != target:
            faults.append(fault("BAD_USER_INPUT", "position", NAMES))
            return
    above = trees.nodes[target] if target else None
    is_moved = target != node["parent"] or values.normal(key or node["key"]) != node["key"]
    if above and node in [above, *trees.ancestors(above)]:
        faults.append(fault("MISPLACED BAD_PATH", "to position key", is_decisive=True))
        may |= {"BAD_PATH", "BAD_USER_INPUT"}
        return
    if is_moved:
        if (above["level"] if above else None) not in UNDER[node["level"]]:
            faults.append(fault("MISPLACED", "to position"))
        _place(trees, key or node["key"], above, node, "key to position", faults, may)
    if beside and (beside is node or beside["level"] != node["level"]):
        # "A position among the siblings of a node's level" (schema)
        faults.append(fault("BAD_USER_INPUT", "position", LATER))


def _delete_rules(
    trees: Trees, step: Step, ids: dict[int, str], node: Node | None, faults: list[Fault], may: set[str]
) -> None:
    children = trees.children(node["id"]) if node else []
    if children and step["policy"] == "REFUSE":
        faults.append(fault("NOT_EMPTY", "policy"))
    if node and children and step["policy"] == "REPARENT":
        # "A deletion with `REPARENT` that is larger than a transaction is rejected with `TOO_LARGE`", and with
        # `search=` "a few children, or one with many words, are too many".
        may.add("TOO_LARGE")
        above = trees.nodes[node["parent"]] if node["parent"] else None
        taken: list[Fault] = []
        for child in children:
            own: list[Fault] = []
            _place(trees, child["key"], above, child, "policy", own, may)
            if child["key"] == node["key"]:
                may |= {code for one in own for code in one.codes}
            else:
                taken += own
        if taken:
            codes = " ".join({code for one in taken for code in one.codes})
            faults.append(fault(codes, "policy"))


RULES = {"create": _create_rules, "update": _update_rules, "move": _move_rules, "delete": _delete_rules}


# What they change


def apply(trees: Trees, step: Step, ids: dict[int, str], new_id: str, at: str) -> Node:
    """Make a step without a fault; a new node has `new_id`, and a deleted one is as it was before."""
    if step["do"] == "create":
        parent = found(trees, step["parent"], ids)
        made = trees.create(parent["id"] if parent else None, new_id, step, at)
        ids[step["n"]] = new_id
        return made
    node = found(trees, step["node"], ids)
    assert node
    if step["do"] == "update":
        if trees.changed(node, step):
            trees.update(node, step, at)
    elif step["do"] == "move":
        target, key = target_of(trees, step, ids)
        trees.move_to(node, target, key, *_place_of(trees, step, ids))
    else:
        trees.delete(node, step["policy"], "")  # the time is read afterwards
    return node


def target_of(trees: Trees, step: Step, ids: dict[int, str]) -> tuple[str | None, str]:
    """The parent that a node comes below, None for a root, and its key there."""
    if step["do"] == "create":
        parent = found(trees, step["parent"], ids)
        return parent["id"] if parent else None, step["key"]
    node = found(trees, step["node"], ids)
    assert node
    _, beside = _place_of(trees, step, ids)
    target = node["parent"] if beside is None else beside["parent"]
    if step.get("to") is not None:
        parent = None if "root" in step["to"] else found(trees, step["to"], ids)
        target = parent["id"] if parent else None
    return target, step.get("key") or node["key"]


def _place_of(trees: Trees, step: Step, ids: dict[int, str]) -> tuple[str | None, Node | None]:
    """The position that is asked for, and the sibling that it names."""
    for side, name in step.get("position", {}).items():
        return side, found(trees, name, ids) if side in ("before", "after") else None
    return None, None


# Requests


def sent_id(step: Step, ids: dict[int, str]) -> str | None:
    """The id that a step asks for, without the hierarchy: "ID, with or without its hierarchy" (schema)."""
    id = step.get("id")
    if isinstance(id, dict):
        id = ids.get(id["of"], f"gone-{id['of']}")
    return id.removeprefix("thing:") if isinstance(id, str) else None


def input_of(step: Step, ids: dict[int, str]) -> dict[str, Any]:
    """The input of one change."""

    def by(name: Any) -> Any:
        return {"path": name} if isinstance(name, str) else {"id": id_of(name, ids)}

    sent = {name: step[name] for name in ("key", "name", "names", "policy") if name in step}
    sent |= {part: by(step[part]) for part in ("node", "parent") if step.get(part) is not None}
    if "to" in step:
        sent["to"] = step["to"] if "root" in step["to"] else {"parent": by(step["to"])}
    if "position" in step:
        sent["position"] = {
            side: by(name) if side in ("before", "after") else name for side, name in step["position"].items()
        }
    if step["do"] == "create":
        other = {"BOX": "CARD", "CARD": "BOX"}[step["level"]]
        if step["says"] in ("level", "both", "two levels"):
            sent["level"] = other if step["says"] == "two levels" else step["level"]
        if step["says"] in ("attributes", "both", "two levels"):
            sent["attributes"] = {step["level"].lower(): step["values"]}
    elif step["do"] == "update" and step["values"]:
        sent["attributes"] = {step["level"].lower(): step["values"]}
    if step.get("id"):
        sent["id"] = sent_id(step, ids)
    return sent | ({"expectedRevision": step["expected"]} if "expected" in step else {})


def request(step: Step, selections: dict[str, str], ids: dict[int, str]) -> tuple[str, dict[str, Any]]:
    """The operation and its variables."""
    if step["do"] == "edit":
        field, argument, kind = "editThings", "edits", "[ThingEdit!]!"
        sent: dict[str, Any] = {"edits": [{edit["do"]: input_of(edit, ids)} for edit in step["edits"]]}
    else:
        field, argument, kind = f"{step['do']}Thing", "input", f"{step['do'].title()}ThingInput!"
        sent = {"input": input_of(step, ids)}
    more = {"dry": "dryRun", "once": "idempotencyKey"}
    sent |= {argument: step[name] for name, argument in more.items() if name in step}
    types = {argument: kind, "dryRun": "Boolean!", "idempotencyKey": "String"}
    declared = ", ".join(f"${name}: {types[name]}" for name in sent)
    given = ", ".join(f"{name}: ${name}" for name in sent)
    return f"mutation({declared}) {{ made: {field}({given}) {{ {selections[step['do']]} }} }}", sent
