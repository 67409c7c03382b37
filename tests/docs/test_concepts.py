"""docs/concepts.md: the queries cost what its table says, and its pictures are those of the code."""

import json
import re
import subprocess
import sys
from xml.etree import ElementTree

import httpx

from tests.readme import DOCS, ROOT, blocks, section, table

PAGE = DOCS / "concepts.md"
PART = section("Reads and their cost", PAGE)
QUERIES = {
    name: query
    for block in blocks("graphql", PART)
    for query in block.split("\n\n")
    for name in re.findall(r"^query (\w+)", query)
}


def test_each_query_takes_the_requests_of_the_table(demo_server):
    costs = []
    for name, query in QUERIES.items():
        response = httpx.post(
            f"{demo_server}/graphql", json={"query": query}, headers={"clade-reads": "1"}, timeout=30
        ).json()
        nodes, lists = nodes_and_lists(response["data"])
        costs.append((name, f"{nodes:,}", str(response["extensions"]["reads"]["requests"]), str(lists)))
    assert [row for row in table(PART) if row[0] in QUERIES] == costs


def test_the_calls_of_the_query_are_those_that_are_shown(demo_server):
    part = PART.partition("### What did this query cost?")[2]
    query = f"{{ {re.search(r'`(country.*?)`', part)[1]} }}"
    response = httpx.post(f"{demo_server}/graphql", json={"query": query}, headers={"clade-reads": "2"}, timeout=30)
    (shown,) = [json.loads(block) for block in blocks("json", part)]
    assert [call.pop("operation") for call in shown] == ["BatchGetItem", "Query"]
    reads = response.json()["extensions"]["reads"]
    assert [{name: call[name] for name in call if name != "operation"} for call in reads["calls"]] == shown
    fields = {name for names, _ in table(part) for name in re.findall(r"`(\w+)`", names)}
    assert {name for call in reads["calls"] for name in call} <= fields
    assert reads["fromCache"] == {"pages": 0, "records": 0}


def nodes_and_lists(value: object) -> tuple[int, int]:
    """The number of nodes in a response, and of Queries where each list and each look-up is one."""
    match value:
        case list():
            counts = [nodes_and_lists(item) for item in value]
        case {"nodes": nodes}:  # a list
            counts = [nodes_and_lists(nodes), (0, 1)]
        case dict():
            counts = [nodes_and_lists(item) for item in value.values()]
            counts.append(("name" in value, 0))
            if "category" in value or "country" in value:
                counts.append((0, 1))  # the look-up by path
        case _:
            counts = []
    return sum(nodes for nodes, _ in counts), sum(lists for _, lists in counts)


def test_the_pictures_are_those_of_the_script(tmp_path):
    subprocess.run([sys.executable, ROOT / "scripts" / "pictures", tmp_path], check=True, timeout=60)
    drawn = {file.name: file.read_text("utf-8") for file in tmp_path.iterdir()}
    assert drawn == {file.name: file.read_text("utf-8") for file in (DOCS / "concepts").iterdir()}
    assert set(re.findall(r"\]\(concepts/([\w-]+\.svg)\)", PAGE.read_text("utf-8"))) == drawn.keys()


def test_the_keys_that_the_page_describes_are_in_its_pictures():
    for described, name in re.findall(r"!\[(.*?)\]\(concepts/([\w-]+\.svg)\)", PAGE.read_text("utf-8")):
        picture = ElementTree.parse(DOCS / "concepts" / name).getroot()  # noqa: S314  # a file of our own
        shown = ["".join(text.itertext()) for text in picture.iter("{http://www.w3.org/2000/svg}text")]
        keys = re.findall(r"[\w#@]*#[\w#@]*", described)
        assert keys
        assert [key for key in keys if not any(key in text for text in shown)] == []
