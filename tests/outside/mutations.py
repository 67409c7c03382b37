"""Mutations of things as text."""

from typing import Any

from tests.outside.model.lists import Word
from tests.outside.model.literals import arguments, literal

Name = str | dict[str, str]  # a node by its path, or as {"id": …}
FAULTS = "userErrors { code message field rule edit }"


def create(key: str, parent: Name | None = None, **more: Any) -> str:
    """A box, a root without a parent; its name is its key unless another one is given."""
    above = {"parent": _by(parent)} if parent else {}
    return _field("create", {**above, "key": key, "name": key, "attributes": {"box": {}}, **more})


def update(node: Name, **more: Any) -> str:
    return _field("update", {"node": _by(node), **more})


def move(node: Name, to: Name | None = None, **more: Any) -> str:
    """A move to another parent, or to another key or position alone."""
    place = {"to": {"parent": _by(to)}} if to else {}
    return _field("move", {"node": _by(node), **place, **more})


def delete(node: Name, policy: str = "REFUSE") -> str:
    return _field("delete", {"node": _by(node), "policy": Word(policy)})


def with_arguments(field: str, **more: Any) -> str:
    """A mutation with further arguments, such as `dryRun`."""
    return f"{field.removesuffix(')')}, {arguments(more)[1:]}"


def as_edit(field: str) -> str:
    """A mutation as one edit of a batch."""
    verb, _, given = field.partition("Thing(input: ")
    return f"{{{verb}: {given.removesuffix(')')}}}"


def batch(*fields: str) -> str:
    """Mutations as one field."""
    return f"editThings(edits: [{', '.join(map(as_edit, fields))}])"


def _field(verb: str, given: dict[str, Any]) -> str:
    return f"{verb}Thing(input: {literal(given)})"


def _by(name: Name) -> dict[str, str]:
    return {"path": name} if isinstance(name, str) else name


def mutation(field: str, selection: str = "node { id }") -> str:
    """A mutation with its user errors."""
    return f"mutation {{ made: {field} {{ {selection} {FAULTS} }} }}"
