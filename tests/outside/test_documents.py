"""Documents of the parts that a plain run does not start, or starts for a few of them: the schema has what they select.

A server that checks them and makes nothing stands in for the one that each part starts: so a change of the schema is
noticed at once, and not when somebody runs the suite.
"""

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from graphql import GraphQLSchema, build_schema, parse, validate

from tests.outside import exports, rights
from tests.outside.failures import Wrong
from tests.outside.faults import large_move, late_indexes, questions, writers
from tests.outside.faults.tree import with_subtree
from tests.outside.model import large, races
from tests.outside.processes import EXTREMES, Answer, Server, command
from tests.user_errors import with_user_errors

NODE = {"id": "thing:a", "path": "left/a", "name": "a", "revision": 1}
STRING = re.compile(r'"[^"]*"')
VERBS = {"create", "update", "move", "delete"}
FEED = {"cursor": "", "hasMore": False, "changes": []}


class Checking(Server):
    """A server that checks documents and answers each with the same data."""

    def __init__(self, schema: GraphQLSchema, data: dict[str, Any]) -> None:
        self._schema, self._body = schema, json.dumps({"data": data}).encode()
        self.faults: dict[str, str] = {}
        self.checked: set[str] = set()

    def ask(self, query: str, *_: object, **__: object) -> Answer:
        shape = STRING.sub('""', query)  # what is in the strings of a document makes it no other one
        if shape not in self.checked:
            self.checked.add(shape)
            found = validate(self._schema, parse(with_user_errors(query)))
            self.faults |= {error.message: query for error in found}
        return Answer(200, {}, self._body)


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> GraphQLSchema:
    file = tmp_path_factory.mktemp("schema") / "schema.graphql"
    command("schema", str(file), store=f"sqlite:///{file}.db", hierarchies=str(EXTREMES))
    return build_schema(Path(file).read_text())


def _rights() -> Iterator[str]:
    yield from rights._queries()
    for caller in rights.CALLERS:
        for field in rights._mutations(caller):
            yield rights.mutation(field)


def _large_moves() -> Iterator[str]:
    """One question of each kind, and the mutations."""
    tree = with_subtree(1, 2)
    for new in (("T", "dest", "big"), ("T", "Big"), None):
        change = large_move._change(tree, ("T", "big"), new)
        yield change.mutation
        yield from (questions.document([one]) for one in change.questions(""))


CONSTANT: dict[str, Callable[[], Iterable[str]]] = {
    "rights": _rights,
    "faults/large-move": _large_moves,
    "exports": lambda: [exports.CREATE, exports.ORDERS, exports.everything(exports.CONTENT + exports.WRITTEN)],
}


@pytest.mark.parametrize("name", CONSTANT)
def test_documents_that_a_part_makes_are_valid(name: str, schema: GraphQLSchema) -> None:
    server = Checking(schema, {})
    for document in CONSTANT[name]():
        server.ask(document)
    assert not server.faults


def test_documents_of_writers_are_valid(schema: GraphQLSchema) -> None:
    made = {
        "made": {"node": None},
        "changes": FEED,
        "thing": {"childCount": 0, "children": {"totalCount": 0, "nodes": []}},
    }
    server = Checking(schema, made)
    writer = writers.Writer("w", 1, lambda: [server])
    for _ in range(30):
        writer.write()
    writers.prepare(server, ["w"])
    writers.log_of(server, "W/w")
    writers.nodes_of(server, "W/w")
    assert {sent.event for sent in writer.account.sent} == {"CREATED", "UPDATED", "MOVED", "DELETED"}
    assert not server.faults


def test_documents_beside_late_indexes_are_valid(schema: GraphQLSchema) -> None:
    server = Checking(schema, {})
    world = late_indexes.World([server], random.Random(1))
    for _ in range(30):
        world.write()
        for read in (world.read_at_once, world.read_lists):
            with suppress(Wrong):  # since the data are not the expected ones
                read()
    assert {line.split()[0] for line in world.log} == {"CREATED", "UPDATED", "MOVED", "DELETED"}
    assert not server.faults


def test_documents_of_races_are_valid(schema: GraphQLSchema) -> None:
    server = Checking(schema, {"made": {"node": NODE}, "node": NODE, "old": NODE})
    large._move(server)
    server.ask(large.QUERY)
    server.ask(f"{{ {races.MOMENTS} }}")
    client = races.Client(0, [server], 1, 0, is_one_moment=True)
    for _ in range(40):
        client._write()
        with suppress(Wrong):
            client._read()
    assert {verb for text in server.checked for verb in VERBS if verb in text} == VERBS
    assert not server.faults
