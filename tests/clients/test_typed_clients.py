"""docs/typed-clients.md: generated clients are compiled against the schema, and run against a server."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from graphql import OperationDefinitionNode, parse

from graph.app import create_app
from graph.hierarchies.categories import CategoryNode
from graph.settings import Settings
from store.connect import open_store
from tests.clients.programs import HERE, PROGRAMS, create, needs_node, run, write_schema
from tests.conftest import CLADE
from tests.readme import DOCS, ROOT, blocks
from tests.serving import serving
from tests.systems.asking import plant

pytestmark = pytest.mark.thorough

PAGE = (DOCS / "typed-clients.md").read_text("utf-8")
FILES = dict(re.findall(r"`([\w-]+\.\w+)`[^`]*:\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
QUERIES = blocks("graphql", PAGE)[0]
EXAMPLE = "http://127.0.0.1:8000"
TYPED = HERE / "typed"
GOODS = str(TYPED / "goods.py")
SECONDS = 120


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the files of the page, and the schema of the demo data."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "queries.graphql").write_text(QUERIES)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "node_modules").symlink_to(PROGRAMS.parent)
    shutil.copy(ROOT / "schema.graphql", tmp_path)
    return tmp_path


def errors_of(project: Path, *arguments: str) -> str:
    """What TypeScript's compiler has against the program."""
    command = [PROGRAMS / "tsc", *arguments]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=SECONDS).stdout


