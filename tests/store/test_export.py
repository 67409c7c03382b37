"""Nodes brought out of a table in which a large subtree is being moved: each once, where it is seen."""

import json

import pytest

from store.errors import BadInput
from store.export import export
from store.journal import MoveState
from store.keys import parse_path
from store.stores import Store
from tests.hierarchies import CATEGORY
from tests.store import journaled
from tests.store.journaled import OTHERS, SUBTREE, move

PLACES = {"another parent": "r/b/c/a", "before it": "r/Z", "another tree": "o/p/q", "a root": "a"}


async def exported(store: Store, path: str | None = None) -> list[str]:
    lines = b"".join([page async for page in export(store, CATEGORY, parse_path(path) if path else None)])
    return ["/".join(json.loads(line)["path"]) for line in lines.splitlines()]


@pytest.mark.parametrize("what", PLACES)
async def test_an_export_has_each_node_once_before_and_after_the_flip(store: Store, what: str) -> None:
    await journaled.plant(store)
    target = PLACES[what]
    await journaled.halted(store, move("r/a", target), MoveState.COPYING)
    assert sorted(await exported(store)) == sorted([*OTHERS, *SUBTREE])
    assert sorted(await exported(store, "r/a")) == sorted(SUBTREE)
    with pytest.raises(BadInput, match="no node"):
        await exported(store, target)
    await journaled.lapse(store)
    await journaled.resume(store)
    assert sorted(await exported(store)) == sorted({*OTHERS, *journaled.at("r/a", target)})


@pytest.mark.parametrize("what", PLACES)
async def test_an_export_has_each_node_once_while_the_old_place_is_swept(store: Store, what: str) -> None:
    await journaled.plant(store)
    target = PLACES[what]
    await journaled.halted(store, move("r/a", target), MoveState.SWEEPING)
    assert sorted(await exported(store)) == sorted({*OTHERS, *journaled.at("r/a", target)})
    assert sorted(await exported(store, target)) == sorted(journaled.at("r/a", target))
    with pytest.raises(BadInput, match="no node"):
        await exported(store, "r/a")


async def test_an_export_lacks_what_a_cascade_is_removing(store: Store) -> None:
    await journaled.plant(store)
    await journaled.halted(store, journaled.cascade("r"), MoveState.SWEEPING)
    assert sorted(await exported(store)) == ["o", "o/p"]
