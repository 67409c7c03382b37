"""`clade demo` fills an empty store, once, and does not change any other store."""

import asyncio

import pytest
import typer
from typer.testing import CliRunner

from commands.demo import load_demo
from store.connect import open_store
from store.engine.usage import ReadUsage
from store.errors import NoTable
from store.metadata.tree_version import TreeVersion, by_level
from store.model.keys import tree_version_key

pytestmark = pytest.mark.both_stores

app = typer.Typer()
app.command()(load_demo)


@pytest.fixture
def run(monkeypatch, store_url):
    """Runs the command on a table of its own."""
    monkeypatch.setenv("CLADE_STORE", store_url)
    return lambda *arguments: CliRunner().invoke(app, arguments)


def stamps(url: str, *partitions: str) -> list[TreeVersion]:
    async def read() -> list[TreeVersion]:
        async with open_store(url) as store:
            items = await store.get([tree_version_key(partition) for partition in partitions], ReadUsage(), strong=True)
        return [TreeVersion.of(partition, item) for partition, item in zip(partitions, items, strict=True)]

    return asyncio.run(read())


def make_table(url: str, *stamped: str) -> None:
    async def make() -> None:
        async with open_store(url) as store:
            await store.create()
            await store.commit([TreeVersion(partition).incremented({}) for partition in stamped])

    asyncio.run(make())


@pytest.mark.thorough
@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_an_empty_file_is_filled_once(run, store_url):
    first = run()
    assert first.exit_code == 0, first.output
    partitions = ("location", "category", "location#US", "category#Electronics")
    loaded = stamps(store_url, *partitions)
    countries, categories, states, electronics = (by_level(stamp.shape) for stamp in loaded)
    assert (countries["COUNTRY"], categories["CATEGORY"]) == (249, 5)
    assert (states["STORE"], electronics["PRODUCT"]) == (3, 16)

    second = run()
    assert (second.exit_code, second.output) == (0, "The store is not empty, so no demo data was loaded.\n")
    assert "Loaded 0 nodes" in run("--again").output
    assert stamps(store_url, *partitions) == loaded


def test_a_store_that_was_written_to_is_not_changed(run, store_url):
    make_table(store_url, "location")
    assert run().output == "The store is not empty, so no demo data was loaded.\n"
    assert stamps(store_url, "location#US") == [TreeVersion("location#US")]


@pytest.mark.parametrize("store_url", ["dynamodb"], indirect=True)
def test_a_dynamodb_table_is_not_created(run):
    assert isinstance(run().exception, NoTable)
