"""docs/federation.md: its schemas are those of the neighbours, and its queries are answered as it says."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator

import httpx
import pytest
from graphql import parse, print_ast

from tests.federation.conftest import HERE, Served, clade_over, gateway_before, needs_npm
from tests.federation.places import Place

DOCS = HERE.parents[1] / "docs"
GUIDE = (DOCS / "federation.md").read_text("utf-8")
NEIGHBOURS = json.loads((DOCS / "federation" / "neighbours.json").read_text("utf-8"))
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
QUERIES = [
    (query, json.loads(answer))
    for (language, query), (_, answer) in zip(BLOCKS, [*BLOCKS[1:], ("", "")], strict=True)
    if language == "graphql" and query.startswith("query")
]
# Those of the demo data that the guide names, with the ids that they have there.
PLACES = [
    Place("location", "US", "COUNTRY", "United States", "US"),
    Place("location", "US/NE", "STATE", "Nebraska", "US-NE"),
    Place("location", "US/NY", "STATE", "New York", "US-NY"),
    Place("location", "US/NE/Omaha", "CITY", "Omaha", "5074472", {"timezone": "America/Chicago"}),
    Place("location", "US/NY/New York City", "CITY", "New York City", "5128581", {"timezone": "America/New_York"}),
    Place("category", "Electronics", "CATEGORY", "Electronics", None),
    Place("category", "Books & Games", "CATEGORY", "Books & Games", None),
]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Served]]:
    """Clade, and the gateway before it."""
    folder = tmp_path_factory.mktemp("guide")
    with (
        clade_over(f"sqlite:///{folder / 'clade.db'}", PLACES) as clade,
        gateway_before(clade, folder, **NEIGHBOURS) as gateway,
    ):
        yield clade, gateway


@pytest.mark.thorough
@needs_npm
@pytest.mark.parametrize(("query", "answer"), QUERIES, ids=[query.split()[1] for query, _ in QUERIES])
def test_the_queries_of_the_guide_have_the_documented_responses(gateway, query, answer):
    clade, before = gateway
    url = clade.url if "_entities" in query else before.url
    answered = httpx.post(url, json={"query": query}, timeout=60).json()
    answered.pop("extensions", None)  # what it read; the recorder asks for that
    assert answered == answer


def test_the_schemas_of_the_guide_are_those_of_the_neighbours():
    shown = [block for language, block in BLOCKS if language == "graphql" and block.startswith("extend schema")]
    assert [print_ast(parse(block)) for block in shown] == [
        print_ast(parse((HERE / f"{name}.graphql").read_text("utf-8"))) for name in NEIGHBOURS
    ]


@pytest.mark.skipif(not shutil.which("docker-compose"), reason="docker-compose is missing")
def test_the_compose_file_is_valid_and_its_mounts_exist():
    file = DOCS / "federation" / "compose.yml"
    command = ["docker-compose", "-f", str(file), "config"]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stderr
    for mounted in re.findall(r"- (\S+):/\S+:ro$", file.read_text("utf-8"), re.MULTILINE):
        assert (file.parent / mounted).exists()
    assert re.search(r"image: \S+:\d", checked.stdout)
