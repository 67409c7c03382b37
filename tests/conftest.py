"""Fixtures of all tests: the engine, and `store`, which runs a test on both stores."""

import fcntl
import functools
import gc
import os
import shutil
import subprocess
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser

import graph.app
import graph.hierarchies.registry
import graph.operation.prepared
from graph.app import create_app
from graph.settings import unknown_variables
from store.connect import open_store
from store.engine import Store
from store.kinds.registry import KINDS
from tests import engines, environment, selection
from tests.browser import Chromium
from tests.processes import CLADE
from tests.schemas import check_names_once, shared_document, shared_schema
from tests.serving import serving

ANSWER_SECONDS = 60.0


def pytest_addoption(parser: pytest.Parser) -> None:
    selection.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Reject unknown variables, with which a long form would run as a short one, and forget those of the machine."""
    selection.configure(config)
    if strange := unknown_variables():
        raise pytest.UsageError(f"no test reads {', '.join(strange)}; variables of tests begin with CLADE_TEST_")
    environment.make_the_same_everywhere()
    if not selection.thorough():
        environment.keep_files_in_memory()
    wait_for_slow_answers()
    share_certificates()


def wait_for_slow_answers() -> None:
    """Give httpx another default than 5 seconds, which a busy machine may need: all its functions have this object."""
    default = httpx._config.DEFAULT_TIMEOUT_CONFIG
    default.connect = default.read = default.write = default.pool = ANSWER_SECONDS
    assert httpx.Client().timeout == httpx.Timeout(ANSWER_SECONDS)


def share_certificates() -> None:
    """Have httpx load the certificates of authorities once: that takes longer than a request, for each client."""
    httpx._transports.default.create_ssl_context = functools.cache(httpx._config.create_ssl_context)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    selection.select(config, items)


def pytest_collection_finish() -> None:
    """Leave all modules and tests out of each later collection of garbage, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


@pytest.fixture(scope="session", autouse=True)
def collector() -> Iterator[None]:
    """Garbage is collected, whatever `clade import` and `clade check` set for a process that ends with them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "freeze", lambda: None)
        patch.setattr(gc, "set_threshold", lambda *_: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def shared_schemas() -> Iterator[None]:
    """In a plain run applications with the same classes share their schema and the documents that are valid in it."""
    with pytest.MonkeyPatch.context() as patch:
        if not selection.thorough():
            patch.setattr(graph.app, "build_schema", shared_schema)
            patch.setattr(graph.operation.prepared, "parse_document", shared_document)
            patch.setattr(graph.hierarchies.registry, "check_names", check_names_once)
        yield


@pytest.fixture(scope="session")
def engine() -> Iterator[engines.Engine]:
    """A DynamoDB engine for the whole run; without one its tests are skipped."""
    try:
        found = engines.find()
        found.start()
    except engines.NoEngine as missing:
        pytest.skip(str(missing))
    with pytest.MonkeyPatch.context() as patch:
        if not selection.thorough():
            share_aws_sessions(patch)
        yield found
    found.stop()


def share_aws_sessions(patch: pytest.MonkeyPatch) -> None:
    """Have the stores of an engine share what botocore finds for them."""
    from store.dynamodb import client, credentials  # with botocore, which many files of tests do without
    from tests.aws_sessions import shared_credentials, shared_endpoint

    patch.setattr(client, "find_endpoint", shared_endpoint)
    patch.setattr(credentials, "find_credentials", shared_credentials)


@pytest.fixture(scope="session")
def extenddb() -> Iterator[engines.Engine]:
    """ExtendDB for the whole run; without it its tests are skipped. Its key pair is set for each test."""
    try:
        found = engines.extenddb(index_delay_ms=0)
        found.start()
    except engines.NoEngine as missing:
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


@pytest.fixture(params=["sqlite", "dynamodb", "extenddb"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a new table, which is not created yet; on ExtendDB only in modules with its marker."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'clade.db'}"
    engine: engines.Engine = request.getfixturevalue({"dynamodb": "engine"}.get(request.param, request.param))
    if request.param == "extenddb":
        for name, value in engines.KEY_PAIR.items():
            monkeypatch.setenv(name, value)
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
    """An open store with an empty table and a record cache."""
    async with open_store(store_url, keep_bytes=1_000_000) as opened:
        await opened.create()
        yield opened


@pytest.fixture(scope="module")
def probes() -> Iterator[None]:
    """Registers the node kinds that only tests have, for a module: all of its writers write their items, too."""
    from tests.store.kinds.probe import PROBES

    with pytest.MonkeyPatch.context() as patch:
        for kind in PROBES:
            patch.setitem(KINDS, kind.name, kind)
        yield


@pytest.fixture(scope="session")
def demo_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the demo data, to be copied; one process of a run makes it for all."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    made, part = folder / "demo.db", folder / "demo.part.db"
    with (folder / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            part.unlink(missing_ok=True)
            command = [CLADE, "demo", "--store", f"sqlite:///{part}"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=300)
            part.rename(made)
    return made


@pytest.fixture(scope="session")
def demo_store(tmp_path_factory: pytest.TempPathFactory, demo_file: Path) -> str:
    """The URL of a store with the demo data, for tests that only read."""
    return f"sqlite:///{shutil.copy(demo_file, tmp_path_factory.mktemp('demo') / 'clade.db')}"


@pytest.fixture(scope="session")
def demo_server(demo_store: str) -> Iterator[str]:
    """The URL of a server with the demo data, without caches, so that each request reads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLADE_STORE", demo_store)
        patch.setenv("CLADE_CACHE_MB", "0")
        app = create_app()
    with serving(app) as url:
        yield url


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """Chromium, which starts for the first module that needs it."""
    chromium = Chromium()
    yield chromium
    chromium.end()


@pytest.fixture(scope="module")
def browser(chromium: Chromium) -> Iterator[Browser]:
    """Chromium, for one module of tests: others may run event loops of their own."""
    with chromium.in_use() as browser:
        yield browser
