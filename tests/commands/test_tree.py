"""`clade tree`: a subtree with levels and counts, in one read for each level."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from typer.testing import CliRunner

from commands import tree
from commands.main import app_of, run
from graph.hierarchies.registry import hierarchies
from store.connect import open_store, opened
from store.engine.protocol import Store
from store.metadata.move_record import MoveState
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from tests.recorded_reads import ChargedReads
from tests.store.background_moves import journaled

NODES = [
    ("US", "COUNTRY", "United States"),
    ("US/MO", "STATE", "Missouri"),
    ("US/NE", "STATE", "Nebraska"),
    ("US/MO/St. Louis", "CITY", None),
    ("US/NE/Lincoln", "CITY", None),
    ("US/NE/Omaha", "CITY", None),
    ("US/NE/Omaha/68118", "POSTAL_CODE", None),
    ("SG", "COUNTRY", "Singapore"),
    ("SG/Singapore", "CITY", None),
    ("SG/Jurong", "CITY", "Jurong\N{RIGHT-TO-LEFT OVERRIDE}East"),
]


@pytest.fixture
def url(store_url):
    """A store with a few places."""

    async def fill() -> None:
        plan = ImportPlan(hierarchies()["location"])
        for number, (path, level, name) in enumerate(NODES, start=1):
            plan.take(Row(number, path.split("/"), [Part(level, name)]))
        outcome = LoadResult()
        async with open_store(store_url) as store:
            await store.create()
            await load(store, plan, outcome)
        assert outcome.written == len(NODES)

    asyncio.run(fill())
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


def test_without_a_path_all_roots_are_shown(url):
    assert show(url, "--depth", "0") == [
        "Singapore SG COUNTRY (2 CITY)",
        "United States US COUNTRY (2 STATE, 3 CITY, 1 POSTAL_CODE)",
    ]


def test_unprintable_characters_of_a_name_are_replaced(url):
    assert show(url, "SG")[1] == "├── Jurong\N{REPLACEMENT CHARACTER}East Jurong CITY"


def test_each_level_is_one_read(url, monkeypatch):
    stores: list[ChargedReads] = []

    @asynccontextmanager
    async def charged(address: str) -> AsyncIterator[ChargedReads]:
        async with opened(address) as store:
            stores.append(ChargedReads(store))
            yield stores[-1]

    monkeypatch.setattr(tree, "opened", charged)
    for depth in range(4):
        show(url, "US", "--depth", str(depth))
    node, *deeper = [store.requests for store in stores]
    assert deeper == [node + 1, node + 2, node + 3]  # the states, the cities of all of them, and all postal codes


def test_too_many_nodes_are_an_error_before_they_are_read(url, monkeypatch):
    monkeypatch.setattr(tree, "MAX_NODES", 3)
    monkeypatch.setattr(sys, "argv", ["clade", "tree", "location", "US", "--depth", "2", "--store", url])
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == "clade: The subtree has more than 3 nodes; use a smaller --depth or a longer path."


class MovedMeanwhile:
    """A store in which a move that is under way commits between the reads of the first two levels."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.lists = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def nodes(self, *asked: Any, **limits: Any) -> Any:
        self.lists += 1
        if self.lists == 2:
            await journaled.lapse(self._store)
            await journaled.resume(self._store)
        return await self._store.nodes(*asked, **limits)


def test_a_tree_is_read_again_if_a_move_commits_meanwhile(engine, monkeypatch):
    address = engine.address("flips")

    async def halted() -> None:
        async with open_store(address) as store:
            await store.create()
            await journaled.plant(store)
            await journaled.halted(store, journaled.move("r/a", "r/b/a"), MoveState.COPYING)

    @asynccontextmanager
    async def moved(url: str) -> AsyncIterator[MovedMeanwhile]:
        async with opened(url) as store:
            store.max_commit_changes = journaled.SMALL
            yield MovedMeanwhile(store)

    asyncio.run(halted())
    monkeypatch.setattr(tree, "opened", moved)
    shown = CliRunner().invoke(app_of(), ["tree", "category", "r", "--depth", "2", "--store", address])
    assert shown.exit_code == 0, shown.output
    assert [line.split(" CATEGORY")[0] for line in shown.output.splitlines()] == [
        "r", "├── 0", "└── b", "    ├── a", "    └── c",
    ]  # fmt: skip


# -- hierarchies -------------------------------------------------------------------------------------------------------


def test_without_a_hierarchy_the_served_ones_are_listed_with_their_levels():
    shown = CliRunner().invoke(app_of(["tree"]), ["tree"])
    listed = {name: f"{name}: {', '.join(one.levels)}" for name, one in hierarchies().items()}
    assert shown.output.splitlines() == [*listed.values()]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("locaton", " Did you mean location?"), ("Location", " Did you mean location?"), ("x" * 10_000, "")],
)
def test_an_unknown_hierarchy_is_answered_with_the_most_similar_one(name, sentence):
    refused = CliRunner().invoke(app_of(["tree"]), ["tree", name])
    assert str(refused.exception).endswith(f"CLADE_HIERARCHIES has location, category.{sentence}")
    assert len(str(refused.exception)) < 200
