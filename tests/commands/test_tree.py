"""`clade tree`: a subtree with levels and counts, in one read for each level."""

import asyncio
import json
import uuid

import pytest
from aiohttp import web
from typer.testing import CliRunner

from commands.main import app_of
from graph.hierarchies.registry import hierarchies
from store.connect import open_store
from store.metadata.moves import MoveState
from store.model.records import derived_id
from tests.engines import Engine
from tests.proxy import Proxy
from tests.store.checking.broken import at, change
from tests.store.transfer.test_load import Told, imported
from tests.store.writing import journaled

NODES: list[Told] = [
    ("US", "COUNTRY", {"name": "United States"}),
    ("US/MO", "STATE", {"name": "Missouri"}),
    ("US/NE", "STATE", {"name": "Nebraska"}),
    ("US/MO/St. Louis", "CITY"), ("US/NE/Lincoln", "CITY"), ("US/NE/Omaha", "CITY"),
    ("US/NE/Omaha/68118", "POSTAL_CODE"),
    ("SG", "COUNTRY", {"name": "Singapore"}),
    ("SG/Singapore", "CITY"), ("SG/Jurong", "CITY"),
]  # fmt: skip


async def fill(url: str) -> None:
    async with open_store(url) as store:
        await store.create()
        await imported(store, NODES)


@pytest.fixture
def url(store_url):
    """A store with a few places."""
    asyncio.run(fill(store_url))
    return store_url


def show(url: str, *arguments: str) -> list[str]:
    shown = CliRunner().invoke(app_of(), ["tree", "location", *arguments, "--store", url])
    assert shown.exit_code == 0, shown.output
    return shown.output.splitlines()


def test_a_subtree_is_printed_with_names_keys_levels_and_counts(url):
    assert show(url, "US", "--depth", "2") == [
        "United States US COUNTRY (2 STATE, 3 CITY, 1 POSTAL_CODE)",
        "├── Missouri MO STATE (1 CITY)",
        "│   └── St. Louis CITY",
        "└── Nebraska NE STATE (2 CITY, 1 POSTAL_CODE)",
        "    ├── Lincoln CITY",
        "    └── Omaha CITY (1 POSTAL_CODE)",
    ]


def test_the_default_depth_is_1_and_0_is_the_node_alone(url):
    assert show(url, "US/NE", "--depth", "0") == ["Nebraska NE STATE (2 CITY, 1 POSTAL_CODE)"]
    assert show(url, "US/NE") == show(url, "US/NE", "--depth", "1")
    assert len(show(url, "US/NE")) == 3
    assert show(url, "--depth", "0") == [
        "Singapore SG COUNTRY (2 CITY)",
        "United States US COUNTRY (2 STATE, 3 CITY, 1 POSTAL_CODE)",
    ]


def test_json_has_a_line_for_each_node_parents_first(url):
    assert [json.loads(line) for line in show(url, "US/NE", "--depth", "0", "--json")] == [
        {
            "path": "US/NE", "key": "NE", "level": "STATE", "name": "Nebraska",
            "id": derived_id("location", ("US", "NE")), "descendantCounts": {"CITY": 2, "POSTAL_CODE": 1},
        }
    ]  # fmt: skip
    lines = [json.loads(line) for line in show(url, "--depth", "9", "--json")]
    assert [line["path"] for line in lines] == [
        "SG", "SG/Jurong", "SG/Singapore",
        "US", "US/MO", "US/MO/St. Louis", "US/NE", "US/NE/Lincoln", "US/NE/Omaha", "US/NE/Omaha/68118",
    ]  # fmt: skip


async def test_each_level_is_one_read(engine: Engine):
    name = f"clade-{uuid.uuid4().hex}"
    await fill(engine.address(name))
    async with Proxy(engine.url) as proxy:
        shown = await asyncio.to_thread(show, Engine("", proxy.url, exact=True).address(name), "US", "--depth", "2")
        assert len(shown) == 6
        reads = [call.operation for call in proxy.calls if call.operation != "DescribeTable"]
    assert sorted(reads) == ["BatchGetItem", "GetItem", "Query", "Query"], "layout, version and node, states, cities"


