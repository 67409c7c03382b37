"""`clade demo` fills an empty store, once, and does not change any other store."""

import asyncio

import pytest
from click.testing import Result
from typer.testing import CliRunner

from commands.main import app_of
from store.connect import open_store
from store.errors import NoTable
from store.metadata.tree_version import TreeVersion

pytestmark = pytest.mark.both_stores

NOT_EMPTY = "The store is not empty, so no demo data was loaded.\n"


def run(url: str, *words: str) -> Result:
    return CliRunner().invoke(app_of(), [*words, "--store", url])


@pytest.mark.thorough
@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_an_empty_file_is_filled_once(store_url: str) -> None:
    assert run(store_url, "demo").exit_code == 0
    shops, products = (run(store_url, "tree", *words).output for words in (("location", "US"), ("category",)))
    assert "3 STORE" in shops
    assert "16 PRODUCT" in products
    assert len(run(store_url, "tree", "location", "--depth", "0").output.splitlines()) == 249
    assert run(store_url, "demo").output == NOT_EMPTY
    assert "Loaded 0 nodes" in run(store_url, "demo", "--again").output


def test_a_store_that_was_written_to_is_not_changed(store_url: str) -> None:
    async def make() -> None:
        async with open_store(store_url) as store:
            await store.create()
            await store.commit([TreeVersion("location").incremented({})])

    asyncio.run(make())
    assert run(store_url, "demo").output == NOT_EMPTY
    assert run(store_url, "export", "category").output == ""


@pytest.mark.parametrize("store_url", ["dynamodb"], indirect=True)
def test_a_dynamodb_table_is_not_created(store_url: str) -> None:
    assert isinstance(run(store_url, "demo").exception, NoTable)