def replaced(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def with_goods(project: Path) -> None:
    """Replace schema and queries by those of the hierarchy that has every scalar."""
    write_schema(project, GOODS)
    shutil.copy(TYPED / "goods.graphql", project / "queries.graphql")


def shown_cities(url: str) -> list[str]:
    """What the programs of the page print for the three largest cities."""
    data = httpx.post(f"{url}/graphql", json={"query": QUERIES, "operationName": "Cities"}).json()["data"]
    return [f"{node['path']} {node['population']}" for node in data["state"]["descendants"]["nodes"]]


# -- TypeScript --------------------------------------------------------------------------------------------------------

STRICT = ("--ignoreConfig", "--noEmit", "--strict", "--module", "nodenext")


@needs_node
def test_codegen_makes_types_for_queries_and_typescript_takes_their_use(project):
    queries = QUERIES + "\n".join(blocks("graphql"))
    (project / "queries.graphql").write_text(queries)
    run("node", HERE / "types.mjs", "codegen.json", cwd=project)
    named = [one.name.value for one in parse(queries).definitions if isinstance(one, OperationDefinitionNode)]
    assert named == re.findall(r"^export type ([^\W_]+)Query =", (project / "types.ts").read_text(), re.MULTILINE)
    assert errors_of(project, *STRICT, "names.ts") == ""
    replaced(project / "names.ts", "node.population", "node.people")
    assert "'people' does not exist" in errors_of(project, *STRICT, "names.ts")


@needs_node
def test_tada_reads_queries_from_the_code_and_the_program_runs(project, demo_server):
    run("node", "tada.mjs", cwd=project)
    replaced(project / "cities.ts", EXAMPLE, demo_server)
    assert errors_of(project) == ""
    assert run("node", "made/cities.js", cwd=project).splitlines() == shown_cities(demo_server)
    replaced(project / "cities.ts", "node.population", "node.people")
    assert "'people' does not exist" in errors_of(project)


@needs_node
def test_both_map_every_scalar_as_the_page_says(project):
    with_goods(project)
    run("node", "tada.mjs", cwd=project)
    run("node", HERE / "types.mjs", "codegen.json", cwd=project)
    shutil.copy(TYPED / "goods.ts", project)
    assert errors_of(project, *STRICT, "goods.ts") == ""
    replaced(project / "goods.ts", "weight: number", "weight: string")
    assert "'true' is not assignable to type 'false'" in errors_of(project, *STRICT, "goods.ts")


# -- Python ------------------------------------------------------------------------------------------------------------


MYPY = ("-m", "mypy", "--no-error-summary", "--cache-dir")


@pytest.fixture(scope="module")
def generator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the generator, apart from the server's packages."""
    folder = tmp_path_factory.mktemp("generator")
    words = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target", folder]
    subprocess.run([sys.executable, "-m", "pip", *words, "-r", TYPED / "requirements.txt"], check=True, timeout=SECONDS)
    return folder


def generate(generator: Path, project: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(generator), "PATH": f"{CLADE.parent}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "ariadne_codegen", "--config", "ariadne.toml"]
    subprocess.run(command, cwd=project, env=environment, check=True, capture_output=True, timeout=SECONDS)


def python(project: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(project)}
    return subprocess.run(
        [sys.executable, *words], cwd=project, env=environment, capture_output=True, text=True, timeout=SECONDS
    )


def test_the_python_client_is_typed_and_the_program_runs(generator, project, demo_server):
    generate(generator, project)
    replaced(project / "cities.py", EXAMPLE, demo_server)
    mypy = (*MYPY, generator / ".mypy_cache", "cities.py")
    assert (checked := python(project, *mypy)).returncode == 0, checked.stdout
    done = python(project, "cities.py")
    assert (done.stderr, done.stdout.splitlines()[:3]) == ("", shown_cities(demo_server))
    assert re.fullmatch(r"\d+\.\d\d", done.stdout.splitlines()[3])
    replaced(project / "cities.py", "node.population", "node.people")
    assert 'no attribute "people"' in python(project, *mypy).stdout


def test_the_python_client_writes_and_reads_every_scalar(generator, project, tmp_path):
    with_goods(project)
    generate(generator, project)
    shutil.copy(TYPED / "goods_round_trip.py", project)
    mypy = (*MYPY, generator / ".mypy_cache", "goods_round_trip.py")
    assert (checked := python(project, *mypy)).returncode == 0, checked.stdout
    store = f"sqlite:///{tmp_path / 'clade.db'}"
    create(store)
    with serving(create_app(Settings(store=store, hierarchies=GOODS, writes="on"))) as url:
        done = python(project, "goods_round_trip.py", f"{url}/graphql")
    assert (done.stderr, done.stdout) == ("", "box\n")


# -- Apollo Client's cache ---------------------------------------------------------------------------------------------

NAMES = [f"{number:02}" for number in range(25)]


@needs_node
def test_apollos_cache_matches_fragments_on_interfaces_grows_lists_and_follows_writes(project):
    run("node", "possible-types.mjs", cwd=project)
    types = json.loads((project / "possible-types.json").read_text())
    assert set(types["CategoryNode"]) == {"Category", "Product", "Variant"}
    assert types.keys() >= {"Node", "Location", "CategoryNode", "NodeRevision"}
    store = f"sqlite:///{project / 'clade.db'}"

    async def fill() -> None:
        async with open_store(store) as opened:
            await opened.create()
            rows = [("All",), *(("All", name) for name in NAMES)]
            await plant(opened, CategoryNode, [(path, "CATEGORY", path[-1]) for path in rows])

    asyncio.run(fill())
    with serving(create_app(Settings(store=store, writes="on"))) as url:
        pages = HERE / "caches" / "apollo-pages.mjs"
        shown = json.loads(run("node", pages, project / "cache.mjs", f"{url}/graphql", "All", cwd=project))
    assert shown == {
        "sizes": [10, 20, 25], "sortedSizes": [10, 20, 25],
        "walked": {"plain": NAMES, "sorted": NAMES[::-1]},
        "renamed": {"plain": "renamed", "node": "renamed"},
        "deleted": {
            "plain": [*NAMES[:12], "renamed", *NAMES[14:]],
            "sorted": [*NAMES[:13:-1], "renamed", *NAMES[11::-1]],
        },
        "writes": 2, "complaints": [],
    }  # fmt: skip
