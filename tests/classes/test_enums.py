"""Enums whose values are not their names: written, read, listed, searched and exported by `clade` and its server."""

import json
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from graphql import GraphQLEnumType, build_schema

from tests.classes import tasks
from tests.conftest import CLADE
from tests.servers import Server

ENUMS = (tasks.Status, tasks.Phase, tasks.Risk, tasks.Tone, tasks.Swapped, tasks.Alike, tasks.Odd)
VALUES = {
    "status": "CLOSED", "phase": "SECOND", "risk": "HIGH", "tone": "COLD", "swapped": "LEFT", "alike": "OTHER",
    "odd": "NOTHING", "phases": ["SECOND", "FIRST"], "steps": [{"status": "CLOSED", "phases": ["SECOND"]}],
}  # fmt: skip
COMPUTED = {"member": "CLOSED", "members": ["SECOND", "FIRST"]}
DEFAULTS = {"status": "OPEN", "phases": ["FIRST"], "member": "OPEN", "members": ["FIRST"]}
FIELDS = f"{' '.join(name for name in VALUES if name != 'steps')} steps {{ status phases }}"
ALL = f"{FIELDS} member members"
CREATE = f"""mutation($values: JobAttributes!) {{
    createTask(input: {{key: "a", name: "a", attributes: {{job: $values}}}})
      {{ node {{ ... on Job {{ {ALL} }} }} }} }}"""
UPDATE = f"""mutation($values: JobAttributes!) {{
    updateTask(input: {{node: {{path: "a"}}, attributes: {{job: $values}}}})
      {{ node {{ ... on Job {{ {ALL} }} }} }} }}"""
HISTORY = f"history {{ nodes {{ ... on JobRevision {{ {FIELDS} }} }} }}"


def clade(*arguments: str) -> str:
    """The output of a command that serves the classes."""
    environment = os.environ | {"CLADE_HIERARCHIES": tasks.__file__}
    return subprocess.run(
        [CLADE, *arguments], check=True, stdout=subprocess.PIPE, text=True, timeout=100, env=environment
    ).stdout


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """A process that serves the classes from their file, with the node "a" that has all values."""
    url = f"sqlite:///{tmp_path / 'tasks.db'}"
    clade("table", "create", "--store", url)
    served = Server(tmp_path, "tasks", store=url, writes="on", hierarchies=tasks.__file__)
    try:
        await served.start()
        yield served
    finally:
        await served.close()


async def data(server: Server, query: str, **variables: Any) -> Any:
    answer = await server.ask(query, **variables)
    assert "errors" not in answer, answer["errors"]
    return answer["data"]


async def test_every_value_of_an_enum_is_written_and_read_by_its_name(server: Server, tmp_path: Path) -> None:
    assert (await data(server, CREATE, values=VALUES))["createTask"]["node"] == VALUES | COMPUTED
    query = f'{{ job(path: "a") {{ {ALL} }} tasks {{ nodes {{ ... on Job {{ {ALL} }} }} }} }}'
    interpreted = f'{{ job(path: "a") {{ {ALL} {HISTORY} }} }}'
    found = await data(server, query)
    assert found["job"] == found["tasks"]["nodes"][0] == VALUES | COMPUTED
    found = (await data(server, interpreted))["job"]
    assert found.pop("history")["nodes"] == [VALUES]
    assert found == VALUES | COMPUTED
    for enum, name in zip(ENUMS, list(VALUES)[:7], strict=True):
        for member in enum.__members__:
            values = {name: member, "phases": None if member == "FIRST" else ["FIRST"]}
            node = (await data(server, UPDATE, values=values))["updateTask"]["node"]
            assert (node[name], node["phases"]) == (member, values["phases"])
            (hit,) = (await data(server, f"{{ tasks(where: {{{name}: {{eq: {member}}}}}) {{ nodes {{ key }} }} }}"))[
                "tasks"
            ]["nodes"]
            assert hit == {"key": "a"}
            query = "query($where: TaskCondition) { tasks(where: $where) { nodes { key } } }"
            for where, count in (({name: {"in": [member]}}, 1), ({name: {"ne": member}}, 0)):
                assert len((await data(server, query, where=where))["tasks"]["nodes"]) == count
    exported = tmp_path / "tasks.jsonl"
    url = f"sqlite:///{tmp_path / 'tasks.db'}"
    clade("export", "task", "--output", str(exported), "--store", url)
    assert json.loads(exported.read_text().splitlines()[0])["odd"] == "NOTHING"
    clade("import", "task", str(exported), "--store", url)


async def test_defaults_orders_and_searches_know_the_names(server: Server) -> None:
    for key, phase in (("x", "SECOND"), ("y", "FIRST"), ("z", None)):
        created = await data(
            server,
            f"""mutation($key: String!, $values: JobAttributes!) {{ createTask(input: {{key: $key, name: $key,
              attributes: {{job: $values}}}}) {{ node {{ ... on Job {{ {ALL} }} }} }} }}""",
            key=key, values={"phase": phase},
        )  # fmt: skip
        node = created["createTask"]["node"]
        assert {name: node[name] for name in DEFAULTS} == DEFAULTS
    for direction, keys in (("ASC", "y x z"), ("DESC", "x y z")):
        query = f"{{ tasks(orderBy: [{{field: PHASE, direction: {direction}}}]) {{ nodes {{ key }} }} }}"
        assert [one["key"] for one in (await data(server, query))["tasks"]["nodes"]] == keys.split()
    listed = "{ tasks(where: {phases: {contains: FIRST}}) { totalCount nodes { key } } }"
    assert len((await data(server, listed))["tasks"]["nodes"]) == 3
    found = await data(server, '{ searchTasks(text: "open") { nodes { key ... on Job { status phases } } } }')
    assert found["searchTasks"]["nodes"][0] == {"key": "x", "status": "OPEN", "phases": ["FIRST"]}


def test_the_schema_has_the_names_of_all_members() -> None:
    schema = build_schema(clade("schema"))
    for enum in ENUMS:
        kind = schema.type_map[enum.__name__]
        assert isinstance(kind, GraphQLEnumType)
        assert list(kind.values) == list(enum.__members__)
