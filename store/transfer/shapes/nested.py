"""Nested objects: trees in JSON documents, whose nodes have their children in lists, by Clade's own names of fields or
by others.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from store.errors import BadInput, shorten
from store.model.hierarchy import Hierarchy
from store.model.names import NAMES
from store.transfer.formats.cells import PLAIN, fold, json_text, named
from store.transfer.formats.json import CHILDREN, NAMED, by_key, is_nodes, objects_of
from store.transfer.formats.skip import inner
from store.transfer.formats.source import Doubt, Guess, csv_line
from store.transfer.formats.table import MAX_DEPTH, Table, TableRow, flat
from store.transfer.rows import Part, Rejection, Row, TextRows
from store.transfer.shapes.columns import columns, level_column, match_columns
from store.transfer.shapes.doubts import nested_level, shape_doubt
from store.transfer.shapes.parent_tree import level_below, node_id_of
from store.transfer.shapes.paths import has_paths, key_of, line_of, row_of
from store.transfer.shapes.shape import RowOptions, Shape, TreeParts

OTHER_LIST = (
    '{file} is a tree: "{name}" has objects that would be lost. The nodes of a tree are in lists "children", each with '
    'a "key" or "name", and need no --level; a table has --level with a column of each list'
)
_OTHER_LISTS = "is a tree whose nodes are in other lists than children"
_TITLES = frozenset(("name", "title", "label", "text", "caption", "displayname"))  # folded
_IDS = frozenset(("id", "uuid", "uid", "guid", "oid", "code"))
_CHILDREN = re.compile("child|narrower|^sub|haspart|members$|kinder")  # folded names of lists
_REFS = re.compile("(_r|R)efs?$")  # names of fields with ids of other objects
_OWN_FIELDS = NAMED | {"path", "level", NAMES, "rank", "undefined"}


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
    `products`, needs none, and the other options name fields with other names than attributes. A dotted name leads
    through objects, as `data.name`, and a connection, as Relay has them, is the list of its nodes. The other fields
    that no level has are left out.

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
        self._main = self._key or self._name
        self._prefix = self._main[: self._main.rfind(".") + 1]
        self._folded = {fold(name) for level in hierarchy.levels.values() for name in level.attributes}
        lists: Mapping[str, str] = {}
        self._others: Sequence[str] = ()  # lists beside that of the roots
        self._tops = set[str]()  # lists that have roots alone
        if self._is_own:
            self.refuse_columns()
            self._columns = {}
        else:
            lists = self._lists()
            given = columns(hierarchy, replace(options.columns, levels=[]), hierarchy.levels)
            self._columns = {own.level: own for own in given}
        titled: dict[str, str] = {}
        for level in hierarchy.levels.values():
            for name in (fold(level.name), fold(level.label)):
                titled |= dict.fromkeys((name, f"{name}s", f"{name}es", f"{name.removesuffix('y')}ies"), level.name)
        self._levels = {name: titled[fold(name)] for name in self.children if fold(name) in titled} | dict(lists)
        self._found = self._found_roots() if self._document is not None else ()
        if left := dict.fromkeys((*self._others, *self._left_out())):
            self.guesses = [f"not imported: {named([*left])}."]

    @classmethod
    def fits(cls, table: Table, options: RowOptions) -> bool:
        if options.tree or options.columns.levels:
            return super().fits(table, options)
        if table.document:
            return is_nodes(objects_of(table.document(), table.name))
        return not has_paths(table) and any(CHILDREN in one for one in table.objects) and is_nodes(table.objects)

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

    def _roots(self) -> Iterator[tuple[str, Any]]:
        """The roots, each with its line where the file has lines."""
        if self._document is None and self.table.values:
            return ((text, value) for _, text, value in self.table.values())
        return (("", one) for one in self._found)

    def _found_roots(self) -> Sequence[Any]:
        """The roots of a document; by other names those of its lists of nodes, or else one node, also in objects around
        them, and of several those with children. Raises BadInput for a document without any of them.
        """
        if self._is_own:
            roots = objects_of(self._document, self.table.name)
            if isinstance(self._document, dict) and roots != [self._document]:
                self._others = [name for name, nodes in _parts(self._document)[1] if nodes is not roots]
            return roots
        lists, nodes = dict[str, list[Any]](), dict[str, list[Any]]()
        waiting = [("", self._document)]
        while waiting:
            path, value = waiting.pop()
            value = _listed(value)
            if self._is_node(value):
                nodes[path] = [value]
            elif below := self._nodes(value):
                lists[path] = below
            elif isinstance(value, dict):
                waiting += [(f"{path}.{name}".lstrip("."), one) for name, one in value.items()]
        found = lists or nodes
        trees = [path for path, some in found.items() if any(map(self._has_children, some))]
        if not trees and len(found) != 1:
            raise BadInput(f"{self.table.name} has no list of nodes, nor one of the lists of --tree-by.")
        self._others = [*self._others, *(path for path in found if trees and path not in trees)]
        return [one for path in trees or found for one in found[path]]

    def _has_children(self, node: Any) -> bool:
        return isinstance(node, dict) and any(inner(node, name) for name in self.children)

    def _is_node(self, value: Any) -> bool:
        return isinstance(value, dict) and inner(value, self._main) is not None

    def _nodes(self, value: Any) -> list[Any]:
        """The nodes of a list, of an object with lists of `children=`, or of an object by key, but not of one around a
        single object.
        """
        if isinstance(value, list):
            return value if any(map(self._is_node, value)) else []
        if not isinstance(value, dict):
            return []
        rest = {**value}
        if found := [one for _, one in self._children(rest)]:
            self._others = [name for name, _ in _parts(rest)[1]]
            self._tops |= value.keys() & {*self.children}
            return found
        nodes, names = by_key(value, self._key or "key"), {*self.children}
        is_around = len(nodes) == 1 and not any(isinstance(_listed(nodes[0].get(name)), dict) for name in names)
        return nodes if not is_around and all({*one} & (names | {self._name}) for one in nodes) else []

    def read(self, rows: Iterable[TableRow] | None = None) -> TextRows:
        """The nodes, parents first, each with its line of JSON. What lies below a rejected one is rejected as well."""
        ids: dict[tuple[str, ...], tuple[object, int]] = {}  # of nodes by their paths, with their rows
        number = 0
        self.skip.start()
        for line, root in self._roots():
            if isinstance(root, Rejection):
                number += 1
                yield line, root._replace(number=number)
                continue
            waiting = [(_Parent([], None, 0), "", root)]
            while waiting:
                parent, place, node = waiting.pop()
                number += 1
                fields = dict(node) if isinstance(node, dict) else {self._main: node}
                children = [*self._children(fields)]
                if parent is _SKIPPED or self.skip.takes_object(fields):
                    self.skip.below += parent is _SKIPPED
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

    def _children(self, fields: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """Take the children out of the fields of a node, each with the name of its list; of an object by key the nodes
        with their keys.
        """
        for name in self.children:
            nodes = _listed(take(fields, name))
            if isinstance(nodes := by_key(nodes, self._key or "key") or nodes or [], list):
                yield from ((name, one) for one in nodes)
            else:
                fields[name] = nodes

    def _fault(self, parent: _Parent, key: Any, fields: Mapping[str, Any]) -> str:
        """What is wrong with a node apart from its values."""
        if wrong := next((name for name in self.children if name in fields), None):
            return f'"{wrong}" is a list of nodes, or an object of nodes by key.'
        if key is None and "key" not in fields:
            lacks = "key and no name" if self._is_own else f'"{self._main}"'
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
            if type(fields.get("id")) is int:
                fields["id"] = str(fields["id"])
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
        key = inner(fields, of_key)
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
        node_id = node_id_of(node_id) if isinstance(node_id, str) and node_id else node_id
        attributes = {fold(name): name for name in self.hierarchy.levels[level].attributes}
        known = {name: value for name, value in rest.items() if self._is_known(name)}
        values |= {attributes.get(fold(name.removeprefix(self._prefix)), name): one for name, one in known.items()}
        return Row(number, path, [Part(level, title, node_id, values, columns=own.columns)])

    def _level(self, parent: _Parent, place: str, fields: dict[str, Any]) -> str:
        """The level of a node: by its field, which is taken out, by the list that it is in, or by its place."""
        own = "level" if "level" in fields else f"{self._prefix}level"
        text = fields.get(own)
        if isinstance(text, str) and (found := self.hierarchy.find(text)):
            del fields[own]
            return found.name
        if place in self._levels:
            return self._levels[place]
        levels = self._labels(parent)
        level, reason = level_below(self.hierarchy, parent.level)
        if level and (len(levels) == 1 or len({*self.children} - self._tops) < 2):
            return level
        raise BadInput(
            f'A node in "{place}" may be {" or ".join(levels)}; --level names it: {levels[0].lower()}={place}.'
            if levels
            else reason
        )

    def _is_known(self, name: str) -> bool:
        """Whether a field is an attribute of a level, by its name beside that of the key, or has a name of Clade."""
        if name in self.unused:
            return False
        is_attribute = fold(name.removeprefix(self._prefix)) in self._folded
        return is_attribute or name in _OWN_FIELDS or any(one.attribute(name) for one in self.hierarchy.levels.values())

    def _left_out(self) -> list[str]:
        """The fields of nodes that are not imported. Raises Doubt for a list of nodes that has another name than those
        of children, for children that are the names of other nodes, and for fields of all roots that no level has.
        """
        used = {self._key, self._name, self._id, f"{self._prefix}level"}
        used |= {column for own in self._columns.values() for column in own.values}
        seen = set[str]()
        for _, root in self._roots():
            waiting = [root]
            while waiting:
                if not isinstance(node := waiting.pop(), dict):
                    continue
                children = [*self._children(fields := {**node})]
                self._tops -= {name for name, _ in children}
                waiting += [child for _, child in children]
                own, lists = _parts(fields)
                seen |= {*own, *dict(lists)}
                for name, values in lists if Guess.SHAPE not in self.given.taken else ():
                    are_nodes = any(isinstance(one, dict) and not {*NAMED, *used}.isdisjoint(one) for one in values)
                    if are_nodes and not self._is_known(name):
                        if self.children == (CHILDREN,):
                            _see_tree(self.hierarchy, self.table.name, [one for _, one in self._roots()])
                        raise Doubt(Guess.SHAPE, OTHER_LIST.format(file=self.table.name, name=shorten(name)))
        if Guess.SHAPE not in self.given.taken:
            self._see_fields(self._found or self.table.objects)
        return [] if self._is_own else sorted(name for name in seen - used if not self._is_known(name))

    def _see_fields(self, roots: Sequence[Any]) -> None:
        """Raise Doubt for roots that name their children, and where all have a field that no level has."""
        _see_names(self.table.name, roots, self.children)
        nodes = [{*root} for root in roots if self._is_own and isinstance(root, dict)]
        shared = set.intersection(*nodes).difference(self.children, self.unused, ("id",)) if nodes else set()
        unknown = sorted(name for name in shared if not self._is_known(name))
        if unknown and not self.given.ignore_unknown:
            seen = f'is a tree whose nodes have fields that no level has, such as "{shorten(unknown[0])}"'
            _see_tree(self.hierarchy, self.table.name, roots, seen)


def take(fields: dict[str, Any], name: str) -> Any:
    """The value of a dotted name, taken out of an object and copies of those in it; None without one."""
    first, _, rest = name.partition(".")
    if name in fields or not rest:
        return fields.pop(name, None)
    if isinstance(found := fields.get(first), dict):
        fields[first] = copy = {**found}
        return take(copy, rest)
    return None


def _listed(value: Any) -> Any:
    """The nodes of a connection, as Relay has them; any other value as it is."""
    edges = value.get("edges") if isinstance(value, dict) else None
    if isinstance(edges, list) and all(isinstance(one, dict) and "node" in one for one in edges):
        return [one["node"] for one in edges]
    return value


def _parts(node: Any) -> tuple[dict[str, Any], list[tuple[str, list[Any]]]]:
    """The values of an object and of those in it, and its lists of objects, by dotted names."""
    fields: dict[str, Any] = {}
    lists: list[tuple[str, list[Any]]] = []
    waiting: list[tuple[str, int, Any]] = [("", 0, node)]
    while waiting:
        prefix, depth, found = waiting.pop()
        for name, one in found.items() if isinstance(found, dict) else ():
            path, value = f"{prefix}{name}", _listed(one)
            if isinstance(value, dict) and depth < MAX_DEPTH:
                waiting.append((f"{path}.", depth + 1, value))
            elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
                lists.append((path, value))
            elif value not in (None, "", []):
                fields[path] = value
    return fields, lists


def see_nested(hierarchy: Hierarchy, table: Table, options: RowOptions) -> None:
    """Raise Doubt for a document that is read as a table, of which a table would lose nodes: its tree is in other
    lists, or a list has none of the columns of levels. Raises BadInput for objects by key.
    """
    objects = objects_of(table.document(), table.name) if table.document else table.objects
    first = objects[0] if table.document and len(objects) == 1 and isinstance(objects[0], dict) else {}
    nodes = by_key(first, "")
    if len(nodes) > 1 and len(set.intersection(*map(set, nodes))) > 1:  # "" is the key
        raise BadInput(
            f'{table.name} has objects by key, such as "{shorten(next(iter(first)))}"; write a list of objects that '
            'have their keys as values, or a tree of nodes with "key" and "children".'
        )
    if Guess.SHAPE not in options.taken:
        names = {name for one in objects if isinstance(one, dict) for name in one if _CHILDREN.search(fold(name))}
        _see_names(table.name, objects, names)
        if not (options.columns.levels or options.tree):
            _see_tree(hierarchy, table.name, objects)
    if Guess.SHAPE in options.taken:
        return
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


def _see_names(file: str, objects: Sequence[Any], lists: Collection[str]) -> None:
    """Raise Doubt for objects whose lists of children have values of others, such as their ids."""
    nodes = [one for one in objects if isinstance(one, dict)]
    children = [inner(node, name) for node in nodes for name in lists]
    texts = {str(one) for found in children if isinstance(found, list) for one in found if isinstance(one, str | int)}
    known = texts and texts & {str(one) for node in nodes for one in node.values() if isinstance(one, str | int)}
    if known and 2 * len(known) >= len(texts):
        seen = f'{file} has nodes that name their children, such as "{shorten(min(known))}"'
        raise shape_doubt(seen, other="write the id of its parent in each node, in place of its children")


def _see_tree(hierarchy: Hierarchy, file: str, objects: Sequence[Any], seen: str = _OTHER_LISTS) -> None:
    """Raise Doubt for a tree in lists of other names, such as `children=groups|items` and `name=title`.

    Its nodes have names; where some lists are in others of their names, only these are of children.
    """
    above: dict[str, set[str]] = {}  # of each list of nodes the lists that it is in
    titles, ids, count = Counter[str](), defaultdict[str, set[str]](set), 0
    waiting: list[tuple[str, frozenset[str], Any]] = [("", frozenset(), one) for one in objects]
    nodes: list[dict[str, Any]] = []
    while waiting:
        own, lists, node = waiting.pop()
        fields, below = _parts(node)
        if found := [name for name in fields if any(fold(part) in _TITLES for part in name.split("."))]:
            titles.update(found)
            nodes.append(node)
            above.setdefault(own, set()).update(lists)
            count += 1
            for name in fields:
                if fold(name.rpartition(".")[2]) in _IDS:
                    ids[name].add(str(fields[name]))
            lists |= {own}
        waiting += [(name, lists, one) for name, values in below for one in values]
    nested = [name for name in above if name in above[name]] or [name for name in above if above[name]]
    nested = [name for name in nested if not any(name.endswith(f".{other}") for other in nested)]
    if not nested:
        return
    _see_names(file, nodes, {name for one in nodes for name in one if _REFS.search(name)})
    best = max(titles, key=lambda name: (titles[name], fold(name.rpartition(".")[2]) == "name", -name.count(".")))
    node_id = next((name for name in sorted(ids, key=lambda one: one != "id") if len(ids[name]) == count), "id")
    others = [f"{what}={name}" for what, name in (("name", best), ("id", node_id)) if name != what]
    by = csv_line([f"children={'|'.join(nested)}", *others])
    level = nested_level(hierarchy) if len(nested) > 1 else None
    unclear = [name for name in nested if not hierarchy.find(name.rpartition(".")[2].removesuffix("s"))]
    levels = [word for name in unclear if level for word in ("--level", f"{level.name.lower()}={name}")]
    raise shape_doubt(f"{file} {seen}", ["--tree-by", by, *levels])
