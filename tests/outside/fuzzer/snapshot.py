"""Snapshot: every node, read by the simplest queries there are, one by its path at a time."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphql import GraphQLInterfaceType, GraphQLObjectType, GraphQLSchema, build_schema, get_named_type

from tests.outside.fuzzer.client import Client, Document
from tests.outside.fuzzer.compare import Difference
from tests.outside.fuzzer.data import DataSet, Fails, Row
from tests.processes import Answer

PROMISE = "docs/attributes.md: a value is read as it was written"
LEVELS = "levels { name inputField under mayBeRoot attributes { name } }"
HIERARCHIES = f"{{ hierarchies {{ name field listField searchField {LEVELS} }} }}"


@dataclass
class Snapshot:
    """The schema, the hierarchies with their nodes, and ids of nodes that are gone."""

    data: DataSet
    sdl: str
    schema: GraphQLSchema
    hierarchies: list[dict[str, Any]]
    deleted: str

    @property
    def nodes(self) -> list[dict[str, Any]]:
        return [node for hierarchy in self.hierarchies for node in hierarchy["nodes"]]

    @property
    def world(self) -> dict[str, Any]:
        return {"sdl": self.sdl, "hierarchies": self.hierarchies, "redirects": self.data.redirects}


def own_fields(schema: GraphQLSchema, kind: GraphQLObjectType, depth: int = 0) -> str:
    """The fields of a type that need no argument and lead to no other node, with what is inside them."""
    parts = ["__typename"]
    for name, field in kind.fields.items():
        inner = get_named_type(field.type)
        if any(str(argument.type).endswith("!") for argument in field.args.values()):
            continue
        if isinstance(inner, GraphQLInterfaceType) or "Connection" in inner.name or (name == "history"):
            continue
        if isinstance(inner, GraphQLObjectType):
            parts.append(f"{name} {{ {own_fields(schema, inner, depth + 1)} }}")
        else:
            parts.append(name)
    return " ".join(parts)


Failure = Callable[[Document, Difference], Exception]


def take(client: Client, data: DataSet, sdl: str, deleted: str, failure: Failure) -> Snapshot:
    """Read all nodes. A value that is not as it was written is raised as a `failure`."""
    schema = build_schema(sdl, assume_valid_sdl=True)
    hierarchies = []
    for found in client.ask(Document(HIERARCHIES)).json["data"]["hierarchies"]:
        name = found["name"].lower()
        interface = get_named_type(schema.query_type.fields[found["field"]].type) if schema.query_type else None
        assert isinstance(interface, GraphQLInterfaceType)
        nodes = [_read(client, schema, found["field"], row, data, failure) for row in data.now(name)]
        hierarchies.append({
            "name": name, "interface": interface.name, "fields": found, "nodes": nodes,
            "levels": [level["name"] for level in found["levels"]], "reordered": data.reordered,
            "rootLevels": [level["name"] for level in found["levels"] if level["mayBeRoot"]],
            "under": {level["name"]: level["under"] for level in found["levels"]},
            "attributes": {one["name"]: [each["name"] for each in one["attributes"]] for one in found["levels"]},
        })  # fmt: skip
    return Snapshot(data, sdl, schema, hierarchies, deleted)


def _read(
    client: Client, schema: GraphQLSchema, field: str, row: Row, data: DataSet, failure: Failure
) -> dict[str, Any]:
    ask = "query($path: Path!) { %s(path: $path) { %s } }"
    path = {"path": row["path"]}
    level = client.ask(Document(ask % (field, "__typename"), path)).json["data"][field]["__typename"]
    kind = schema.type_map[level]
    assert isinstance(kind, GraphQLObjectType)
    document = Document(ask % (field, f"... on {level} {{ {own_fields(schema, kind)} }}"), path)
    reply = client.ask(document)
    node: dict[str, Any] = reply.json["data"][field]
    for name, value in row.items():
        if name in ("path", "level"):
            continue
        camel = re.sub(r"_(.)", lambda match: match[1].upper(), name)
        if name in ("names", "greeting"):
            texts = node[camel]["texts"] if name == "greeting" else node[camel]
            got: Any = {text["language"]: text["text"] for text in texts}
        else:
            got = _without(node[camel], value)
        if got != value and not (value == [] and got is None):
            raise failure(document, Difference("value", camel, PROMISE, value, [got, reply.errors[:2]]))
    if data.computed:
        node["$damaged"] = _computed(document, reply, field, data.computed(row), failure)
    return node


def _computed(document: Document, reply: Answer, field: str, outcomes: Row, failure: Failure) -> dict[str, str]:
    """The codes of computed fields that fail. What they have or how they fail is as their methods say."""
    promise = "docs/attributes.md: an exception in it is an error of this field only"
    codes = {name: one.code for name, one in outcomes.items() if isinstance(one, Fails)}
    got = {name: reply.json["data"][field][name] for name in outcomes}
    if got != (right := {name: None if name in codes else one for name, one in outcomes.items()}):
        raise failure(document, Difference("computed", field, promise, right, got))
    told = {error["path"][-1]: error["extensions"]["code"] for error in reply.errors}
    if told != codes or any(error["path"] != [field, error["path"][-1]] for error in reply.errors):
        raise failure(document, Difference("computed", field, promise, codes, reply.errors))
    return codes


def read_damaged(client: Client, snapshot: Snapshot) -> None:
    """What is left of damaged nodes: each field of each is asked alone. `$unreadable` is the code of a node that has no
    type, `$damaged` has those of fields.
    """
    for hierarchy in snapshot.hierarchies:
        for node in hierarchy["nodes"]:
            if node["path"] in snapshot.data.damage:
                node["$isDamaged"] = True
                _read_fields(client, snapshot.schema, hierarchy["fields"]["field"], node)


def _read_fields(client: Client, schema: GraphQLSchema, lookup: str, node: dict[str, Any]) -> None:
    def ask(selection: str) -> tuple[Any, list[str]]:
        query = f"query($path: Path!) {{ {lookup}(path: $path) {{ {selection} }} }}"
        reply = client.ask(Document(query, {"path": node["path"]}))
        return reply.json["data"][lookup], reply.codes

    found, codes = ask("__typename")
    if found is None:
        node["$unreadable"] = codes[0]
        return
    kind = schema.type_map[node["__typename"]]
    assert isinstance(kind, GraphQLObjectType)
    for name in node.keys() & kind.fields.keys():
        inner = get_named_type(kind.fields[name].type)
        below = f" {{ {own_fields(schema, inner)} }}" if isinstance(inner, GraphQLObjectType) else ""
        found, codes = ask(f"... on {kind.name} {{ {name}{below} }}")
        if codes:
            node["$damaged"][name] = codes[0]
        else:
            node["$damaged"].pop(name, None)
            node[name] = found[name]


def _without(got: Any, written: Any) -> Any:
    """What was read without fields that were not written."""
    if isinstance(written, dict) and isinstance(got, dict):
        return {key: _without(got[key], value) for key, value in written.items()}
    if isinstance(written, list) and isinstance(got, list) and len(got) == len(written):
        return [_without(one, value) for one, value in zip(got, written, strict=True)]
    return got
