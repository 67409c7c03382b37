"""Rules: the faults that a mutation's input has, as writing.md promises them: "all faults at once" of the input and the
nodes that it names, then, "if there are none", those of the nodes below and beside.

The codes are those of reference/errors.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tests.outside.model import amounts, codes, values
from tests.outside.model.changes import place_of
from tests.outside.model.trees import Node, Trees

Step = dict[str, Any]
Error = dict[str, Any]
MAX_SEGMENTS = 32
SAFE_BYTES = 850  # of a sort key, by an estimate; "a sort key 1,024 bytes" (dynamodb.md)
UNDER = {"BOX": (None, "BOX"), "CARD": (None, "BOX"), "SLIP": ("BOX",)}
MANY_CHARACTERS = 16_384


@dataclass(frozen=True)
class Fault:
    """A fault: one of some codes, at a place of the input that begins with these names."""

    codes: tuple[str, ...]
    field: tuple[str, ...] = ()

    def fits(self, error: Error) -> bool:
        given = tuple(error.get("field") or ())
        return error["extensions"]["code"] in self.codes and given[: len(self.field)] == self.field

    def __str__(self) -> str:
        return f"{' or '.join(self.codes)} at {'.'.join(self.field) or 'any place'}"


@dataclass
class Faults:
    """What is wrong with a step: `first` all of them have to come, and without any `below` all of those.

    `may` are those of which the docs do not say whether they come.
    """

    first: list[Fault] = field(default_factory=list)
    below: list[Fault] = field(default_factory=list)
    may: list[Fault] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.first or self.below)

    def add(self, codes: str, *place: str) -> None:
        self.first.append(Fault(tuple(codes.split()), place))

    def maybe(self, codes: str, *place: str) -> None:
        self.may.append(Fault(tuple(codes.split()), place))

    def agree(self, errors: Sequence[Error]) -> bool:
        """Whether these errors, at least one, are the faults."""
        expected = self.first or self.below
        if not errors or not all(any(fault.fits(error) for fault in (*expected, *self.may)) for error in errors):
            return False
        is_hidden = not self.first and all(any(fault.fits(error) for fault in self.may) for error in errors)
        return is_hidden or all(any(fault.fits(error) for error in errors) for fault in expected)

    def allows(self, error: Error) -> bool:
        """Whether an error is one of them, or may be."""
        return any(fault.fits(error) for fault in (*self.first, *self.below, *self.may))

    def __str__(self) -> str:
        told = "; ".join(map(str, self.first or self.below)) or "no fault"
        return told + (f"; beside it maybe {'; '.join(map(str, self.may))}" if self.may else "")


def rules(
    trees: Trees,
    step: Step,
    ids: dict[int, str],
    before: Mapping[str, int] = MappingProxyType({}),
    *,
    several: bool = False,
) -> Faults:
    """The faults of a step; `before` are the revisions that count as those of nodes, by their ids. With `several`
    edits unique values are judged at their end.
    """
    faults = Faults()
    if step["do"] == "restore":
        _restore_rules(trees, step, f"thing:{sent_id(step, ids)}", faults)
        return faults
    if "first" in step and "last" in step:
        faults.add("BAD_USER_INPUT")  # by the schema, before anything else of the input is looked at
        return faults
    node = trees.at(step["path"]) if "path" in step else None
    if "path" in step and node is None:
        # "Mutations do not [follow]: a change names the current path."
        faults.add("NOT_FOUND", "node")
        if not {*step["path"].split("/")}.isdisjoint(values.ODD_KEYS):
            faults.maybe("BAD_PATH")
    if codes.is_named(trees, step, node) and "expected" in step:
        # "`expectedRevision` needs the path or id of the node, since a value may have passed on to another node."
        faults.add("CONFLICT BAD_USER_INPUT", "expectedRevision")
    elif node and "expected" in step:
        by_path = step.get("by") != "id"  # which alone does not say whose revision is meant
        if step["expected"] != before.get(node["id"], node["revision"]) or (
            by_path and trees.former.get(step["path"], node["id"]) != node["id"]
        ):
            faults.add("CONFLICT", "expectedRevision")
        elif by_path:  # also if a node without an id of its own was created there and deleted
            faults.maybe("CONFLICT", "expectedRevision")
    RULES[step["do"]](trees, step, node, faults)
    if step["do"] in ("create", "update"):
        _content_rules(step, node, faults)
    if not several and _is_sku_taken(trees, step, node):
        faults.below.append(Fault(("TAKEN",), ("attributes", step["level"].lower(), "sku")))
    id = sent_id(step, ids)
    if id and f"thing:{id}" in trees.nodes:
        faults.add("ALREADY_EXISTS", "id")
    past = trees.deleted.get(f"thing:{id}")
    if past and past["level"] != step["level"]:
        faults.maybe("WRONG_LEVEL BAD_USER_INPUT ALREADY_EXISTS")
    return faults


def _content_rules(step: Step, node: Node | None, faults: Faults) -> None:
    found, level = step["values"], step["level"]
    if step.get("name") == "":
        faults.add("BAD_USER_INPUT", "name")
    if node and node["level"] != level and found:
        faults.add("WRONG_LEVEL", "attributes")
    for told, is_sure, place in amounts.faults(node, step) if node else ():
        (faults.add if is_sure else faults.maybe)(told, *place)
    for place in range(len(step.get("add") or ()) if node is None else 0):  # what is wrong without the node
        faults.maybe("BAD_USER_INPUT", "add", str(place))
    code = (found.get("parcel") or {"code": ""}).get("code")
    broken = {
        "title": level == "CARD" and found.get("title", "" if step["do"] == "update" else None) is None,
        "parcel": code is None or len(code) > 20,
        "grade": (found.get("grade") or 0) > 9,
        "text": len(found.get("text") or "") > 1000,
        "note": len(found.get("note") or "") > MANY_CHARACTERS,
        "mark": len(found.get("mark") or "") > MANY_CHARACTERS,
        "latitude": abs(found.get("latitude") or 0) > 90,
        "longitude": abs(found.get("longitude") or 0) > 180,
    }
    broken["title"] |= "\n" in (found.get("title") or "")
    for name, is_broken in broken.items():
        if is_broken:
            faults.add("BAD_USER_INPUT", "attributes", level.lower(), name)


def _is_sku_taken(trees: Trees, step: Step, node: Node | None) -> bool:
    """Whether another node has the unique value that a step gives: "`TAKEN` at its field" (attributes.md)."""
    return any(other is not node for other in trees.with_sku(step.get("values", {}).get("sku")))


def _key_rules(key: str, faults: Faults) -> bool:
    """Whether a given key can be one; that it is too long for its place may be told or not."""
    if key in values.BAD_KEYS:
        faults.add("BAD_PATH", "key")
    elif key in values.ODD_KEYS:
        faults.maybe("BAD_PATH", "key")
    return key not in values.BAD_KEYS


def _place_rules(trees: Trees, place: tuple[Node | None, str], moved: Node | None, faults: Faults, field: str) -> None:
    """The rules of a place, a parent and a key, for a new node or for one that comes there with its subtree."""
    parent, key = place
    above = trees.keys(parent) if parent else []
    own = [*above, values.normal(key)]
    if len(own) > MAX_SEGMENTS:
        faults.add("BAD_PATH", field)
    below = []
    if moved:
        depth = len(trees.keys(moved))
        below = [own + trees.keys(each)[depth:] for each in trees.descendants(moved["id"])]
    if any(len(each) > MAX_SEGMENTS for each in below):
        faults.below.append(Fault(("BAD_PATH",), (field,)))
    if key in values.ODD_KEYS or any(values.sort_bytes(each) > SAFE_BYTES for each in (own, *below)):
        faults.maybe("BAD_PATH", field)
    if is_taken(trees, parent, key, moved):
        faults.add("ALREADY_EXISTS", field)


def is_taken(trees: Trees, parent: Node | None, key: str, moved: Node | None) -> bool:
    """Whether another node than `moved` is at a place."""
    children = trees.children(parent["id"] if parent else None)
    return any(node["key"] == values.normal(key) and node is not moved for node in children)


def may_stand(level: str, parent: Node | None) -> bool:
    return (parent["level"] if parent else None) in UNDER[level]


def _create_rules(trees: Trees, step: Step, node: Node | None, faults: Faults) -> None:
    parent = trees.at(step["parent"])
    is_key = _key_rules(step["key"], faults)
    if step["parent"] is not None and parent is None:
        faults.add("NOT_FOUND", "parent")
        if step["parent"].count("/") >= MAX_SEGMENTS - 1 or _is_odd(step["parent"], step["key"]):
            faults.maybe("BAD_PATH")
        return
    if not may_stand(step["level"], parent):
        faults.add("MISPLACED", "parent")
    if is_key:
        _place_rules(trees, (parent, step["key"]), None, faults, "key")


def _is_odd(path: str, key: str = "") -> bool:
    return not {key, *path.split("/")}.isdisjoint(values.ODD_KEYS)


def _rename_rules(trees: Trees, step: Step, node: Node | None, faults: Faults) -> None:
    if not _key_rules(step["key"], faults):
        return
    above, _, last = step["path"].rpartition("/")
    parent = trees.at(above) if above else None
    if node or (values.segment(step["key"]) != last and (parent or not above)):
        # Where the node is not there, the place that it would have is known all the same.
        _place_rules(trees, (parent, step["key"]), node, faults, "key")


def _move_rules(trees: Trees, step: Step, node: Node | None, faults: Faults) -> None:
    path, to = step["path"], trees.at(step["to"])
    if step["to"] is not None and f"{step['to']}/".startswith(f"{path}/"):
        # Below itself: one fault at `to` is enough, whether or not anything is there.
        faults.add("MISPLACED" if to else "MISPLACED NOT_FOUND", "to")
        faults.maybe("BAD_PATH", "to")
        return
    if step["to"] is not None and to is None:
        faults.add("NOT_FOUND", "to")
        if step["to"].count("/") >= MAX_SEGMENTS - 1 or _is_odd(step["to"], path.rpartition("/")[2]):
            faults.maybe("BAD_PATH")
        return
    if node:
        if not may_stand(node["level"], to):
            faults.add("MISPLACED", "to")
        _place_rules(trees, (to, node["key"]), node, faults, "to")
    else:
        key = path.rpartition("/")[2].replace("%2F", "/").replace("%25", "%")
        _place_rules(trees, (to, key), None, faults, "to")


def _reorder_rules(trees: Trees, step: Step, node: Node | None, faults: Faults) -> None:
    given = next((name for name in ("first", "last", "before", "after") if name in step), None)
    if given is None:
        faults.add("BAD_USER_INPUT")  # "a move that gives none of the three is rejected"
    elif given in ("before", "after"):
        other = trees.at(step[given])
        if other is None:
            faults.add("NOT_FOUND", "position")
        elif node and (other is node or (other["parent"], other["level"]) != (node["parent"], node["level"])):
            # "its `position` among its siblings of the same level" (writing.md)
            faults.add("BAD_USER_INPUT", "position")


def _delete_rules(trees: Trees, step: Step, node: Node | None, faults: Faults) -> None:
    children = trees.children(node["id"]) if node else []
    if children and step["policy"] == "REFUSE":
        faults.add("NOT_EMPTY", "policy")
    if node and children and step["policy"] == "REPARENT":
        # "A deletion with `REPARENT` that is larger than a transaction is rejected with `TOO_LARGE`", and with
        # `search=` "a few children, or one with many words, are too many".
        faults.maybe("TOO_LARGE", "policy")
        for child in children:
            _reparent_rules(trees, node, child, faults)


def _reparent_rules(trees: Trees, node: Node, child: Node, faults: Faults) -> None:
    """The place of a child in a deletion with `REPARENT`, which is a fault of the nodes below."""
    above, found = trees.nodes[node["parent"]] if node["parent"] else None, Faults()
    _place_rules(trees, (above, child["key"]), child, found, "policy")
    faults.may += found.may
    # The place of the node itself becomes free with this deletion, or not: the docs do not say.
    (faults.below if child["key"] != node["key"] else faults.may).extend(found.first)
    if not may_stand(child["level"], above):
        faults.below.append(Fault(("MISPLACED",), ("policy",)))


def _restore_rules(trees: Trees, step: Step, id: str, faults: Faults) -> None:
    gone = trees.deleted.get(id)
    if gone is None:
        faults.add("NOT_FOUND", "id")
    is_key = "key" not in step or _key_rules(step["key"], faults)
    place = "key" if "key" in step else "to"
    to = step.get("to")
    if to is not None and trees.at(to) is None:
        faults.add("NOT_FOUND", "to")
        if to.count("/") >= MAX_SEGMENTS - 1 or _is_odd(to, step.get("key") or (gone or {}).get("key", "")):
            faults.maybe("BAD_PATH")
    elif "to" not in step and gone is not None and gone["parent"] not in (None, *trees.nodes):
        faults.add("NOT_FOUND", "to")  # "its parent is deleted as well; restore that first, or give `to`"
    elif gone is None:
        if is_key and "key" in step and "to" in step:
            _place_rules(trees, (trees.at(to), step["key"]), None, faults, "key")
    else:
        parent, key = place_of(trees, step, gone)
        if not may_stand(gone["level"], parent):
            faults.add("MISPLACED", "to")
        if is_key:
            _restored_rules(trees, trees.restored_with(id), parent, key, faults, place)


def _restored_rules(trees: Trees, gone: list[Node], parent: Node | None, key: str, faults: Faults, place: str) -> None:
    """The rules of a place for a deleted node that comes back there with others."""
    top = [*(trees.keys(parent) if parent else []), values.normal(key)]
    paths = {gone[0]["id"]: top}
    for one in gone[1:]:
        paths[one["id"]] = [*paths[one["parent"]], one["key"]]
    if len(top) > MAX_SEGMENTS:
        faults.add("BAD_PATH", place)
    elif any(len(each) > MAX_SEGMENTS for each in paths.values()):
        faults.below.append(Fault(("BAD_PATH",), ("to",)))
    if key in values.ODD_KEYS or any(values.sort_bytes(each) > SAFE_BYTES for each in paths.values()):
        faults.maybe("BAD_PATH")
    if is_taken(trees, parent, key, None):
        faults.add("ALREADY_EXISTS", "key")
    skus = [values.normal(one["values"]["sku"]) for one in gone if one["values"].get("sku") is not None]
    if len({*skus}) < len(skus) or any(map(trees.with_sku, skus)):
        faults.below.append(Fault(("TAKEN",), ("id",)))


RULES = {
    "create": _create_rules,
    "update": lambda *_: None,
    "rename": _rename_rules,
    "move": _move_rules,
    "reorder": _reorder_rules,
    "delete": _delete_rules,
}


def sent_id(step: Step, ids: dict[int, str]) -> str | None:
    """The id that a step asks for, without the hierarchy: "ID, such as "location:US-NE" or "US-NE"" (schema)."""
    id = step.get("id")
    if isinstance(id, dict):
        id = ids.get(id["of"], f"gone-{id['of']}")
    return id.removeprefix("thing:") if isinstance(id, str) else None
