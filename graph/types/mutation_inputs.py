"""Mutation inputs: the input types of one hierarchy's mutations, and what they ask for.

Inputs are read as graphql-core coerces them, by the names of the schema and without what was left out: the objects that
Strawberry would make of them take four times as long.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import strawberry

from graph.hierarchies.attribute import Decimal
from graph.hierarchies.node import Node
from graph.hierarchies.registry import camel, input_field_of
from graph.types.fields import LocalizedTextInput, Path, enum_class, input_type, texts_of
from graph.types.values import input_object, output_type, plain_input
from store.errors import BadPath, BadValue, Conflict, FaultList, Rule
from store.kinds.unique import UniqueValue
from store.model.attributes import Attribute, Kind, Value
from store.model.hierarchy import Hierarchy
from store.model.names import NAMES, checked_name, checked_names
from store.model.paths import check_new_key, checked_segment, parse_path
from store.model.records import checked_id
from store.writing.create_update import Addition, Create, Update
from store.writing.edit import NOWHERE, UNUSABLE, Edit, Named
from store.writing.edit_many import MAX_EDITS, EditMany
from store.writing.move_delete import Delete, Move, Policy
from store.writing.positions import Position, Side
from store.writing.restore import Restore

NONE = "none"
"""The field of the attributes of a level without any: GraphQL has no input without fields."""

_AMOUNT = Attribute("amount", Kind.DECIMAL, "")

Values = dict[str, Value]


@strawberry.enum(description="Effect of a deletion on the children of the node.")
class DeletePolicy(Enum):
    REFUSE = strawberry.enum_value("refuse", description="A node with children is not deleted.")
    CASCADE = strawberry.enum_value("cascade", description="All descendants are deleted as well.")
    REPARENT = strawberry.enum_value("reparent", description="The children move to the parent of the node.")


@dataclass(frozen=True)
class _Content:
    """The level, names and attributes that an input gives; the invalid ones are among the faults instead."""

    level: str | None
    name: str | None
    values: Values


class MutationInputs:
    """The inputs of one hierarchy, by the verbs of its mutations in `types`."""

    def __init__(self, cls: type[Node], hierarchy: Hierarchy) -> None:
        self._hierarchy, self._prefix = hierarchy, f"{cls.name}:"
        self._levels = {camel(input_field_of(level.__name__)): level for level in cls.levels.values()}
        self._labels = {
            member: [(one.label, part, one) for part, one in hierarchy.levels[level.level].attributes.items()]
            for member, level in self._levels.items()
        }
        attributes = [one for level in hierarchy.levels.values() for one in level.attributes.values()]
        self._numbers = {one.name: one for one in attributes if one.takes_amounts}
        self.types: Mapping[str, Any] = _types(cls, self._attributes(cls), self._addition(cls))
        several = {verb: made for verb, made in self.types.items() if verb != "restore"}
        verbs = {verb: (made | None, f"As {verb}{cls.prefix}{cls.title}.") for verb, made in several.items()}
        self.edit: Any = input_type(f"{cls.prefix}{cls.title}Edit", "One of several edits.", verbs, one_of=True)

    def _attributes(self, cls: type[Node]) -> Any:
        """The input with the attributes of exactly one level."""
        parts = {}
        for member, level in self._levels.items():
            title, text = f"{cls.prefix}{level.__name__}Attributes", f"Attributes of {level.label}."
            made: Any = (
                input_object(title, f"{text[:-1]}; null clears one, an omitted one stays.", level.attributes)
                if level.attributes
                else input_type(title, f"{text[:-1]}, which has none: give {{}}.", {NONE: (bool | None, "Omit it.")})
            )
            parts[member] = made | None, text
        return input_type(f"{cls.prefix}{cls.__name__}Attributes", "Attributes of one level.", parts, one_of=True)

    def _addition(self, cls: type[Node]) -> Any:
        """The input of an amount that is added; None without an attribute that takes one."""
        if not self._numbers:
            return None
        title = cls.prefix + cls.title
        members = {name.upper(): (name, one.description) for name, one in self._numbers.items()}
        fields: Any = enum_class(f"{title}NumberField", members, f"Numbers of the hierarchy {cls.name}.")
        parts = {"field": (fields, "Number of its level."), "amount": (Decimal, "Amount; may be negative.")}
        return input_type(f"{title}Addition", "An amount that is added to a number.", parts)

    def member_of(self, edit: Any) -> str | None:
        """The field of `attributes` that an edit gives, which is an input by its verb."""
        return next((self._member_of(given) for given in edit.values() if given is not None), None)

    def _member_of(self, given: Any) -> str | None:
        attributes = given.get("attributes") or {}
        return next((name for name in self._levels if attributes.get(name) is not None), None)

    # -- reading -------------------------------------------------------------------------------------------------------

    def parse(self, edits: Sequence[Any]) -> Edit:
        """The only edit, which is an input by its verb."""
        (edit,) = edits
        for verb, given in edit.items():
            if given is not None:
                parsed: Edit = getattr(self, verb)(given)
                return parsed
        fault = BadValue("The edit is none; give create, update, move or delete.", Rule.REQUIRED)
        return Update(self._hierarchy, NOWHERE, None, None, {}, names=[Named("node")], faults=[fault])

    def parse_many(self, edits: Sequence[Any]) -> EditMany:
        """Several edits, each an input by its verb."""
        if 1 <= len(edits) <= MAX_EDITS:
            return EditMany(self._hierarchy, [self.parse([edit]) for edit in edits])
        text = f"There are {len(edits):,} edits; give 1 to {MAX_EDITS}."
        return EditMany(self._hierarchy, [], [BadValue(text, Rule.MAX_ITEMS if edits else Rule.REQUIRED)])

    def create(self, given: Any) -> Edit:
        """A new node."""
        faults, parent, node_id = FaultList(), given.get("parent"), None
        content = self._content(given, faults)
        key = _key(given["key"], faults, is_new=True)
        with faults.collecting("id"):
            if (wanted := given.get("id")) is not None:
                node_id = UNUSABLE
                node_id = checked_id(str(wanted).removeprefix(self._prefix))
        names = [] if parent is None else [self._named(parent, "parent", faults)]
        level, name = content.level or "", content.name or ""
        return Create(self._hierarchy, (key,), level, name, content.values, node_id, names=names, faults=faults.errors)

    def update(self, given: Any) -> Edit:
        """Other content of a node."""
        faults = FaultList()
        content, node = self._content(given, faults), self._named(given["node"], "node", faults)
        expected, adds = _expected(given, faults), self._additions(given, faults)
        return Update(
            self._hierarchy, NOWHERE, content.name, content.level, content.values, expected, adds,
            names=[node], faults=faults.errors,
        )  # fmt: skip

    def move(self, given: Any) -> Edit:
        """Another place, key or position of a node."""
        faults, to, key, position = FaultList(), *[given.get(name) for name in ("to", "key", "position")]
        names, side = [self._named(given["node"], "node", faults)], None
        if to is None and key is None and position is None:
            faults.add(BadValue("The move changes nothing; give to, key or position.", Rule.REQUIRED))
        names += self._destination(to, faults)
        if position is not None:
            side = next((one for one in Side if position.get(one.value) not in (None, False)), None)
            if side is None:
                text = "position is none; give first: true, last: true, or the sibling before or after which."
                faults.add(BadValue(text, Rule.REQUIRED).at("position"))
                side = Side.FIRST
            elif side in (Side.BEFORE, Side.AFTER):
                names.append(self._named(position[side.value], "position", faults))
        target = () if key is None else (_key(key, faults, is_new=False),)
        place, expected = None if side is None else Position(side), _expected(given, faults)
        to_root = to is not None and "to" not in [one.field for one in names]
        return Move(
            self._hierarchy, NOWHERE, target, expected, place, to_root=to_root, names=names, faults=faults.errors
        )

    def delete(self, given: Any) -> Edit:
        """The deletion of a node."""
        faults = FaultList()
        node, expected = self._named(given["node"], "node", faults), _expected(given, faults)
        policy = Policy(given["policy"].value)
        return Delete(self._hierarchy, NOWHERE, policy, expected, names=[node], faults=faults.errors)

    def restore(self, given: Any) -> Edit:
        """The undo of a deletion."""
        faults, key = FaultList(), given.get("key")
        names = [Named("id", id=str(given["id"])), *self._destination(given.get("to"), faults)]
        path = () if key is None else (_key(key, faults, is_new=True),)
        to_root = given.get("to") is not None and len(names) == 1
        return Restore(self._hierarchy, path, str(given["id"]), to_root=to_root, names=names, faults=faults.errors)

    def _destination(self, to: Any, faults: FaultList) -> list[Named]:
        """The parent of a new place of a node, none where it is made a root."""
        if to is None:
            return []
        if to.get("parent") is not None:
            return [self._named(to["parent"], "to", faults)]
        if to.get("root") is True:
            return []
        faults.add(BadValue("to is no place; give a parent, or root: true.", Rule.REQUIRED).at("to"))
        return [Named("to")]

    def _named(self, given: Any, field: str, faults: FaultList) -> Named:
        """A node by its path, its id or a unique value; by none, with a fault, where they can be none."""
        path, node_id = given.get("path"), given.get("id")
        with faults.collecting(field):
            if path is not None:
                return Named(field, parse_path(path))
            if node_id is not None:
                return Named(field, id=str(node_id))
            for name, attribute in self._hierarchy.unique.items():
                if (value := given.get(camel(name))) is not None:
                    found = attribute.parse(plain_input(value, attribute))
                    return Named(field, value=UniqueValue.of(self._hierarchy.name, attribute, found))
            ways = ", its ".join(["path", *[one.label for one in self._hierarchy.unique.values()]])
            raise BadValue(f"{field} has no node; give its {ways} or its id.", Rule.REQUIRED)
        return Named(field)

    def _additions(self, given: Any, faults: FaultList) -> Sequence[Addition]:
        """The amounts to add, at most one for each attribute, which is not among the attributes that are given."""
        found, member = dict[str, Addition](), self._member_of(given)
        is_set = given["attributes"][member] if member is not None else ()
        for place, one in enumerate((given.get("add") or ())[: len(self._numbers) + 1]):  # one is twice among more
            name = one["field"].value
            label = self._numbers[name].label
            if name in found or label in is_set:
                text = "is added to twice; give the sum" if name in found else "is in attributes, too; give one of them"
                faults.add(BadValue(f"{label} {text}.", Rule.DUPLICATE).at("add", str(place), "field"))
            with faults.collecting("add", str(place), "amount"):
                found.setdefault(name, Addition(place, name, label, str(_AMOUNT.parse(one["amount"]))))
        return [*found.values()]

    def _content(self, given: Any, faults: FaultList) -> _Content:
        name, names, values = None, given.get("names", ()), Values()
        with faults.collecting("name"):
            if "name" in given and (name := checked_name(given["name"])) is None:
                raise BadValue("name is null; omit it to keep the current name.", Rule.REQUIRED)
        if names is None:
            values[NAMES] = None
        elif names:
            with faults.below("names"):
                values[NAMES] = checked_names(texts_of(names))
        member = self._member_of(given)
        if member is None:
            if given.get("attributes") is not None:
                text = "attributes has null for its level; give the attributes of one level."
                faults.add(BadValue(text, Rule.REQUIRED).at("attributes"))
            return _Content(None, name, values)
        level, inner = self._levels[member], given["attributes"][member]
        if not level.attributes and inner.get(NONE) is not None:
            fault = BadValue(f"{level.label} has no attributes; give {{}}.", Rule.TYPE)
            faults.add(fault.at("attributes", NONE))
        for label, part, attribute in self._labels[member]:
            if label in inner:
                with faults.below("attributes", part):
                    values[part] = attribute.change(plain_input(inner[label], attribute))
        return _Content(level.level, name, values)


def asked_json(value: Any) -> Any:
    """An input as JSON: the same for the same request."""
    if isinstance(value, list):
        return [asked_json(one) for one in value]
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, dict):
        return {name: asked_json(part) for name, part in value.items()}
    return value


def _expected(given: Any, faults: FaultList) -> int | None:
    """The expected revision. Null is a fault: it would be no lock for whoever lost the revision."""
    expected: int | None = given.get("expectedRevision")
    if expected is None and "expectedRevision" in given:
        text = "expectedRevision is null; give the revision that was read, or omit it to change any."
        faults.add(BadValue(text, Rule.REQUIRED).at("expected_revision"))
    elif expected is not None and given["node"].keys().isdisjoint(("path", "id")):
        text = f"Another node may have had this value at revision {expected}; name the node by its id."
        faults.add(Conflict(text).at("expected_revision"))
    return expected


def _key(given: str, faults: FaultList, *, is_new: bool) -> str:
    """A key, UNUSABLE with its fault where it cannot be one; one that is not surely new may be one of a stored node."""
    with faults.collecting("key"):
        if not given:
            raise BadPath("The key is empty; give one.", Rule.EMPTY)
        key = checked_segment(given)
        if is_new:
            check_new_key(key)
        return key
    return UNUSABLE


def _places(cls: type[Node]) -> tuple[Any, Any, Any]:
    """The inputs that name a node, a new place of one, and a position among siblings."""
    title, levels = cls.prefix + cls.title, [*cls.levels.values()]
    unique = {name: hint for level in levels for name, (hint, one) in level.attributes.items() if one.unique}
    by: Any = input_type(
        f"{title}By", "A node, by its path, its ID or a unique value." if unique else "A node, by its path or its ID.",
        {
            "path": (Path | None, "Current path; former ones are not redirected."),
            "id": (strawberry.ID | None, "ID."),
            **{camel(name): (output_type(hint), f"Its {camel(name)}.") for name, hint in unique.items()},
        },
        one_of=True,
    )  # fmt: skip
    place: Any = input_type(
        f"{title}Destination", "A new place of a node.",
        {"parent": (by | None, "New parent."), "root": (bool | None, "True makes it a root.")},
        one_of=True,
    )  # fmt: skip
    position: Any = input_type(
        f"{title}Position", "A position among the siblings of the node's level.",
        {
            "first": (bool | None, "True makes it the first."),
            "last": (bool | None, "True makes it the last."),
            "before": (by | None, "Sibling to place it right before; implies the parent."),
            "after": (by | None, "Sibling to place it right after; implies the parent."),
        },
        one_of=True,
    )  # fmt: skip
    return by, place, position


def _types(cls: type[Node], attributes: Any, addition: Any) -> dict[str, Any]:
    """The inputs by their verbs."""
    title = cls.prefix + cls.title
    by, place, position = _places(cls)
    node = {"node": (by, "Node to change.")}
    names = {"names": (list[LocalizedTextInput] | None, "Names in other languages; null clears all.")}
    revision = {"expectedRevision": (int | None, "The node's revision, or CONFLICT; not null.")}
    adds = {"add": (list[addition] | None, "Amounts to add to numbers.")} if addition else {}
    parts: dict[str, tuple[str, dict[str, Any]]] = {
        "create": ("A new node.", {
            "parent": (by | None, "Parent; omitted or null for a root."),
            "key": (str, 'Last segment of the path, unique among siblings, such as "Omaha".'),
            "name": (str, "Display name."),
            **names,
            "id": (strawberry.ID | None, "ID, with or without its hierarchy; generated by default."),
            "attributes": (attributes, "Attributes, which also set the level."),
        }),
        "update": ("New content of a node; what is omitted stays.", {
            **node,
            "name": (str | None, "New display name."),
            **names,
            "attributes": (attributes | None, "Attributes of its level; null keeps them."),
            **adds,
            **revision,
        }),
        "move": ("A new parent, key or position of a node; what is omitted stays.", {
            **node,
            "to": (place | None, "New parent."),
            "key": (str | None, 'New key, such as "Omaha".'),
            "position": (position | None, "New position among the siblings."),
            **revision,
        }),
        "delete": ("A node to delete.", {
            **node,
            "policy": (DeletePolicy, "Effect on the children.", DeletePolicy.REFUSE),
            **revision,
        }),
        "restore": ("A deleted node to bring back, with all that its deletion removed below it.", {
            "id": (strawberry.ID, "ID."),
            "to": (place | None, "New parent; by default its former one."),
            "key": (str | None, "New key."),
        }),
    }  # fmt: skip
    return {
        verb: input_type(f"{verb.capitalize()}{title}Input", text, fields) for verb, (text, fields) in parts.items()
    }
