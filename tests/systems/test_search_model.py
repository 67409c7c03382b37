"""Random edits, and after each of them searches: they find what brute force over the table finds, for every caller.

The long form: pytest --examples 2000 tests/systems/test_search_model.py
"""

import asyncio
import uuid
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resolvers.search import finder, search
from store.background_moves.timing import MoveTiming
from store.connect import open_store
from store.engine.protocol import Store
from store.model.keys import Path
from store.model.paths import format_path
from store.writer.writer import Writer
from tests.brute_search import Brute
from tests.rights.asking import Server, caller
from tests.selection import examples
from tests.systems.asking import plant
from tests.systems.searching import ALL, CLASSES, RandomTree, Search, Spot, all_nodes

SEQUENCES = st.tuples(st.sampled_from([*CLASSES]), st.integers(0, 1 << 32), st.integers(1, 15))
LOOKUPS = {"spot": "spot", "box": "boxNode"}
SMALL = 60  # changes in a transaction, so that a subtree of some nodes is moved in the background
common = settings(suppress_health_check=list(HealthCheck), deadline=None)


def granted(tree: RandomTree) -> tuple[Any, list[Path]]:
    """A caller who sees some subtrees, and their tops."""
    tops = [tree.path() for _ in range(tree.random.randint(0, 2))] + [("no", "where")]
    return caller(*[f"read:{tree.hierarchy.name}/{format_path(top)}" for top in tops], name=str(tops)), tops


async def seen_under(server: Server, asked: Search, who: Any) -> Search | None:
    """The search below the node that a caller gets for the path: where the one that is there is hidden, the one that
    was there before. None where there is none.
    """
    if asked.under is None:
        return asked
    query = f"query($path: Path) {{ node: {LOOKUPS[asked.hierarchy]}(path: $path) {{ path }} }}"
    node = (await server.ask(who, query, path=format_path(asked.under)))["data"]["node"]
    return None if node is None else replace(asked, under=tuple(node["path"].split("/")))


async def check(
    server: Server, brute: Brute, asked: Search, who: Any, tops: list[Path], *, whole: bool, exact: bool
) -> bool:
    """Compare a search with brute force; whether its result is complete. With `whole` it has to be; with `exact` its
    nodes have to be right in any case.
    """
    answer = await asked.ask(server, who)
    if brute.hierarchy.name == "box" and asked.under is None:
        assert "errors" in answer or len({top[0] for top in tops}) < 2
        return True
    assert "errors" not in answer, (asked, answer)
    found = answer["data"]["found"]
    scope = await seen_under(server, asked, who)

    def shown(path: Path) -> bool:
        return scope is not None and scope.is_in_scope(path) and any(path[: len(top)] == top for top in tops)

    expected = brute.find(asked.text, shown=shown, levels=asked.levels, languages=asked.languages, first=asked.first)
    if whole or exact or found["complete"]:
        assert [one["id"] for one in found["nodes"]] == [one.id for one in expected], (asked, tops)
        assert [one["path"] for one in found["nodes"]] == [format_path(one.path) for one in expected]
        assert [one["name"] for one in found["nodes"]] == [one.name for one in expected]
        for one in found["nodes"]:
            parts = one["path"].split("/")
            assert [above["path"] for above in one["ancestors"]] == ["/".join(parts[:n]) for n in range(1, len(parts))]
    else:
        assert all(shown(tuple(one["path"].split("/"))) for one in found["nodes"])
    assert found["complete"] or not whole, asked
    return bool(found["complete"])


async def follow(
    store: Store, name: str, seed: int, length: int, seen: Counter[bool], *, whole: bool, exact: bool
) -> None:
    hierarchy = CLASSES[name].definition()
    tree, writer, server = (
        RandomTree.of(hierarchy, seed),
        Writer(store, MoveTiming(0.0, 0.0), {name: hierarchy}),
        Server(store, *CLASSES.values()),
    )
    for _ in range(length):
        await tree.edit(store, writer)
        records = await all_nodes(store, name)
        tree.paths = {record.path: record.level for record in sorted(records, key=lambda one: one.path)}
        brute = Brute(hierarchy, records)
        for _ in range(3):
            asked = tree.search()
            seen[await check(server, brute, asked, ALL, [()], whole=whole, exact=exact)] += 1
            who, tops = granted(tree)
            seen[await check(server, brute, asked, who, tops, whole=whole, exact=exact)] += 1


def run(
    url: str,
    sequence: tuple[str, int, int],
    max_commit_changes: int | None = None,
    *,
    whole: bool = True,
    exact: bool = False,
) -> Counter[bool]:
    seen: Counter[bool] = Counter()

    async def opened() -> None:
        async with open_store(url) as store:
            await store.create()
            if max_commit_changes:
                store.max_changes = store.max_commit_changes = max_commit_changes
            await follow(store, *sequence, seen, whole=whole, exact=exact)

    asyncio.run(opened())
    return seen


@settings(common, max_examples=examples(3, 10))
@given(SEQUENCES)
def test_on_sqlite_searches_find_what_was_written(sequence):
    run("sqlite://:memory:", sequence)


@settings(common, max_examples=examples(3, 10))
@given(SEQUENCES)
def test_searches_find_what_background_moves_have_moved(sequence):
    run("sqlite://:memory:", sequence, SMALL)


@settings(common, max_examples=examples(1, 2))
@given(SEQUENCES)
def test_on_dynamodb_searches_find_what_was_written(engine, sequence):
    run(engine.address(f"search-{uuid.uuid4().hex}"), sequence)


def test_a_search_of_few_items_says_so_or_finds_the_same(monkeypatch):
    """With low limits most results have to be proven from a part of the items."""
    monkeypatch.setattr(search, "_limits", lambda texts, first, **_: (4, 4))
    monkeypatch.setattr(search, "MAX_UNITS", 0.0)
    monkeypatch.setattr(finder, "MAX_SEARCHED_NODES", 0)
    seen: Counter[bool] = Counter()
    for seed in range(examples(1, 3)):
        for name in CLASSES:
            seen += run("sqlite://:memory:", (name, seed, 15), whole=False)
    assert min(seen[True], seen[False]) > 5, seen


def test_callers_with_grants_on_large_parts_get_the_same_hits_and_complete_false(monkeypatch):
    monkeypatch.setattr(finder, "MAX_SEARCHED_NODES", 0)
    seen: Counter[bool] = Counter()
    for seed in range(examples(1, 2)):
        for name in CLASSES:
            seen += run("sqlite://:memory:", (name, seed, 15), SMALL, whole=False, exact=True)
    assert min(seen[True], seen[False]) > 5, seen


@pytest.mark.parametrize("text", ["o o", "oma oma"])
async def test_a_word_that_is_written_twice_is_not_proven_by_the_items_of_another_text(store, monkeypatch, text):
    """The folded text begins other words than its only word does."""
    monkeypatch.setattr(search, "_limits", lambda texts, first, **_: (4, 4))
    monkeypatch.setattr(search, "MAX_UNITS", 0.0)
    names = ["o", *[f"oma {n}" for n in range(12)], "oma oma", "o o"]
    rows = [((f"{n}",), "ZONE", name, {"size": n}) for n, name in enumerate(names)]
    await plant(store, Spot, rows)
    brute = Brute(Spot.definition(), await all_nodes(store, "spot"))
    found = (await Search("spot", text, first=3).ask(Server(store, *CLASSES.values())))["data"]["found"]
    expected = [one.id for one in brute.find(text, first=3)]
    assert not found["complete"] or [one["id"] for one in found["nodes"]] == expected
