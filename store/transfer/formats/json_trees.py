"""Trees in JSON documents: nodes with their children, by Clade's own names of fields or by others."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from store.errors import BadInput, shorten
from store.model.hierarchy import Hierarchy
from store.model.names import NAMES
from store.transfer.formats.columns import LevelColumns, TreeBy, fold, json_text
from store.transfer.formats.json import CHILDREN, by_key, read_document
from store.transfer.formats.lines import key_of, line_of, row_of
from store.transfer.formats.tables import flat
from store.transfer.parent_ids import level_below
from store.transfer.rows import Part, Rejection, Row, TextRows


class _Parent(NamedTuple):
    """What nodes stand below: its path, its level if known, and the number of its row where that was rejected."""

    path: list[Any]
    level: str | None
    rejected: int

    def __str__(self) -> str:
        return shorten("/".join(map(str, self.path)), 200) or "the root"


class NodeReader:
    """The nodes of trees such as `{"key": "US", "level": "COUNTRY", "name": …, "children": […]}`, as rows.

    The key is the name where it is left out, and the level the only one that may stand there. `children` may also be
    an object of nodes by key. A node may have a `path` instead, as in JSON lines. A `tree` has other names; `lists` are
    the levels of the nodes in lists of these names, where one that is named like a level, such as `products`, needs
    none, and `columns` are fields with other names than attributes, by level.
    """

    def __init__(
        self, hierarchy: Hierarchy, tree: TreeBy | None = None, columns: Collection[LevelColumns] = (),
        lists: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self._hierarchy, self._is_own = hierarchy, tree is None
        tree = tree or TreeBy(children=(CHILDREN,))
        self.children = tree.children
        self._key, self._name, self._id = tree.key, tree.name or "name", tree.id or "id"
        self._columns = {own.level: own for own in columns}
        named: dict[str, str] = {}
        for level in hierarchy.levels.values():
            for name in (fold(level.name), fold(level.label)):
                named |= dict.fromkeys((name, f"{name}s", f"{name}es", f"{name.removesuffix('y')}ies"), level.name)
        self._levels = {name: named[fold(name)] for name in tree.children if fold(name) in named} | dict(lists or {})

    def roots(self, file: Path) -> Sequence[Any]:
        """The roots of a document by other names: a list, lists of these names, one node, or nodes by key; also as the
        only list or object in others. Raises BadInput for a document without any of them.
        """
        document = read_document(file)
        while isinstance(document, dict) and (self._key or self._name) not in document:
            if lists := [document[name] for name in self.children if name in document]:
                return [one for nodes in lists for one in self._by_key(nodes)]
            nodes = by_key(document, self._key or "key")
            # Around lists of nodes alone; of nodes by key the key is that of a node.
            is_wrapper = len(nodes) == 1 and len({*nodes[0]} - {*self.children}) == 1
            is_wrapper = is_wrapper and not any(isinstance(nodes[0].get(name), dict) for name in self.children)
            if (
                nodes
                and not is_wrapper
                and all(any(name in one for name in (*self.children, self._name)) for one in nodes)
            ):
                return nodes
            inner = [value for value in document.values() if isinstance(value, dict | list)]
            document = inner[0] if len(inner) == 1 else None
        if isinstance(document, dict):
            return [document]
        if not isinstance(document, list):
            raise BadInput(f"{file.name} has no list of nodes, nor one of the lists of --tree-by.")
        return document

    def read(self, roots: Sequence[Any]) -> TextRows:
        """The nodes, parents first, each with its line of JSON. What lies below a rejected one is rejected as well."""
        waiting = [(_Parent([], None, 0), "", one) for one in reversed(roots)]
        ids: dict[tuple[str, ...], tuple[object, int]] = {}  # of nodes by their paths, with their rows
        number = 0
        while waiting:
            parent, place, node = waiting.pop()
            number += 1
            fields = dict(node) if isinstance(node, dict) else {self._key or self._name: node}
            children = [*self._children(fields)]
            row = (self._own_row if self._is_own else self._row)(number, parent, place, fields)
            if isinstance(row, Row) and (node_id := row.parts[0].id) is not None:
                first_id, first = ids.setdefault(tuple(map(str, row.path)), (node_id, number))
                if first_id != node_id:  # what is below them cannot be told apart
                    fields["path"] = [*row.path]
                    said = f"has the id {first_id} in row {first} already, not {node_id}"
                    row = Rejection(
                        number, f"{shorten('/'.join(map(str, row.path)))} {said}; give each a key of its own."
                    )
            yield line_of(row) if isinstance(row, Row) and not self._is_own else json_text(fields), row
            if isinstance(row, Row):
                path, label, rejected = row.path, row.parts[0].level, 0
            else:
                path, label, rejected = fields["path"], str(fields.get("level")), number
            level = self._hierarchy.find(label)
            path = path if isinstance(path, list | tuple) else [path]
            below = _Parent([*path], level.name if level else None, rejected)
            waiting += [(below, name, child) for name, child in reversed(children)]

    def _by_key(self, nodes: Any) -> Any:
        """Nodes as a list, those of an object by their keys; anything else as it is."""
        return by_key(nodes, self._key or "key") or nodes or []

    def _children(self, fields: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """Take the children out of the fields of a node, each with the name of its list."""
        for name in self.children:
            if isinstance(nodes := self._by_key(fields.get(name)), list):
                fields.pop(name, None)
                yield from ((name, one) for one in nodes)

    def _fault(self, parent: _Parent, key: Any, fields: Mapping[str, Any]) -> str:
        """What is wrong with a node apart from its values."""
        if wrong := next((name for name in self.children if name in fields), None):
            return f'"{wrong}" is a list of nodes, or an object of nodes by key.'
        if key is None and "key" not in fields:
            lacks = "key and no name" if self._is_own else f'"{self._key or self._name}"'
            return f"The node below {parent} has no {lacks}."
        return f"Parent {parent} is missing, since row {parent.rejected} was rejected." if parent.rejected else ""

    def _own_row(self, number: int, parent: _Parent, _: str, fields: dict[str, Any]) -> Row | Rejection:
        """The row of a node, whose fields become those of a line of JSON."""
        key = fields.get("key", fields.get("name"))
        reason = self._fault(parent if "path" not in fields else _Parent([], None, 0), fields.get("path", key), fields)
        if "path" not in fields:
            if "key" not in fields and type(key) is int:
                fields["name"] = str(key)
            fields.pop("key", None)
            fields |= {"path": [*parent.path, key]}
            levels = self._labels(parent) if fields.get("level") is None else []
            if levels:
                fields["level"] = levels[0] if len(levels) == 1 else None
            if len(levels) > 1 and not reason:
                reason = f'The node below {parent} has no level; write "level" with {" or ".join(levels)}.'
        return Rejection(number, reason) if reason else row_of(number, fields)

    def _labels(self, parent: _Parent) -> list[str]:
        above = parent.level
        levels = self._hierarchy.levels.values() if above or not parent.path else ()
        return [level.label for level in levels if above in level.under]

    def _row(self, number: int, parent: _Parent, place: str, fields: dict[str, Any]) -> Row | Rejection:
        """The row of a node by other names."""
        of_key = self._key or ("key" if "key" in fields else self._name)
        key = fields.get(of_key)
        try:
            if reason := self._fault(parent, key, {name: None for name in fields if name in self.children}):
                raise BadInput(reason)
            path, rest = [*parent.path, key_of(key)], flat(fields)
            level = self._level(parent, place, rest)
        except BadInput as error:
            fields |= {"path": [*parent.path, key]}
            return Rejection(number, str(error))
        own = self._columns[level]
        given = {"name": self._name, "id": self._id, **own.columns}
        values = {what: rest[name] for what, name in given.items() if name in rest}
        if own.names:
            values[NAMES] = {language: rest.get(column) for language, column in own.names.items()}
        for used in (of_key, *given.values(), *own.names.values()):
            rest.pop(used, None)
        title, node_id = [
            str(one) if type(one) is int else one for one in map(values.pop, ("name", "id"), (None, None))
        ]
        attributes = {fold(name): name for name in self._hierarchy.levels[level].attributes}
        values |= {attributes.get(fold(name), name): value for name, value in rest.items()}
        return Row(number, path, [Part(level, title, node_id, values, columns=own.columns)])

    def _level(self, parent: _Parent, place: str, fields: dict[str, Any]) -> str:
        """The level of a node: by its field, which is taken out, by the list that it is in, or by its place."""
        text = fields.get("level")
        if isinstance(text, str) and (found := self._hierarchy.find(text)):
            del fields["level"]
            return found.name
        if place in self._levels:
            return self._levels[place]
        levels = self._labels(parent)
        level, reason = level_below(self._hierarchy, parent.level)
        if level and (len(levels) == 1 or len(self.children) == 1):
            return level
        raise BadInput(
            f'A node in "{place}" may be {" or ".join(levels)}; --level names it: {levels[0].lower()}={place}.'
            if levels
            else reason
        )