async def test_too_many_nodes_are_an_error_before_they_are_read(store, store_url):
    await fill(store_url)
    await change(store, at("US/NE"), kids={"CITY": 200_000})
    refused = await asyncio.to_thread(CliRunner().invoke, app_of(), ["tree", "location", "US/NE", "--store", store_url])
    sentence = "The subtree has more than 100,000 nodes; use a smaller --depth or a longer path."
    assert str(refused.exception) == sentence


async def test_a_tree_is_read_again_if_a_move_commits_meanwhile(engine: Engine):
    name = f"clade-{uuid.uuid4().hex}"
    async with open_store(engine.address(name)) as store:
        await store.create()
        await journaled.plant(store)
        await journaled.halted(store, journaled.move("r/a", "r/b/a"), MoveState.COPYING)

        async def after_the_move(call, forward) -> web.Response:
            await journaled.lapse(store)
            await journaled.resume(store)
            return await forward(call.body)

        async with Proxy(engine.url) as proxy:
            proxy.spoil("Query", after_the_move)
            url = Engine("", proxy.url, exact=True).address(name)
            words = ["tree", "category", "r", "--depth", "2", "--store", url]
            shown = await asyncio.to_thread(CliRunner().invoke, app_of(), words)
    assert shown.output.splitlines() == [
        "r CATEGORY (18 CATEGORY)", "├── 0 CATEGORY", "└── b CATEGORY (16 CATEGORY)",
        "    ├── a CATEGORY (14 CATEGORY)", "    └── c CATEGORY",
    ]  # fmt: skip


# -- hierarchies -------------------------------------------------------------------------------------------------------


def test_without_a_hierarchy_the_served_ones_are_listed_with_their_levels():
    shown = CliRunner().invoke(app_of(["tree"]), ["tree"])
    listed = {name: f"{name}: {', '.join(one.levels)}" for name, one in hierarchies().items()}
    assert shown.output.splitlines() == [*listed.values()]
    shown = CliRunner().invoke(app_of(["tree"]), ["tree", "--json"])
    found = [(line["name"], line["levels"]) for line in map(json.loads, shown.stdout.splitlines())]
    assert found == [(name, [*one.levels]) for name, one in hierarchies().items()]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("locaton", " Did you mean location?"), ("Location", " Did you mean location?"), ("x" * 10_000, "")],
)
def test_an_unknown_hierarchy_is_answered_with_the_most_similar_one(name, sentence):
    refused = CliRunner().invoke(app_of(["tree"]), ["tree", name])
    assert str(refused.exception).endswith(f"CLADE_HIERARCHIES has location, category.{sentence}")
    assert len(str(refused.exception)) < 200


@pytest.mark.both_stores
def test_a_hierarchy_that_was_renamed_is_named(url, tmp_path):
    """Else an editor of classes would see an empty store."""
    (tmp_path / "places.py").write_text(
        'from clade import Node\n\nclass Place(Node, hierarchy="place"):\n    """A place."""\n\n'
        'class Land(Place, under=None):\n    """A country."""\n'
    )
    env = {"CLADE_HIERARCHIES": str(tmp_path / "places.py")}
    for words, printed in ((["tree"], "place: LAND\n"), (["tree", "place", "--json"], "")):
        shown = CliRunner().invoke(app_of(), [*words, "--store", url], env=env)
        assert shown.stdout == printed
        assert shown.stderr.startswith('The store has nodes of the hierarchy "location", which no class defines. ')
        assert 'hierarchy="location", whatever the classes are called' in shown.stderr
    assert CliRunner().invoke(app_of(), ["tree", "--store", url]).stderr == ""
