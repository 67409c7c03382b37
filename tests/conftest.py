"""What all tests share: the engine, and the fixture `store`, which runs a test on both stores."""

import os
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from store.stores import Store, open_store
from tests import engines

CI = os.environ.get("CI") == "true"

settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("here", deadline=None)
settings.load_profile("ci" if CI else "here")


@pytest.fixture(scope="session")
def engine() -> Iterator[engines.Engine]:
    """An engine that speaks DynamoDB's API, for the whole run; without one its tests are skipped, but never in CI."""
    try:
        found = engines.find()
        found.start()
    except engines.NoEngine as missing:
        if CI:
            pytest.fail(f"CI skips nothing, but {missing}")
        pytest.skip(str(missing))
    yield found
    found.stop()


@pytest.fixture(params=["sqlite", "dynamodb"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a table of its own, which is not made yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'clade.db'}"
    engine: engines.Engine = request.getfixturevalue("engine")
    return engine.address(f"clade-{uuid.uuid4().hex}")


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    """An open store with an empty table."""
    async with open_store(store_url) as opened:
        await opened.create()
        yield opened
