"""Imports compared with a plain dictionary: after each of several files table and model are equal."""

import asyncio
import contextlib
import uuid
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.connect import open_store
from store.engine.protocol import Store
from store.transfer.export import export
from store.transfer.formats.lines import read_jsonl
from store.transfer.load import LoadResult, load
from store.transfer.rows import ImportPlan, Part, Row
from tests import invariants
from tests.hierarchies import CATEGORY
from tests.selection import examples

Path = tuple[str, ...]
Model = dict[Path, dict[str, Any]]

SMALL = 14  # changes of a transaction
GROUP_BYTES = 10_000  # of some of them that are committed together

SEGMENTS = st.sampled_from(["a", "a b", "é", "#$", "%/"])
PATHS = st.lists(SEGMENTS, min_size=1, max_size=4).map(tuple)
VALUES = st.fixed_dictionaries({}, optional={"name": st.sampled_from(["x", "y"]), "note": st.sampled_from(["1", None])})
FILES = st.lists(
    st.tuples(st.dictionaries(PATHS, VALUES, max_size=12), st.booleans(), st.integers(0, 3)), min_size=1, max_size=5
)


def applied(model: Model, file: Model, prune: bool) -> Model:
    """What the model holds after a file, in which rows without a parent are not taken."""
    found = {path: dict(node) for path, node in model.items()}
    taken = []
    for path in sorted(file, key=len):
        if path[:-1] and path[:-1] not in found:
            continue
        taken.append(path)
        node = found.setdefault(path, {"name": path[-1]})
        node.update(file[path])
        if node.get("note") is None:
            node.pop("note", None)
    if prune:
        for path in sorted(found, key=len, reverse=True):
            covered = any(path[: len(one)] == one for one in taken)
            is_above = any(one[: len(path)] == path for one in found if one != path)
            if covered and path not in taken and not is_above:
                del found[path]
    return found


def wanted_of(file: Model) -> ImportPlan:
    wanted = ImportPlan(CATEGORY)
    for number, (path, said) in enumerate(file.items(), start=1):
        attributes = {name: value for name, value in said.items() if name != "name"}
        wanted.take(Row(number, path, [Part("CATEGORY", said.get("name"), None, attributes)]))
    return wanted


async def held(store: Store) -> Model:
    """What the table holds, as an export tells."""
    lines = [line async for page in export(store, CATEGORY) for line in page.splitlines()]
    rows = [orjson.loads(line) for line in lines]
    assert [row["path"] for row in rows] == [list(path) for path in sorted(tuple(row["path"]) for row in rows)]
    return {
        tuple(row.pop("path")): {name: value for name, value in row.items() if name not in ("id", "level")}
        for row in rows
    }


class Stopped(Exception):
    """An import ends here."""


class Small:
    """A store of small transactions, which stops for good after some of them; `max_commit_changes` as in `Store`."""

    max_changes = SMALL

    def __init__(self, store: Store, commits: int, max_commit_changes: int | None) -> None:
        self._store = store
        self._commits = commits
        self.max_commit_changes = max_commit_changes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, changes: Any) -> None:
        assert self.max_commit_changes is None or len(changes) <= self.max_commit_changes
        if not self._commits:
            raise Stopped
        self._commits -= 1
        await self._store.commit(changes)


async def follow(store: Store, files: list[tuple[Model, bool, int]], most: int | None = SMALL) -> None:
    """Import the files, each stopped once on the way, and compare after each."""
    model: Model = {}
    await invariants.check(store)
    for file, prune, commits in files:
        with contextlib.suppress(Stopped):
            await load(Small(store, commits, most), wanted_of(file), LoadResult(), prune=prune)
        await invariants.check(store)
        outcome = LoadResult()
        await load(Small(store, 1000, most), wanted_of(file), outcome, prune=prune)
        await invariants.check(store)
        model = applied(model, file, prune)
        assert await held(store) == model
        again = LoadResult()
        await load(store, wanted_of(file), again, prune=prune)
        assert again.commits == 0


@settings(max_examples=examples(15, 60))
@given(FILES, st.sampled_from([SMALL, None]))
def test_files_one_after_another_leave_what_the_model_holds(
    files: list[tuple[Model, bool, int]], most: int | None
) -> None:
    async def run() -> None:
        async with open_store("sqlite://:memory:") as store:
            await store.create()
            await follow(store, files, most)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("store.transfer.load.GROUP_BYTES", GROUP_BYTES)
        asyncio.run(run())


@settings(max_examples=examples(2, 5), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FILES)
def test_files_one_after_another_leave_what_the_model_holds_on_both_stores(
    store_url: str, files: list[tuple[Model, bool, int]]
) -> None:
    async def run() -> None:
        url = store_url
        if url.startswith("dynamodb"):
            url = url.replace("dynamodb://", f"dynamodb://{uuid.uuid4().hex}-", 1)
        else:
            url = "sqlite://:memory:"
        async with open_store(url) as store:
            await store.create()
            await follow(store, files)

    asyncio.run(run())


@settings(max_examples=examples(8, 30))
@given(st.dictionaries(PATHS, VALUES, max_size=20))
def test_what_was_exported_is_imported_as_the_same_nodes(tmp_path_factory: Any, file: Model) -> None:
    target = tmp_path_factory.mktemp("export") / "nodes.jsonl"

    async def run() -> None:
        async with open_store("sqlite://:memory:") as one, open_store("sqlite://:memory:") as other:
            for store in (one, other):
                await store.create()
            await load(one, wanted_of(file), LoadResult())
            target.write_bytes(b"".join([page async for page in export(one, CATEGORY)]))
            wanted = ImportPlan(CATEGORY)
            for _, row in read_jsonl(target):
                wanted.take(row)
            outcome = LoadResult()
            await load(other, wanted, outcome)
            assert not outcome.rejections
            assert [page async for page in export(other, CATEGORY)] == [page async for page in export(one, CATEGORY)]

    asyncio.run(run())
