"""Trees in JSON documents with other names than Clade's own, by `--tree-by`: of children, keys, names and ids."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from store.errors import BadInput
from store.model.hierarchy import Hierarchy
from store.model.names import NAMES
from store.transfer.formats.columns import LevelColumns, TreeBy, fold, json_text
from store.transfer.formats.json import by_key, read_document
from store.transfer.formats.lines import key_of, line_of
from store.transfer.formats.tables import flat
from store.transfer.parent_ids import level_below
from store.transfer.rows import Part, Rejection, Row, TextRows

_Place = tuple[str, Any]  # the name of a list, and a node in it


class _Parent(NamedTuple):
    """What nodes stand below: its path, its level, and the number of its row where that was rejected."""

    path: list[Any]
    level: str | None
    rejected: int


class TreeFields:
    """The fields of the nodes of a tree. `lists` are the levels of the nodes in lists of these names; one that is named
    like a level, such as `products`, needs none. `columns` are fields of other names than attributes, by level.
    """

    def __init__(
        self, hierarchy: Hierarchy, tree: TreeBy, columns: Sequence[LevelColumns], lists: Mapping[str, str]
    ) -> None:  # fmt: skip
        self._hierarchy = hierarchy
        self.children = tree.children
        self._key, self._name, self._id = tree.key, tree.name or "name", tree.id or "id"
        self._columns = {own.level: own for own in columns}
        self._attributes = {
            level.name: {fold(name): name for name in level.attributes} for level in hierarchy.levels.values()
        }
        named: dict[str, str] = {}
        for level in hierarchy.levels.values():
            for name in (fold(level.name), fold(level.label)):
                named |= dict.fromkeys((name, f"{name}s", f"{name}es", f"{name.removesuffix('y')}ies"), level.name)
        self._levels = {**{name: named[fold(name)] for name in tree.children if fold(name) in named}, **lists}

    def nodes(self, file: Path) -> list[_Place]:
        """The roots of a document: a list, lists of these names, one node, nodes by key, or one of these in an object.

        Raises BadInput for a document without any of them.
        """
        document = read_document(file)
        while isinstance(document, dict):
            if (self._key or self._name) in document:
                return [("", document)]
            if found := {name: document[name] for name in self.children if name in document}:
                return [
                    (name, one)
                    for name, nodes in found.items()
                    for one in by_key(nodes, self._key or "key") or nodes or ()
                ]
            nodes = by_key(document, self._key or "key")
            is_wrapper = len(nodes) == 1 and len({*nodes[0]} - {*self.children}) == 1  # around lists of nodes alone
            if (
                nodes
                and not is_wrapper
                and all(any(name in one for name in (*self.children, self._name)) for one in nodes)
            ):
                return [("", one) for one in nodes]
            inner = [(name, value) for name, value in document.items() if isinstance(value, dict | list)]
            if len(inner) != 1:
                break
            ((place, document),) = inner
            if isinstance(document, list):
                return [(place, one) for one in document]
        if not isinstance(document, list):
            raise BadInput(f"{file.name} has no list of nodes, nor one of the lists of --tree-by.")
        return [("", one) for one in document]

    def read(self, roots: Sequence[_Place]) -> TextRows:
        """The nodes, parents first, each with its line of JSON. What is below a rejected one is rejected, too."""
        waiting = [(_Parent([], None, 0), place) for place in reversed(roots)]
        number = 0
        while waiting:
            parent, (place, node) = waiting.pop()
            number += 1
            fields = dict(node) if isinstance(node, dict) else {self._name: node, self._key or "key": node}
            children = [*self._children(fields)]
            key = fields.get(self._key) if self._key else fields.get("key", fields.get(self._name))
            try:
                level, row = self._row(number, parent, place, key, fields)
                yield line_of(row), row
                above = _Parent([*row.path], level, 0)
            except BadInput as error:
                above = _Parent([*parent.path, key], None, number)
                yield json_text({"path": above.path, **fields}), Rejection(number, str(error))
            waiting += [(above, one) for one in reversed(children)]

    def _children(self, fields: dict[str, Any]) -> Iterator[_Place]:
        """Take the children out of the fields of a node."""
        for name in self.children:
            nodes = fields.get(name)
            nodes = by_key(nodes, self._key or "key") or nodes
            if not nodes or isinstance(nodes, list):
                fields.pop(name, None)
                yield from ((name, one) for one in nodes or ())

    def _row(self, number: int, parent: _Parent, place: str, key: Any, fields: dict[str, Any]) -> tuple[str, Row]:
        if parent.rejected:
            raise BadInput(f"Its parent is missing, since row {parent.rejected} was rejected.")
        if key is None:
            raise BadInput(f'The node below {"/".join(parent.path) or "the root"} has no "{self._key or self._name}".')
        path = [*parent.path, key_of(key)]
        rest = flat(fields)
        level = self._level(parent.level, place, rest)
        own, of_key = self._columns[level], self._key or ("key" if "key" in fields else self._name)
        given = {"name": self._name, "id": self._id, **own.columns}
        values = {what: rest[name] for what, name in given.items() if name in rest}
        names = {language: rest.get(column) for language, column in own.names.items()}
        for used in (of_key, *given.values(), *own.names.values()):
            rest.pop(used, None)
        title, node_id = [
            str(one) if type(one) is int else one for one in map(values.pop, ("name", "id"), (None, None))
        ]
        attributes = {**values, **({NAMES: names} if names else {})}
        attributes |= {self._attributes[level].get(fold(name), name): value for name, value in rest.items()}
        return level, Row(number, path, [Part(level, title, node_id, attributes, columns=own.columns)])

    def _level(self, above: str | None, place: str, fields: dict[str, Any]) -> str:
        """The level of a node: by its field, which is taken out, by the list that it is in, or by its place."""
        text = fields.get("level")
        if isinstance(text, str) and (found := self._hierarchy.find(text)):
            del fields["level"]
            return found.name
        if place in self._levels:
            return self._levels[place]
        levels = [level.name for level in self._hierarchy.levels.values() if above in level.under]
        level, reason = level_below(self._hierarchy, above)
        if level and (len(levels) == 1 or len(self.children) == 1):
            return level
        if not levels:
            raise BadInput(reason)
        raise BadInput(
            f'A node in "{place}" may be {" or ".join(levels)}; --level names it: {levels[0].lower()}={place}.'
        )
