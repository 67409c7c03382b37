"""Nested objects: trees in JSON documents, whose nodes have their children in lists, by Clade's own names of fields or
by others.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from store.errors import BadInput, shorten
from store.model.hierarchy import Hierarchy
from store.model.names import NAMES
from store.transfer.formats.cells import PLAIN, fold, json_text
from store.transfer.formats.json import CHILDREN, NAMED, by_key, is_nodes, objects_of
from store.transfer.formats.source import Doubt, Guess, csv_line
from store.transfer.formats.table import Table, TableRow, flat
from store.transfer.rows import Part, Rejection, Row, TextRows
from store.transfer.shapes.columns import columns, level_column, match_columns
from store.transfer.shapes.doubts import shape_doubt
from store.transfer.shapes.parent_tree import level_below
from store.transfer.shapes.paths import key_of, line_of, row_of
from store.transfer.shapes.shape import RowOptions, Shape, TreeParts

OTHER_LIST = (
    '{file} is a tree: "{name}" has objects that would be lost. The nodes of a tree are in lists "children", each with '
    'a "key" or "name", and need no --level; a table has --level with a column of each list'
)
_TITLES = frozenset(("name", "title", "label", "text", "caption", "displayname"))  # folded


class _Parent(NamedTuple):
    """What nodes stand below: its path, its level if known, and the number of its row where that was rejected."""

    path: list[Any]
    level: str | None
    rejected: int

    def __str__(self) -> str:
        return shorten("/".join(map(str, self.path)), 200) or "the root"


_SKIPPED = _Parent([], None, 0)  # of what is below a skipped node


class Nested(Shape):
    """The nodes of trees such as `{"key": "US", "level": "COUNTRY", "name": …, "children": […]}`, as rows.

    The key is the name where it is left out, and the level the only one that may stand there. `children` may also be
    an object of nodes by key. A node may have a `path` instead, as in JSON lines. With `--tree-by` the fields have
    other names; `--level` then names the level of the nodes in a list, where one that is named like a level, such as
    `products`, needs none, and the other options name fields with other names than attributes.

    Raises Doubt for nodes with lists of others.
    """

    trees: ClassVar = {"children": TreeParts(("children",), ("key", "name", "id"))}
    needs_order = True
    is_table = False
    has_lists = True

    def __init__(self, hierarchy: Hierarchy, table: Table, options: RowOptions) -> None:
        super().__init__(hierarchy, table, options)
        self._is_own = options.tree is None
        parts = options.tree.parts if options.tree else {"children": CHILDREN}
        self.children = tuple(name.strip() for name in parts["children"].split("|") if name.strip())
        self._key, self._name, self._id = parts.get("key"), parts.get("name", "name"), parts.get("id", "id")
        self._document = table.document() if table.document else None
        lists: Mapping[str, str] = {}
        if self._is_own:
            self.refuse_columns()
            self._columns = {}
            self._roots: Sequence[Any] = objects_of(self._document, table.name)
        else:
            lists = self._lists()
            given = columns(hierarchy, replace(options.columns, levels=[]), hierarchy.levels)
            self._columns = {own.level: own for own in given}
        named: dict[str, str] = {}
        for level in hierarchy.levels.values():
            for name in (fold(level.name), fold(level.label)):
                named |= dict.fromkeys((name, f"{name}s", f"{name}es", f"{name.removesuffix('y')}ies"), level.name)
        self._levels = {name: named[fold(name)] for name in self.children if fold(name) in named} | dict(lists)
        if not self._is_own:
            self._roots = self._found_roots()
        if Guess.SHAPE not in options.taken:
            self._check_nodes()

    @classmethod
    def fits(cls, table: Table, options: RowOptions) -> bool:
        if options.tree or table.document is None:
            return super().fits(table, options)
        return not options.columns.levels and is_nodes(objects_of(table.document(), table.name))

    def _lists(self) -> dict[str, str]:
        """The levels of the lists that `--level` names."""
        given = self.given.columns
        if self.given.cells != PLAIN or given.case_insensitive:
            raise BadInput(
                "--null, --numbers, --dates, --list-separator, --fill-down and --fold-case are for tables, and "
                "--tree-by children is none."
            )
        lists = {column: self.hierarchy.level(name).name for name, column, _ in map(level_column, given.levels)}
        if unknown := lists.keys() - {*self.children}:
            raise BadInput(f'--level names the list "{min(unknown)}", and --tree-by does not; add it to children=.')
        return lists

    def _found_roots(self) -> Sequence[Any]:
        """The roots of a document by other names: a list, lists of these names, one node, or nodes by key; also as the
        only list or object in others. Raises BadInput for a document without any of them.
        """
        document = self._document
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
            raise BadInput(f"{self.table.name} has no list of nodes, nor one of the lists of --tree-by.")
        return document

    def read(self, rows: Iterable[TableRow] | None = None) -> TextRows:
        """The nodes, parents first, each with its line of JSON. What lies below a rejected one is rejected as well."""
        waiting = [(_Parent([], None, 0), "", one) for one in reversed(self._roots)]
        ids: dict[tuple[str, ...], tuple[object, int]] = {}  # of nodes by their paths, with their rows
        number, skip = 0, self.skip
        skip.start()
        while waiting:
            parent, place, node = waiting.pop()
            number += 1
            fields = dict(node) if isinstance(node, dict) else {self._key or self._name: node}
            children = [*self._children(fields)]
            if parent is _SKIPPED or skip.takes_object(fields):
                skip.below += parent is _SKIPPED
                waiting += [(_SKIPPED, name, child) for name, child in reversed(children)]
                continue
            given = dict(fields)
            for name in self.unused if self._is_own else ():
                fields.pop(name, None)
            row = (self._own_row if self._is_own else self._other_row)(number, parent, place, fields)
            if isinstance(row, Row) and (node_id := row.parts[0].id) is not None:
                first_id, first = ids.setdefault(tuple(map(str, row.path)), (node_id, number))
                if first_id != node_id:  # what is below them cannot be told apart
                    fields["path"] = [*row.path]
                    said = f"has the id {first_id} in row {first} already, not {node_id}"
                    row = Rejection(
                        number, f"{shorten('/'.join(map(str, row.path)))} {said}; give each a key of its own."
                    )
            row = self.ordered(row, given)
            yield line_of(row) if isinstance(row, Row) and not self._is_own else json_text(fields), row
            if isinstance(row, Row):
                path, label, rejected = row.path, row.parts[0].level, 0
            else:
                path, label, rejected = fields["path"], str(fields.get("level")), number
            level = self.hierarchy.find(label)
            path = path if isinstance(path, list | tuple) else [path]
            below = _Parent([*path], level.name if level else None, rejected)
            waiting += [(below, name, child) for name, child in reversed(children)]
        self.check_fields()

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
        levels = self.hierarchy.levels.values() if above or not parent.path else ()
        return [level.label for level in levels if above in level.under]

    def _other_row(self, number: int, parent: _Parent, place: str, fields: dict[str, Any]) -> Row | Rejection:
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
        rest = {name: value for name, value in rest.items() if name not in self.unused}
        if own.names:
            values[NAMES] = {language: rest.get(column) for language, column in own.names.items()}
        for used in (of_key, *given.values(), *own.names.values()):
            rest.pop(used, None)
        title, node_id = [
            str(one) if type(one) is int else one for one in map(values.pop, ("name", "id"), (None, None))
        ]
        attributes = {fold(name): name for name in self.hierarchy.levels[level].attributes}
        values |= {attributes.get(fold(name), name): value for name, value in rest.items()}
        return Row(number, path, [Part(level, title, node_id, values, columns=own.columns)])

    def _level(self, parent: _Parent, place: str, fields: dict[str, Any]) -> str:
        """The level of a node: by its field, which is taken out, by the list that it is in, or by its place."""
        text = fields.get("level")
        if isinstance(text, str) and (found := self.hierarchy.find(text)):
            del fields["level"]
            return found.name
        if place in self._levels:
            return self._levels[place]
        levels = self._labels(parent)
        level, reason = level_below(self.hierarchy, parent.level)
        if level and (len(levels) == 1 or len(self.children) == 1):
            return level
        raise BadInput(
            f'A node in "{place}" may be {" or ".join(levels)}; --level names it: {levels[0].lower()}={place}.'
            if levels
            else reason
        )

    def _check_nodes(self) -> None:
        """Raise Doubt for nodes with a list of others that has another name than those of children."""
        waiting = [*self._roots]
        while waiting:
            fields = waiting.pop()
            for name, value in fields.items() if isinstance(fields, dict) else ():
                if name in self.children and isinstance(value, list | dict):
                    waiting += value if isinstance(value, list) else value.values()
                elif (
                    isinstance(value, list)
                    and any(isinstance(one, dict) and not NAMED.isdisjoint(one) for one in value)
                    and not any(level.attribute(name) for level in self.hierarchy.levels.values())
                ):
                    if self.children == (CHILDREN,):
                        _see_tree(self.table.name, self._roots)
                    raise Doubt(Guess.SHAPE, OTHER_LIST.format(file=self.table.name, name=shorten(name)))


def see_nested(hierarchy: Hierarchy, table: Table, options: RowOptions) -> None:
    """Raise Doubt for a document that is read as a table, of which a table would lose nodes: its tree is in other
    lists, or a list has none of the columns of levels. Raises BadInput for objects by key.
    """
    objects = objects_of(table.document() if table.document else None, table.name)
    first = objects[0] if len(objects) == 1 and isinstance(objects[0], dict) else {}
    if len(first) > 1 and all(isinstance(one, dict) for one in first.values()):
        raise BadInput(
            f'{table.name} has objects by key, such as "{shorten(next(iter(first)))}"; write a list of objects that '
            'have their keys as values, or a tree of nodes with "key" and "children".'
        )
    if Guess.SHAPE in options.taken:
        return
    if not (options.columns.levels or options.tree):
        _see_tree(table.name, objects)
    levels = options.columns.levels or match_columns(hierarchy, table.header).levels
    keys = [level_column(level)[1] for level in levels]
    above = {column.rpartition(".")[0] for column in table.header}
    if mixed := next((column for column in keys if column in above), None):
        raise Doubt(
            Guess.SHAPE,
            f'"{shorten(mixed)}" of {table.name} is a value in some objects and an object in others, and only one '
            "of both is a column",
            other="write it alike in all",
        )
    homes = {max((one for one in table.lists if key.startswith(f"{one}.")), key=len, default="") for key in keys}
    for name, is_nested in table.lists.items():
        if is_nested and name not in homes:
            raise Doubt(Guess.SHAPE, OTHER_LIST.format(file=table.name, name=shorten(name)))


def _see_tree(file: str, objects: Sequence[Any]) -> None:
    """Raise Doubt for a tree in lists of other names, such as `children=groups|items` and `name=title`.

    Its nodes have names; where some lists are in others of their names, only these are of children.
    """
    above: dict[str, set[str]] = {}  # of each list of nodes the lists that it is in
    titles: dict[str, None] = {}
    waiting: list[tuple[str, frozenset[str], Any]] = [("", frozenset(), one) for one in objects]
    while waiting:
        own, lists, node = waiting.pop()
        fields = node if isinstance(node, dict) else {}
        if found := [name for name in fields if fold(name) in _TITLES]:
            titles |= dict.fromkeys(found)
            above.setdefault(own, set()).update(lists)
        for name, value in fields.items():
            if isinstance(value, list):
                waiting += [(name, lists | {own}, one) for one in value]
    nested = [name for name in above if name in above[name]] or [name for name in above if name and above[name]]
    if nested:
        parts = [f"children={'|'.join(nested)}", *([] if "name" in titles else [f"name={next(iter(titles))}"])]
        seen = f"{file} is a tree whose nodes are in other lists than children"
        raise shape_doubt(seen, ["--tree-by", csv_line(parts)])
