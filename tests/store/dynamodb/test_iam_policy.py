"""IAM policies: the calls of servers and commands are recorded and compared with the permissions."""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from commands.main import app_of
from graph.app import create_app
from store.connect import open_store
from store.dynamodb.table import ACTIONS, Use, policy
from store.model.records import Put
from tests.engines import Engine
from tests.proxy import Call, Proxy
from tests.serving import serving

pytestmark = pytest.mark.both_stores

IN_TRANSACTIONS = {
    "Put": "PutItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
    "Update": "UpdateItem",
}
NODES = """{"path": "US", "level": "COUNTRY"}
{"path": "US/NE", "level": "STATE"}
{"path": "US/NE/Omaha", "level": "CITY"}
{"path": "US/NE/Lincoln", "level": "CITY"}
"""

READS = [
    '{ city(path: "US/NE/Omaha") { id name ancestors { name children { nodes { name } } } } }',
    "{ locations { totalCount nodes { children { nodes { children(first: 1) { totalCount nodes { name } } } } } } }",
    '{ country(path: "US") { descendants(level: CITY) { nodes { name history { nodes { name } } } } } }',
    '{ city(path: "US/NE/Nowhere") { id } changes(hierarchy: LOCATION, tree: "US") { changes { event } } }',
]
WRITES = [
    'mutation { createLocation(input: {parent: {path: "US/NE"}, key: "York", name: "York", '
    "attributes: { city: {} }}) { node { id } } }",
    'mutation { updateLocation(input: {node: {path: "US/NE/York"}, name: "York, NE"}, '
    'idempotencyKey: "1") { node { id } } }',
    'mutation { moveLocation(input: {node: {path: "US/NE"}, key: "Nebraska"}) { node { id } } }',
    'mutation { moveLocation(input: {node: {path: "US/Nebraska/York"}, to: {parent: {path: "US"}}}) { node { id } } }',
    'mutation { moveLocation(input: {node: {path: "US/Nebraska/Omaha"}, position: {first: true}}) { node { id } } }',
    'mutation { deleteLocation(input: {node: {path: "US/Nebraska"}, policy: CASCADE}) { node { id } } }',
]


def actions(call: Call) -> set[str]:
    """The actions that IAM asks for of one call."""
    match call.operation:
        case "TransactWriteItems":
            return {IN_TRANSACTIONS[kind] for change in call.body["TransactItems"] for kind in change}
        case "TransactGetItems":
            return {"GetItem"}
        case "CreateTable" if "Tags" in call.body:
            return {"CreateTable", "TagResource"}
        case name:
            return {name}


class Recorded:
    """What is called while a server or a command runs, in AWS as far as that can tell."""

    def __init__(self, proxy: Proxy, table: str) -> None:
        self._proxy = proxy
        self.url = f"dynamodb://{table}?region=eu-west-1"

    def take(self) -> set[str]:
        """The actions since the last time."""
        calls, self._proxy.calls = self._proxy.calls, []
        return set().union(*map(actions, calls))

    async def run(self, *arguments: str) -> None:
        result = await asyncio.to_thread(CliRunner().invoke, app_of(), [*arguments, "--store", self.url])
        assert result.exit_code == 0, (arguments, result.output, result.exception)

    async def ask(self, queries: list[str]) -> None:
        """Have a server answer, and say that it is ready."""

        def asked() -> None:
            with serving(create_app()) as server, httpx.Client(base_url=server, timeout=30) as client:
                assert client.get("/readyz").status_code == 200
                for query in queries:
                    answer = client.post("/graphql", json={"query": query}).json()
                    assert "errors" not in answer, (query, answer)

        await asyncio.to_thread(asked)


Work = Callable[[Recorded], Awaitable[None]]


async def test_each_use_of_a_table_calls_what_its_policy_allows_and_nothing_else(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "nodes.jsonl").write_text(NODES)
    async with Proxy(engine.url) as proxy:
        recorded = Recorded(proxy, f"clade-{uuid.uuid4().hex}")
        for name, value in {
            "AWS_ENDPOINT_URL_DYNAMODB": proxy.url, "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
            "CLADE_STORE": recorded.url, "CLADE_SETTLE_SECONDS": "0",
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        await recorded.run("table", "create", "--tag", "team=maps", "--no-protection", "--no-recovery")
        made = recorded.take()

        await recorded.run("import", "location", str(tmp_path / "nodes.jsonl"))
        monkeypatch.setenv("CLADE_WRITES", "on")
        lines = [{"create": {"key": "SG", "name": "SG", "attributes": {"country": {}}}}]
        lines += [{"move": {"node": {"path": "SG"}, "position": {"first": True}}}, {"delete": {"node": {"path": "SG"}}}]
        (tmp_path / "edits.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        await recorded.run("edit", "location", str(tmp_path / "edits.jsonl"), "--idempotency-key", "one")
        imported = recorded.take()
        monkeypatch.setenv("CLADE_WRITES", "off")
        await recorded.ask(READS)
        await recorded.run("tree", "location", "--depth", "2")
        await recorded.run("export", "location", "--output", str(tmp_path / "out.jsonl"))
        reads = recorded.take()
        assert reads == ACTIONS[Use.READING]

        monkeypatch.setenv("CLADE_WRITES", "on")
        await recorded.ask(WRITES)
        writes = reads | imported | recorded.take()
        assert writes == ACTIONS[Use.WRITING]

        for arguments in (["table", "describe"], ["check"]):
            await recorded.run(*arguments)
        async with open_store(recorded.url) as store:  # an id that leads nowhere, which a repair takes away
            await store.commit([Put({"pk": "id#location:stray", "sk": "v0", "tree": "location#US", "key": "#Gone#"})])
        await recorded.run("repair")
        with_recovery = {"UpdateContinuousBackups"}  # tested with an engine that knows it
        assert made | writes | recorded.take() | with_recovery == ACTIONS[Use.ADMIN]


@pytest.mark.parametrize(
    ("region", "start"),
    [
        (None, "arn:aws:dynamodb:*:*:table/"), ("eu-west-1", "arn:aws:dynamodb:eu-west-1:*:"),
        ("cn-north-1", "arn:aws-cn:dynamodb:cn-north-1:"), ("us-gov-west-1", "arn:aws-us-gov:dynamodb:us-gov-west-1:"),
    ],
)  # fmt: skip
def test_a_policy_names_the_partition_of_its_region(region: str | None, start: str) -> None:
    assert policy(Use.READING, "clade", region=region)["Statement"][0]["Resource"].startswith(start)
