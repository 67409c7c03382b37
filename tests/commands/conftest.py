"""Commands on a table of their own, on both stores."""

import asyncio
from collections.abc import Callable

import pytest
from click.testing import Result
from typer.testing import CliRunner

from store.connect import open_store
from tests.cli import app_of

Clade = Callable[..., Result]


@pytest.fixture
def clade(store_url: str) -> Clade:
    """Runs a command on a table of its own, which is there."""
    create(store_url)
    return lambda *words: CliRunner().invoke(
        app_of(words[:1]), [str(word) for word in words], env={"CLADE_STORE": store_url}
    )


def create(store_url: str) -> None:
    """Create the table of a store."""

    async def run() -> None:
        async with open_store(store_url) as store:
            await store.create()

    asyncio.run(run())
