"""Edit inputs: the types of the inputs of one hierarchy's mutations, and what they ask for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import strawberry

from graph.hierarchies.names import input_field_of
from graph.hierarchies.node import Node
from graph.types.field import input_type
from graph.types.node_fields import LocalizedNameInput, given_names
from graph.types.value_types import Path, input_object, plain_input
from graph.types.value_types import input_type as type_of_value
from resolvers.mutations import (
    UNUSABLE,
    Asked,
    AskedCreate,
    AskedDelete,
    AskedMove,
    AskedUpdate,
    Named,
    Policy,
    Side,
    faults_of,
)
from store.errors import BadInput, BadPath, FaultList
from store.model.attributes import Value
from store.model.names import checked_name
from store.model.paths import checked_segment, parse_path
from store.model.records import checked_id

Values = dict[str, Value]
VERBS = ("create", "update", "move", "delete")


@strawberry.enum(description="Effect of a deletion on the children of the node.")
class DeletePolicy(Enum):
    REFUSE = strawberry.enum_value("refuse", description="A node with children is not deleted.")
    CASCADE = strawberry.enum_value("cascade", description="All descendants are deleted as well.")
    REPARENT = strawberry.enum_value("reparent", description="The children move to the parent of the node.")


@dataclass(frozen=True)
class _Content:
    """The level, names and attributes that an input gives, and the faults among them."""

    level: str | None
    name: str | None
    values: Values
    faults: FaultList


@dataclass(frozen=True)
class _Places:
    """The types of inputs that name a node, a new place and a position among siblings."""

    by: Any
    place: Any
    position: Any


class EditInputs:
    """The inputs of one hierarchy; `level` is its enum of levels.

    `of_verbs` are the inputs of single edits by their verbs, `edit` is that of one edit of several.
    """

    def __init__(self, cls: type[Node], level: Any) -> None:
        self._name = cls.name
        self._levels = {input_field_of(one.__name__): one for one in cls.levels.values() if one.attributes}
        self._members = {one.level: input_field_of(one.__name__) for one in cls.levels.values()}
        title = cls.prefix + cls.__name__
        places = _places(title)
        content = {
            "names": (list[LocalizedNameInput] | None, "Names in other languages; omitted ones stay, null clears all."),
        } | self._attributes(cls, title)
        self.of_verbs: dict[str, Any] = _inputs(title, level, places, content)
        edits = {verb: (self.of_verbs[verb] | None, f"{verb.capitalize()} a node.") for verb in VERBS}
        self.edit: Any = input_type(f"{title}Edit", "One of several changes.", edits, one_of=True)

    def _attributes(self, cls: type[Node], title: str) -> dict[str, tuple[Any, str]]:
        """The field `attributes`, unless no level has any."""
        if not self._levels:
            return {}
        parts = {}
        for member, level in self._levels.items():
            values = {name: (type_of_value(hint), attribute) for name, (hint, attribute) in level.attributes.items()}
            text = f"Attributes of {level.label}; null clears one, an omitted one stays."
            made: Any = input_object(f"{cls.prefix}{level.__name__}Attributes", text, values)
            parts[member] = (made | None, f"Attributes of {level.label}.")
        made = input_type(f"{title}Attributes", "Attributes of exactly one level.", parts, one_of=True)
        return {"attributes": (made | None, "Attributes of the node's level; of a new node they also set it.")}

    # -- reading -------------------------------------------------------------------------------------------------------

    def verb_of(self, edit: Any) -> tuple[str, Any]:
        """The verb and the input of one edit of several; of none the verb is empty."""
        given = ((verb, getattr(edit, verb)) for verb in VERBS)
        return next(((verb, value) for verb, value in given if value not in (None, strawberry.UNSET)), ("", None))

    def member_of(self, given: Any) -> str | None:
        """The field of `attributes` that an input gives, or that is for its level."""
        member, level = self._member(given), _given(given, "level")
        return member or (None if level is None else self._members[level.value])

    def read(self, edits: Sequence[tuple[str, Any]]) -> list[Asked]:
        """What the inputs ask for. Raises the faults for which no edit can be built, with all others.

        Those in its content and its key are in the edit, so that they are raised with what only the store knows.
        """
        faults, asked = FaultList(), dict[int, Asked]()
        for number, (verb, given) in enumerate(edits):
            before = len(faults.errors)
            with faults.collecting():
                asked[number] = self._read(verb, given)
            for error in faults.errors[before:]:
                error.edit = number
        if faults.errors:
            for number, one in asked.items():
                faults.errors += faults_of(one, number)
            raise faults.error()
        return [*asked.values()]

    def _read(self, verb: str, given: Any) -> Asked:
        match verb:
            case "create":
                return self._create(given)
            case "update":
                content, expected, faults = self._content(given), _given(given, "expected_revision"), FaultList()
                with faults.collecting("node"):
                    node = self._named(given.node, "node")
                    return AskedUpdate(
                        node, content.name, content.level, content.values, expected, content.faults.errors
                    )
                raise FaultList([*faults.errors, *content.faults.errors]).error()
            case "move":
                return self._move(given)
            case "delete":
                policy, expected = _given(given, "policy"), _given(given, "expected_revision")
                node = self._named(given.node, "node")
                return AskedDelete(node, Policy(policy.value) if policy else Policy.REFUSE, expected)
            case _:
                raise BadInput("The edit is null; give a create, update, move or delete.")

    def _create(self, given: Any) -> Asked:
        content, node_id, faults = self._content(given), _given(given, "id"), FaultList()
        with faults.collecting("parent"):
            parent = _given(given, "parent")
            parent = None if parent is None else self._named(parent, "parent")
        if content.level is None:
            faults.add(BadInput("The level is missing; give level, or the attributes of one level.").at("level"))
        key = _key(given.key, content.faults)
        with content.faults.collecting("id"):
            node_id = None if node_id is None else checked_id(str(node_id).removeprefix(f"{self._name}:"))
        if faults.errors:
            raise FaultList([*faults.errors, *content.faults.errors]).error()
        name = content.name or ""
        return AskedCreate(parent, key, str(content.level), name, content.values, node_id, content.faults.errors)

    def _move(self, given: Any) -> AskedMove:
        faults, of_key = FaultList(), FaultList()
        node, to, beside, side, key = None, None, None, None, _given(given, "key")
        place, position = _given(given, "to"), _given(given, "position")
        with faults.collecting("node"):
            node = self._named(given.node, "node")
        with faults.collecting("to"):
            if place is not None and _given(place, "parent") is not None:
                to = self._named(place.parent, "to")
            elif place is not None and _given(place, "root") is not True:
                raise BadInput("to is no place; give a parent, or root: true.")
        key = None if key is None else _key(key, of_key)
        with faults.collecting("position"):
            if position is not None:
                side, beside = self._position(position)
        with faults.collecting():
            if to is None and place is None and key is None and position is None:
                raise BadInput("The move changes nothing; give to, key or position.")
        if faults.errors:
            raise FaultList([*faults.errors, *of_key.errors]).error()
        to_root, expected = place is not None and to is None, _given(given, "expected_revision")
        return AskedMove(node or Named("node"), to, to_root, key, side, beside, expected, of_key.errors)

    def _position(self, given: Any) -> tuple[Side, Named | None]:
        for side in Side:
            value = _given(given, side.value)
            if value is True:
                return side, None
            if value not in (None, False):
                return side, self._named(value, "position")
        raise BadInput("position is none; give first: true, last: true, or the sibling before or after which.")

    def _named(self, given: Any, field: str) -> Named:
        """A node by path or id, one of which is not null."""
        path, node_id = _given(given, "path"), _given(given, "id")
        if path is None and node_id is None:
            raise BadInput(f"{field} has no node; give its path or its id.").at(field)
        try:
            return Named(field, None if path is None else parse_path(path), None if node_id is None else str(node_id))
        except BadInput as error:
            raise error.at(field) from None

    def _content(self, given: Any) -> _Content:
        faults, values = FaultList(), Values()
        name, level = _given(given, "name", strawberry.UNSET), _given(given, "level")
        with faults.collecting("name"):
            if name is None:
                raise BadInput("name is null; omit it to keep the current name.")
            name = None if name is strawberry.UNSET else checked_name(name)
        with faults.collecting("names"):
            values |= given_names(_given(given, "names", ()))
        found = None if level is None else level.value
        member = self._member(given)
        if member is not None:
            of_attributes = self._levels[member]
            if found not in (None, of_attributes.level):
                text = f"The level is {level.name}, and the attributes are those of {of_attributes.label}; give one."
                faults.add(BadInput(text).at("level"))
            found = of_attributes.level
            values |= _values(of_attributes, member, getattr(given.attributes, member), faults)
        elif _given(given, "attributes") is not None:
            faults.add(BadInput("attributes is null for its level; give an object, or omit it.").at("attributes"))
        return _Content(found, name if isinstance(name, str) else None, values, faults)

    def _member(self, given: Any) -> str | None:
        """The field of `attributes` that is given."""
        attributes = _given(given, "attributes")
        return next((name for name in self._levels if _given(attributes, name) is not None), None)


def _places(title: str) -> _Places:
    """The inputs that name nodes and places."""
    by: Any = input_type(
        f"{title}By", "A node, by its path or its ID.",
        {
            "path": (Path | None, "Current path; former ones are not redirected."),
            "id": (strawberry.ID | None, "ID."),
        },
        one_of=True,
    )  # fmt: skip
    place: Any = input_type(
        f"{title}Destination", "The new place of a node.",
        {
            "parent": (by | None, "New parent."),
            "root": (bool | None, "True makes it a root."),
        },
        one_of=True,
    )  # fmt: skip
    position: Any = input_type(
        f"{title}Position", "A position among the siblings of a node's level.",
        {
            "first": (bool | None, "True makes it the first."),
            "last": (bool | None, "True makes it the last."),
            "before": (by | None, "Sibling to place it right before; implies the parent."),
            "after": (by | None, "Sibling to place it right after; implies the parent."),
        },
        one_of=True,
    )  # fmt: skip
    return _Places(by, place, position)


def _inputs(title: str, level: Any, places: _Places, content: dict[str, Any]) -> dict[str, Any]:
    """The inputs of single edits by their verbs."""
    node = {"node": (places.by, "Node to change.")}
    revision = {"expected_revision": (int | None, "CONFLICT unless this is the node's revision before the change.")}
    return {
        "create": input_type(
            f"Create{title}Input", "A new node.",
            {
                "parent": (places.by | None, "Parent; omitted or null for a root."),
                "key": (str, 'Last segment of the path, unique among siblings, such as "Omaha".'),
                "name": (str, "Display name."),
                "level": (level | None, "Level; may be omitted where `attributes` say it."),
                **content,
                "id": (strawberry.ID | None, "ID, with or without its hierarchy; generated by default."),
            },
        ),
        "update": input_type(
            f"Update{title}Input", "New content of a node.",
            node | {"name": (str | None, "New display name.")} | content | revision,
        ),
        "move": input_type(
            f"Move{title}Input", "A new place, key or position of a node; what is omitted stays.",
            node | {
                "to": (places.place | None, "New parent."),
                "key": (str | None, 'New key, such as "Omaha".'),
                "position": (places.position | None, "New position among the siblings of the same level."),
            } | revision,
        ),
        "delete": input_type(
            f"Delete{title}Input", "A node to delete.",
            node | {"policy": (DeletePolicy | None, "Effect on the children; REFUSE by default.")} | revision,
        ),
    }  # fmt: skip


def _given(given: Any, name: str, default: Any = None) -> Any:
    """A field of an input, the default where it was left out."""
    value = getattr(given, name, strawberry.UNSET)
    return default if value is strawberry.UNSET else value


def _key(given: str, faults: FaultList) -> str:
    """A key, UNUSABLE with its fault where it cannot be one."""
    with faults.collecting("key"):
        if not given:
            raise BadPath("The key is empty; give one.")
        return checked_segment(given)
    return UNUSABLE


def _values(level: type[Node], member: str, given: Any, faults: FaultList) -> Mapping[str, Value]:
    """The valid ones among the values that were given, None where one is to be cleared."""
    values = Values()
    for name, (_, attribute) in level.attributes.items():
        value = getattr(given, name, strawberry.UNSET)
        if value is not strawberry.UNSET:
            with faults.collecting("attributes", member, name):
                values[name] = attribute.change(plain_input(value))
    return values
