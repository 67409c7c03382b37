"""Searches of a caller who may see a part: what they read, and which parts are too large."""

from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from graph.execution.operation import Execution
from graph.operation.context import Context
from resolvers.access.callers import Caller
from resolvers.search import finder
from resolvers.session.budget import BudgetLimits
from resolvers.session.cache import PageCache, TreeVersionCache
from resolvers.session.request import Request
from store.engine import ReadUsage, Store
from store.model.paths import parse_path
from store.writing.move_delete import Move
from store.writing.writer import Writer
from tests.answers import answer_to
from tests.rights import test_two_worlds as two_worlds
from tests.rights.asking import caller
from tests.rights.test_two_worlds import CLASSES, DEFINITIONS
from tests.schemas import schema_of


async def plant(store: Store, hierarchy: str, rows: Sequence[tuple[str, str]]) -> None:
    """Nodes with these paths and names."""
    level = next(iter(CLASSES[hierarchy].levels))
    await two_worlds.plant(store, hierarchy, [(parse_path(path), level, name, {}) for path, name in rows])


class Client:
    """One server's caches, as callers meet them."""

    def __init__(self, store: Store, hierarchy: str) -> None:
        self._store, title = store, f"{hierarchy}s".title()
        self._cache = PageCache(50_000_000, TreeVersionCache(0.0))
        self._search = f'search{title}(text: "%s"'

    async def find(self, who: Caller, text: str, **arguments: Any) -> tuple[Any, Any, int]:
        """What a search returns, the first error, and the requests."""
        given = "".join(f", {name}: {orjson.dumps(value).decode()}" for name, value in arguments.items())
        request = Request(self._store, DEFINITIONS, BudgetLimits(), page_cache=self._cache)
        execution = Execution(*schema_of(*CLASSES.values()), lambda: Context(request))
        query = f"{{ found: {self._search % text}{given}) {{ complete nodes {{ path }} }} }}"
        answer = await answer_to(execution, query, caller=who, allow_mutations=False)
        data, errors = orjson.loads(answer.content())["data"], answer.body.get("errors")
        return data and data["found"], errors and errors[0], request.reads.requests


async def test_a_part_is_read_once_and_again_after_a_write(store):
    await plant(store, "plot", [("a", "A"), *[(f"a/b{n}", f"Lamp {n}") for n in range(30)], ("a/c", "C"), ("b", "B")])
    client, who = Client(store, "plot"), caller("read:plot/a/b0", "read:plot/a/c", "read:plot/b")
    await plant(store, "plot", [("a/b0/x", "Lamp x")])
    warm = 0 if store.version() is not None else 1  # the tops, in one BatchGetItem with the versions of their trees
    (_, _, cold), _, *others = [await client.find(who, text) for text in ("l", "la", "la", "lam", "lamp")]
    assert cold > warm
    assert {requests for _, _, requests in others} == {warm}
    assert others[-1][0]["nodes"] == [{"path": "a/b0"}, {"path": "a/b0/x"}]
    await plant(store, "plot", [("a/b0/y", "Lamp y")])
    found, _, requests = await client.find(who, "lamp")
    assert (len(found["nodes"]), requests > warm) == (3, True)


@pytest.mark.parametrize(
    ("hierarchy", "grants", "under", "size"),  # of a part that is too large
    [
        ("plot", ["a"], None, 16), ("plot", ["a"], "a", 16), ("plot", ["a"], "a/b", None),
        ("plot", ["a/b", "a/c"], None, None), ("crate", ["a"], None, None), ("crate", ["a"], "a", None),
        ("crate", ["a"], "a/b", None), ("crate", ["a", "z"], None, 17), ("crate", ["a", "z"], "a", None),
        ("crate", ["a/b", "a/c", "a/d"], None, 15), ("crate", ["a/b", "a/c"], None, None),
        ("crate", ["z", "a/c"], None, None),
    ],
)  # fmt: skip
async def test_a_search_of_a_large_part_is_in_one_tree_or_refused(store, monkeypatch, hierarchy, grants, under, size):
    monkeypatch.setattr(finder, "MAX_SEARCHED_NODES", 10)
    await plant(store, hierarchy, [("a", "A"), *[(f"a/{key}", key) for key in "bcd"], ("z", "Lamp z")])
    await plant(store, hierarchy, [(f"a/{key}/{n}", f"Lamp {n}") for key in "bcd" for n in range(4)])
    client, who = Client(store, hierarchy), caller(*[f"read:{hierarchy}/{one}" for one in grants])
    found, error, _ = await client.find(who, "lamp", first=3, **({"under": under} if under else {}))
    if size is None:
        assert (found["complete"], len(found["nodes"])) == (True, 3)
        return
    one = "a node" if under is None else "another node"
    assert error["extensions"]["code"] == "BAD_USER_INPUT"
    assert f"in {size} nodes of it, of which at most 10 are searched. Give the path of {one} " in error["message"]


async def test_a_former_path_leads_to_what_the_caller_sees_at_the_new_one(store):
    rows = [("USA", "U"), ("USA/NB", "N"), ("USA/NB/Omaha", "Omaha"), ("USA/NB/Secret", "Omaha"), ("FR", "Omaha")]
    await plant(store, "plot", rows)
    writer = Writer(store)
    for source, target in (("USA/NB", "USA/NE"), ("USA", "US"), ("US/NE/Secret", "FR/Secret")):
        await writer.write(Move(DEFINITIONS["plot"], parse_path(source), parse_path(target)), ReadUsage())
        await writer.move_worker.finished()
    client, who = Client(store, "plot"), caller("read:plot/US/NE")
    for under, is_seen in (
        ("US/NE", True),
        ("USA/NB", True),
        ("USA/NE", True),
        ("USA", False),
        ("USA/NB/Secret", False),
    ):
        found, _, _ = await client.find(who, "omaha", under=under)
        assert found == {"complete": True, "nodes": [{"path": "US/NE/Omaha"}] * is_seen}, under
