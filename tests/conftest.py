"""Fixtures of all tests: the engine, and `store`, which runs a test on both stores."""

import os
import subprocess
import sysconfig
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from playwright.sync_api import Browser

from graph.app import create_app
from graph.settings import ignored_variables
from store.connect import open_store
from store.engine.protocol import Store
from tests import engines
from tests.browser import chromium
from tests.cached_records import changed_records
from tests.serving import serving

CI = os.environ.get("CI") == "true"
CLADE = Path(sysconfig.get_path("scripts")) / "clade"

settings.register_profile("ci", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("here", deadline=None)
settings.load_profile("ci" if CI else "here")


def pytest_configure() -> None:
    """Reject unknown variables: with a misspelt name, a long form would run as a short one."""
    if strange := ignored_variables():
        raise pytest.UsageError(f"no test reads {', '.join(strange)}; variables of tests begin with CLADE_TEST_")


@pytest.fixture(scope="session")
def engine() -> Iterator[engines.Engine]:
    """A DynamoDB engine for the whole run; without one its tests are skipped, but not in CI."""
    try:
        found = engines.find()
        found.start()
    except engines.NoEngine as missing:
        if CI:
            pytest.fail(f"CI skips nothing, but {missing}")
        pytest.skip(str(missing))
    yield found
    found.stop()


@pytest.fixture
def lasting_engine(tmp_path: Path) -> engines.Engine:
    """An engine with tables on disk, which can be restarted."""
    try:
        engine = engines.find(tmp_path / "engine.db")
    except engines.NoEngine as missing:
        pytest.skip(str(missing))
    if not engine.command or not engine.exact:
        pytest.skip("only dynoxide can be stopped and started again with its tables")
    return engine


@pytest.fixture(params=["sqlite", "dynamodb"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a new table, which is not created yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'clade.db'}"
    engine: engines.Engine = request.getfixturevalue("engine")
    return engine.address(f"clade-{uuid.uuid4().hex}")


@pytest.fixture
def exact(request: pytest.FixtureRequest) -> None:
    """Skip tests of figures and limits on an engine that is not exact."""
    callspec = getattr(request.node, "callspec", None)
    if callspec is not None and callspec.params.get("store_url") == "sqlite":
        return
    engine: engines.Engine = request.getfixturevalue("engine")
    if not engine.exact:
        pytest.skip(f"{engine.name} differs from DynamoDB here")


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    """An open store with an empty table and a record cache, whose records must not change."""
    async with open_store(store_url, keep_bytes=1_000_000) as opened:
        await opened.create()
        yield opened
        assert not changed_records(opened)


@pytest.fixture(scope="session")
def demo_store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a store with the demo data, for tests that only read."""
    url = f"sqlite:///{tmp_path_factory.mktemp('demo') / 'clade.db'}"
    subprocess.run([CLADE, "demo", "--store", url], check=True, stdout=subprocess.DEVNULL, timeout=300)
    return url


@pytest.fixture(scope="session")
def demo_server(demo_store: str) -> Iterator[str]:
    """The URL of a server with the demo data, without caches, so that each request reads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLADE_STORE", demo_store)
        patch.setenv("CLADE_RECORD_CACHE_MB", "0")
        patch.setenv("CLADE_RESPONSE_CACHE_MB", "0")
        app = create_app()
    with serving(app) as url:
        yield url


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, for one module of tests: others may run event loops of their own."""
    with chromium() as browser:
        yield browser
