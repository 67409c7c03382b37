"""The model: nodes, siblings in their order, revisions, former paths, logs and deleted nodes, in plain dictionaries.

A node is a dictionary of `id`, `key`, `parent` (an id or None), `level`, `name`, `names` (by language), `values` (by
attribute), `revision`, `at` (time of its last revision) and `history` (of revisions, oldest first).
"""

import copy
from typing import Any

from tests.outside.model.amounts import with_sums
from tests.outside.model.values import ATTRIBUTES, DEFAULTS, normal, segment, stored

Node = dict[str, Any]
LEVELS = ("BOX", "CARD", "SLIP")
NEVER_ROOTS = ("SLIP",)
CONTENT = ("name", "names", "values")


class Trees:
    """What a store should hold."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.siblings: dict[tuple[str | None, str], list[str]] = {}
        # Groups of siblings in which somebody has reordered: what the docs say of the order of a later sibling there
        # is only that the others keep theirs.
        self.reordered: set[tuple[str | None, str]] = set()
        self.former: dict[str, str] = {}  # paths that nodes have left by a move: the id of the last one
        # Deleted nodes with `path`, `deletedAt`, `deletion` (a number), `below` (how many were deleted with it and are
        # below it), `order` (of its siblings and it) and `turn` (of its group) at their deletion.
        self.deleted: dict[str, Node] = {}
        self.left: dict[str, str] = {}  # paths that nodes have left by their deletion: the id of the last one
        self.deletions = 0
        self.turns: dict[tuple[str | None, str], int] = {}  # how often the order of a group was changed by hand
        self.logs: dict[str, list[Node]] = {}
        self.unplaced: dict[tuple[str | None, str], set[str]] = {}

    # Reading

    def at(self, path: str | None) -> Node | None:
        """The node that is at a path now."""
        if path is None:
            return None
        here: str | None = None
        for part in path.split("/"):
            children = (node for level in LEVELS for node in self.siblings.get((here, level), ()))
            here = next((child for child in children if segment(self.nodes[child]["key"]) == normal(part)), None)
            if here is None:
                return None
        return self.nodes[here] if here else None

    def with_sku(self, sku: str | None) -> list[Node]:
        """The nodes with a unique value; it "compares exactly", in NFC (attributes.md)."""
        found = [node for node in self.nodes.values() if sku is not None and node["values"].get("sku") is not None]
        return [node for node in found if normal(node["values"]["sku"]) == normal(str(sku))]

    def keys(self, node: Node) -> list[str]:
        return [above["key"] for above in [*self.ancestors(node), node]]

    def path(self, node: Node) -> str:
        return "/".join(segment(key) for key in self.keys(node))

    def ancestors(self, node: Node) -> list[Node]:
        found: list[Node] = []
        while node["parent"] is not None:
            node = self.nodes[node["parent"]]
            found.insert(0, node)
        return found

    def children(self, parent: str | None) -> list[Node]:
        """ "Children and roots are sorted by the names of their levels, and within a level by key" (lists.md)."""
        return [self.nodes[child] for level in LEVELS for child in self.siblings.get((parent, level), ())]

    def descendants(self, parent: str | None) -> list[Node]:
        """ "descendants by path" (lists.md): depth first, siblings by key."""
        found: list[Node] = []
        for child in sorted(self.children(parent), key=lambda node: node["key"]):
            found += [child, *self.descendants(child["id"])]
        return found

    # Changing; each is called once the server has accepted the change

    def create(self, parent: str | None, id: str, step: Node, at: str) -> Node:
        past = self.deleted.pop(id, None)
        history = past["history"] if past else []
        node: Node = {
            "id": id,
            "key": normal(step["key"]),
            "parent": parent,
            "level": step["level"],
            "name": step["name"],
            "names": {},
            "values": {},
            "revision": history[-1]["revision"] if history else 0,
            "history": history,
            "step": past["step"] if past else step["n"],
        }
        self.nodes[id] = node
        self._place(node)
        self._content(node, step, at, {**DEFAULTS[node["level"]], **step["values"]})
        self._log(self.path(node), "CREATED", node)
        return node

    def update(self, node: Node, step: Node, at: str) -> None:
        self._content(node, step, at, with_sums(node, step))
        self._log(self.path(node), "UPDATED", node)

    def changed(self, node: Node, step: Node) -> bool:
        """Whether an update changes anything: "Each change of a node's name or attributes makes a revision"."""
        copied = copy.deepcopy(node)
        self._content(copied, step, "", with_sums(node, step))
        return any(copied[part] != node[part] for part in CONTENT)

    def _content(self, node: Node, step: Node, at: str, values: Node) -> None:
        if step.get("name") is not None:
            node["name"] = step["name"]
        if "names" in step:
            self.texts(node["names"], step["names"])
        kinds = ATTRIBUTES[node["level"]]
        for name, value in values.items():
            if kinds[name] == "localized":
                node["values"][name] = self.texts(dict(node["values"].get(name) or {}), value) or None
            else:
                node["values"][name] = stored(kinds[name], value)
            if node["values"][name] is None:
                del node["values"][name]
        node["revision"] += 1
        node["at"] = at
        kept = {
            part: copy.deepcopy(node[part]) for part in ("revision", "at", "name", "names", "values", "level", "key")
        }
        node["history"].append(kept)

    @staticmethod
    def texts(texts: dict[str, str], sent: list[Node] | None) -> dict[str, str]:
        """ "An update changes only the languages that it contains. A text of null clears one language, null all." """
        if sent is None:
            texts.clear()
        for item in sent or ():
            texts.pop(item["language"], None)
            if item.get("text") is not None:
                texts[item["language"]] = item["text"]
        return texts

    def move(self, node: Node, parent: str | None, key: str) -> None:
        """A move, or a rename where the parent is the same."""
        source = self.path(node)
        for below in [node, *self.descendants(node["id"])]:
            self._leave(self.path(below), below["id"])
        self.siblings[(node["parent"], node["level"])].remove(node["id"])
        node["parent"], node["key"] = parent, normal(key)
        self._place(node)
        self._log_move(node, source, self.path(node))

    def reorder(self, node: Node, order: list[str]) -> None:
        group = (node["parent"], node["level"])
        self.siblings[group] = order
        self.reordered.add(group)
        self.turns[group] = self.turns.get(group, 0) + 1
        self._log_move(node, self.path(node), self.path(node))

    def delete(self, node: Node, policy: str, at: str) -> None:
        path = self.path(node)
        gone = [node, *self.descendants(node["id"])] if policy != "REPARENT" else [node]
        children = sorted(self.children(node["id"]), key=lambda child: child["key"]) if policy == "REPARENT" else []
        paths = [self.path(below) for below in gone]
        self.deletions += 1
        kept = [
            {
                "deletion": self.deletions,
                "below": 0 if policy == "REPARENT" else len(self.descendants(below["id"])),
                "order": list(self.siblings[(below["parent"], below["level"])]),
                "turn": self.turns.get((below["parent"], below["level"]), 0),
            }
            for below in gone
        ]
        # "Apply the changes in order": so a child that takes the path of the node moves when that is deleted.
        for child in children:
            if child["key"] != node["key"]:
                self.move(child, node["parent"], child["key"])
        self._log(path, "DELETED", node, withDescendants=policy != "REPARENT")
        for child in children:
            if child["key"] == node["key"]:
                self.move(child, node["parent"], child["key"])
        for below, place, more in zip(gone, paths, kept, strict=True):
            self.siblings[(below["parent"], below["level"])].remove(below["id"])
            self.deleted[below["id"]] = {**below, "path": place, "deletedAt": at, **more}
            self.former.pop(place, None)
            self.left[place] = below["id"]
        for below in gone:
            del self.nodes[below["id"]]

    def restored_with(self, id: str) -> list[Node]:
        """A deleted node, and what comes back with it: all that its deletion removed below it, as far as that hangs on
        what comes back, too.
        """
        found = {id: self.deleted[id]}
        for one in self.deleted.values():  # of each deletion in path order
            if one["deletion"] == found[id]["deletion"] and one["parent"] in found:
                found[one["id"]] = one
        return list(found.values())

    def restore(self, id: str, parent: str | None, key: str, at: str) -> list[Node]:
        """Bring a deleted node back below a parent, with all that comes back with it."""
        gone = self.restored_with(id)
        places = [(one["parent"], one["key"]) for one in gone]
        for one in gone:
            del self.deleted[one["id"]]
            one["parent"], one["key"] = (parent, normal(key)) if one is gone[0] else (one["parent"], one["key"])
            one["revision"], one["at"] = one["revision"] + 1, at
            kept = {part: copy.deepcopy(one[part]) for part in (*CONTENT, "revision", "at", "level", "key")}
            one["history"].append(kept)
            self.nodes[one["id"]] = one
        for one, place in zip(gone, places, strict=True):
            if place == (one["parent"], one["key"]):
                self._place_again(one)
            else:
                self._place(one)
        for one in gone:
            path, before = self.path(one), one.pop("path")
            if path != before and self.left.get(before) == one["id"]:
                self._leave(before, one["id"])
            for part in ("deletedAt", "deletion", "below", "order", "turn"):
                del one[part]
        self._log(self.path(gone[0]), "RESTORED", gone[0], withDescendants=True)
        return gone

    def _leave(self, path: str, id: str) -> None:
        self.former[path] = id
        self.left.pop(path, None)

    def _place_again(self, node: Node) -> None:
        """The place of a node that comes back to its parent with its key: its former one, if nobody has moved siblings
        meanwhile.
        """
        group = (node["parent"], node["level"])
        ids = self.siblings.setdefault(group, [])
        if group in self.reordered and node["turn"] == self.turns.get(group, 0):
            ids.append(node["id"])
            ids.sort(key=node["order"].index)
        else:
            self._place(node)

    def _place(self, node: Node) -> None:
        group = (node["parent"], node["level"])
        ids = self.siblings.setdefault(group, [])
        ids.append(node["id"])
        if group not in self.reordered:
            # "Siblings of one level are in the order of their keys until somebody reorders them" (modelling.md).
            ids.sort(key=lambda id: self.nodes[id]["key"])
        else:
            self.unplaced.setdefault(group, set()).add(node["id"])
            self.turns[group] = self.turns.get(group, 0) + 1

    # Logs, by the first segment of a path: "A tree is a root with everything below it" (concepts.md)

    def _log(self, path: str, event: str, node: Node, **more: Any) -> None:
        entry = {"event": event, "nodeId": node["id"], "path": path, "level": node["level"], "from": None, "to": None}
        entry |= {"revision": node["revision"], "withDescendants": False, **more}
        self.logs.setdefault(path.split("/")[0], []).append(entry)

    def _log_move(self, node: Node, source: str, target: str) -> None:
        for tree in dict.fromkeys((source.split("/")[0], target.split("/")[0])):
            # "Path of the node in this tree at the time of the change" (schema): within one tree it may be either.
            path = target if target.split("/")[0] == tree else source
            if source.split("/")[0] == target.split("/")[0]:
                path = (source, target)  # type: ignore[assignment]
            entry = {"event": "MOVED", "nodeId": node["id"], "path": path, "level": node["level"], "from": source}
            entry |= {"to": target, "revision": node["revision"], "withDescendants": True}
            self.logs.setdefault(tree, []).append(entry)

    def led_to(self, path: str) -> Node | None:
        """The node that a path leads to: "A former path leads to the node that was there last, wherever that node is
        now. A node that is there now answers itself. If the node that was there last was deleted, it is null."
        (writing.md).
        """
        return self.at(path) or self.nodes.get(self.former.get(path, ""))
