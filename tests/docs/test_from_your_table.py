"""docs/from-your-table.md: its program and its commands are run as they are written, and its query on both stores."""

import os
import subprocess
import sys
from pathlib import Path

import aioboto3
import pytest

from store.connect import open_store
from tests import engines
from tests.conftest import CLADE
from tests.readme import DOCS, blocks
from tests.systems.writing import Clients

PAGE = (DOCS / "from-your-table.md").read_text("utf-8")


async def remove(engine: engines.Engine, *tables: str) -> None:
    session = aioboto3.Session(aws_access_key_id="local", aws_secret_access_key="local", region_name="eu-west-1")
    async with session.client("dynamodb", endpoint_url=engine.url) as client:
        for table in {*tables} & {*(await client.list_tables())["TableNames"]}:
            await client.delete_table(TableName=table)


def run(engine: engines.Engine, folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ, "PATH": f"{CLADE.parent}:{os.environ['PATH']}", "AWS_ENDPOINT_URL_DYNAMODB": engine.url,
        "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", **variables,
    }  # fmt: skip
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.thorough
async def test_the_program_the_commands_and_the_query_of_the_page_run(
    engine: engines.Engine, store_url: str, tmp_path: Path
) -> None:
    async with open_store(store_url) as store:
        await store.create()
    try:
        for program in blocks("python", PAGE):
            made = run(engine, tmp_path, sys.executable, "-c", program)
            assert made.returncode == 0, made.stderr
        commands = "\n".join(blocks("sh", PAGE)).replace("sqlite:///catalogue.db", f"'{store_url}'")
        output = run(engine, tmp_path, "sh", "-ec", commands)
    finally:
        await remove(engine, "ProductCatalog", "ProductGroups")
    assert output.returncode == 0, output.stderr
    proposed, tree, _, groups = blocks("text", PAGE)
    assert proposed in output.stdout
    assert tree in output.stdout
    assert groups in output.stdout
    assert "would be added: 6 (1 CATEGORY, 2 PRODUCT, 3 VARIANT)" in output.stdout
    assert "\nadded: 6 (1 CATEGORY, 2 PRODUCT, 3 VARIANT)" in output.stdout
    assert "not imported: warehouse (1)" in output.stderr
    async with open_store(store_url) as store:
        (menu,) = blocks("graphql", PAGE)
        nodes = (await Clients(store).ask(menu))["category"]["children"]["nodes"]
    assert [(node["name"], node["price"]) for node in nodes] == [
        ("Dell XPS 13 Laptop", "1299"), ("LG 55-inch 4K Smart TV", "799.99"),
    ]  # fmt: skip
    assert [(one["key"], one["stock"]) for one in nodes[1]["children"]["nodes"]] == [("Black", 15), ("Silver", 8)]
