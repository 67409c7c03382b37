"""Restores of deleted nodes: after random edits, batches and imports they bring back what a model says, or nothing."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import pytest

from store.checking.check import Check
from store.connect import open_store
from store.engine import ReadUsage, Store
from store.errors import CladeError, Fault, Faults
from store.metadata.moves import MoveState
from store.model.keys import Path
from store.model.records import Item
from store.reading import recent_moves
from store.transfer.load import LoadResult, load
from store.writing.create_update import Create, Update
from store.writing.edit import Edit, Named
from store.writing.edit_many import EditMany
from store.writing.edit_request import EditOptions
from store.writing.move_delete import Delete, Policy
from store.writing.restore import Restore
from store.writing.writer import Writer
from tests import invariants
from tests.model_writes import KEYS, RandomEdits
from tests.model_writes import Model as Known
from tests.model_writes import Node as KnownNode
from tests.selection import examples
from tests.store.transfer.test_load import wanted_of
from tests.store.writing import journaled
from tests.store.writing.journaled import SOON
from tests.stores import Interrupted, once
from tests.systems.restore_model import CODED, Model, Refusal, lost_of, nodes_of

HIERARCHIES = {"category": CODED}
HISTORIES = {"sqlite": (4, 200), "dynamodb": (1, 20)}
STEPS = {"sqlite": 45, "dynamodb": 25}
PATHS = [
    "a", "b", "a/a", "a/b", "b/a", "a/a/a", "a/a/b", "a/b/a", "a/b/b", "a/a/a/a", "a/a/a/b", "a/b/a/a", "b/a/a",
    "b/a/b", "b/a/a/a", "a/b/a/b", "a/b/a/b/a", "a/a/a/a/a",
]  # fmt: skip


class Wishes(RandomEdits):
    """Random edits of nodes with codes, many of them deletions, some creations by former ids or at former paths."""

    def __init__(self, chance: Random, model: Model) -> None:
        super().__init__(0, Known())
        self.random, self.known = chance, model

    def one(self) -> Edit:
        self.model.nodes = {one.path: KnownNode("", "", "", {}) for one in self.known.nodes.values()}
        edit = super().one()
        if self.random.random() < 0.3:
            edit = Delete(CODED, self.path(), self.random.choice([Policy.CASCADE, Policy.CASCADE, Policy.REPARENT]))
        if isinstance(edit, Create) and self.known.lost and self.random.random() < 0.5:
            node = self.known.lost[self.lost()].node
            path = self.random.choice([edit.path, edit.path, node.path])
            node_id = self.random.choice([bare(node.id), bare(node.id), edit.node_id])
            edit = replace(edit, path=path, node_id=node_id, level=node.level)
        codes = [one.node.values["code"] for one in self.known.lost.values() if "code" in one.node.values]
        if codes and self.random.random() < 0.1:
            edit = Update(CODED, self.path(), None, None, {"code": self.random.choice(codes)})
        return replace(edit, hierarchy=CODED)

    def values(self) -> dict[str, Any]:
        values = super().values()
        return values | ({"code": self.random.choice("12345")} if self.random.random() < 0.6 else {})

    def lost(self) -> str:
        """A deleted node, mostly one that was deleted with others."""
        some = [*self.known.lost.values()]
        large = [one for one in some if one.kids]
        return self.random.choice(large if large and self.random.random() < 0.6 else some).node.id

    def restore(self) -> Restore:
        chance = self.random
        node_id = self.lost() if self.known.lost and chance.random() < 0.97 else chance.choice(["category:x", "x"])
        if self.known.nodes and chance.random() < 0.03:
            node_id = chance.choice([*self.known.nodes])
        names, to_root, where = [Named("id", id=node_id)], False, chance.random()
        if where < 0.2:
            names.append(Named("to", path=self.path()))
        elif where < 0.35:
            names.append(Named("to", id=chance.choice([*self.known.nodes, *self.known.lost])))
        elif where < 0.45:
            to_root = True
        path: Path = (chance.choice([*KEYS, "c", "d"]),) if chance.random() < 0.3 else ()
        return Restore(CODED, path, node_id, to_root=to_root, names=names)


class History:
    """A store with its model: each step is made on both and compared."""

    def __init__(self, store: Store, chance: Random, counts: Counter[str]) -> None:
        self.store, self.chance, self.counts = store, chance, counts
        self.model = Model(is_lagging=not store.is_embedded)
        self.wishes = Wishes(chance, self.model)
        self.log = list[str]()

    async def run(self, steps: int) -> None:
        await self.plant()
        for _ in range(steps):
            if len(self.model.nodes) < 6:
                await self.plant()
            kinds = [self.edit] * 5 + [self.batch, self.imported] + [self.restore] * (5 if self.model.lost else 1)
            await self.chance.choice(kinds)()
            await invariants.check(self.store, HIERARCHIES)
        assert [str(one) async for one in Check(self.store, HIERARCHIES, journaled.AT).findings()] == []

    async def items(self) -> list[Item]:
        return await invariants.all_items(self.store)

    async def plant(self) -> None:
        rows = [(path, "CATEGORY", {"note": path}) for path in PATHS]
        await load(self.store, wanted_of(rows, CODED), LoadResult())
        self.model.take(await self.items())

    async def write(self, edit: Any, disturbed: Any = None) -> Any:
        """The result of an edit after the end of its job, or its error, which leaves all items as they were."""
        before, writer = await self.items(), Writer(disturbed or self.store, SOON)
        try:
            result: Any = await writer.write(edit, ReadUsage())
            error = None
        except CladeError as found:
            result = error = found
        await writer.move_worker.finished()
        self.log.append(f"{brief(edit)}: {sorted(faults_of(error)) if error else 'made'}")
        undone = [one for one in await recent_moves(self.store, ReadUsage()) if one.state is MoveState.UNDONE]
        self.counts["undone"] += len(undone) - getattr(self, "undone", 0)
        if error and disturbed is None and len(undone) == getattr(self, "undone", 0):
            assert by_key(await self.items()) == by_key(before)
        self.undone = len(undone)
        return result

    # -- steps ---------------------------------------------------------------------------------------------------------

    async def edit(self) -> None:
        if not isinstance(await self.write(self.wishes.one()), CladeError):
            self.counts["edits"] += 1
        self.model.follow(await self.items())

    async def batch(self) -> None:
        """Several edits, mostly a deletion and a creation by the id of a node of it."""
        edits = [self.wishes.one() for _ in range(self.chance.choice((1, 2)))]
        path = self.wishes.path()
        below = [one.id for one in self.model.nodes.values() if one.path[: len(path)] == path]
        if below and self.chance.random() < 0.7:
            policy = self.chance.choice([Policy.CASCADE, Policy.REPARENT])
            edits = [Delete(CODED, path, policy), *edits[1:]]
            target = (*path[:-1], self.chance.choice(KEYS))
            edits += [Create(CODED, target, "CATEGORY", "n", {}, bare(self.chance.choice(below)))]
        if not isinstance(await self.write(EditMany(CODED, edits)), CladeError):
            self.counts["batches"] += 1
        self.model.take(await self.items())

    async def imported(self) -> None:
        """An import that prunes a part of a tree, and brings back some nodes by their ids."""
        some = [path for path in PATHS if path[0] == "a" and self.chance.random() < 0.7]
        lost = [bare(one) for one in self.model.lost if self.chance.random() < 0.3]
        rows = list[Any]()
        for path in some:
            if "/" not in path or path.rpartition("/")[0] in {row[0] for row in rows}:
                rows.append((path, "CATEGORY", {"id": lost.pop()} if lost and self.chance.random() < 0.4 else {}))
        result = LoadResult()
        await load(self.store, wanted_of(rows, CODED), result, prune=self.chance.random() < 0.6)
        self.log.append(f"import {rows}")
        self.counts["imports"] += 1
        self.model.take(await self.items())

    async def restore(self) -> None:
        edit, before = self.wishes.restore(), await self.items()
        expected, path = self.model.refusals(edit)
        if self.chance.random() < 0.2:
            await self.dry_run(edit, expected, before)
        if self.chance.random() < 0.3:
            return await self.disturbed(edit)
        await self.compare(edit, await self.write(edit), expected, path, before)

    async def dry_run(self, edit: Restore, expected: set[Refusal], before: Sequence[Item]) -> None:
        """It has the faults of the restore, but for values of which a job learns, and writes nothing."""
        found = set[Refusal]()
        try:
            await Writer(self.store).write(edit, ReadUsage(), EditOptions(dry_run=True))
        except CladeError as error:
            found = faults_of(error)
        assert found == expected or (not found and {code for code, _ in expected} <= {"TAKEN", "UNAVAILABLE"})
        assert by_key(await self.items()) == by_key(before)

    async def disturbed(self, edit: Restore) -> None:
        """Somebody else makes an edit between two calls of the restore: it is as if that had been made before."""
        first, other, between = self.model.refusals(edit)[0], self.wishes.one(), list[Sequence[Item]]()
        top = self.model.lost.get(edit.node_id)
        if top is not None and self.chance.random() < 0.5:
            node = self.chance.choice(self.model.coming_back(top)).node
            other = Create(CODED, (*self.wishes.path(), "f")[-4:], node.level, "n", {}, bare(node.id))

        async def disturb() -> None:
            with suppress(CladeError):
                writer = Writer(self.store, SOON)
                await writer.write(other, ReadUsage())
                await writer.move_worker.finished()
            between.append(await self.items())
            self.model.follow(between[0])
            self.log.append(f"between two calls: {brief(other)}")

        method, number = self.chance.choice([*[("commit", 1)] * 3, *product(("get", "range"), range(1, 5))])
        before = await self.items()
        result = await self.write(edit, Interrupted(self.store, method, before=once(number, disturb)))
        expected, path = self.model.refusals(edit)
        self.counts["disturbed"] += len(between)
        if between and isinstance(result, CladeError) and faults_of(result) == first != expected:
            assert by_key(await self.items()) == by_key(between[0])
            return
        await self.compare(edit, result, expected, path, between[0] if between else before)

    async def compare(
        self, edit: Restore, result: Any, expected: set[Refusal], path: Path, before: Sequence[Item]
    ) -> None:
        """Fail unless the result of a restore and the table after it are those of the model."""
        items = await self.items()
        found = faults_of(result) if isinstance(result, CladeError) else set()
        if expected:
            is_job = ("TAKEN", "code") in {(code, field[-4:]) for code, field in found}
            assert found == expected or (is_job and expected == {("TAKEN", "id")}), (found, expected)
            for code, _ in expected:
                self.counts[f"refused: {code}"] += 1
            if is_job or expected & {("UNAVAILABLE", "")}:
                self.model.take(items)  # an undone job leaves its redirects
            return
        assert not found, found
        assert result.record.path == path
        self.check_log(before, items, edit.node_id, path)
        number = self.model.restore(edit, path, items)
        self.counts["restores"] += 1
        self.counts["restored nodes"] += number
        self.counts["jobs"] += result.move is not None
        self.counts["restored elsewhere"] += edit.to_root or len(edit.names or ()) > 1 or bool(edit.path)

    def check_log(self, before: Sequence[Item], after: Sequence[Item], node_id: str, path: Path) -> None:
        """Fail unless the log has one more entry, that of a root in the log of the hierarchy as well."""
        known = {(item["pk"], item["sk"]) for item in before}
        new: list[Any] = [
            item for item in after if str(item["sk"]).startswith("!0") and (item["pk"], item["sk"]) not in known
        ]
        entries = [(item["pk"], entry[0], entry[2]) for item in new for entry in item["changes"]]
        assert {one[1:] for one in entries} == {("RESTORED", node_id)}
        assert len({one[0] for one in entries}) == len(entries) == 1 + (len(path) == 1)


def by_key(items: Sequence[Item]) -> dict[Any, Item]:
    return {(item["pk"], item["sk"]): item for item in items}


def bare(node_id: str) -> str:
    return node_id.removeprefix("category:")


def faults_of(error: Any) -> set[Refusal]:
    """The codes and fields of all faults of an error."""
    found: list[Any] = [*error.errors] if isinstance(error, Faults) else [error]
    return {(one.code, ".".join(one.field) if isinstance(one, Fault) else "") for one in found}


def brief(edit: Any) -> str:
    """An edit in a line, for the message of a failure."""
    if isinstance(edit, EditMany):
        return f"[{', '.join(map(brief, edit.edits))}]"
    names = ("names", "to_root", "path", "target", "position", "level", "values", "node_id", "expected", "policy")
    given = ", ".join(f"{one}={value}" for one in names if (value := getattr(edit, one, None)) is not None)
    return f"{type(edit).__name__}({given})"


@pytest.mark.both_stores
async def test_restores_and_refusals_are_those_of_a_model(store_url: str) -> None:
    counts, kind = Counter[str](), store_url.partition(":")[0]
    for seed in range(examples(*HISTORIES[kind])):
        url = "sqlite://:memory:" if kind == "sqlite" else store_url.replace("clade", f"clade-{seed}", 1)
        async with open_store(url) as store:
            await store.create()
            history = History(store, Random(f"{kind} {seed}"), counts)  # noqa: S311
            if seed % 2:
                store.max_commit_changes, store.max_changes = 34, 34
            try:
                await history.run(STEPS[kind])
            except BaseException as error:
                error.add_note(f"history {seed}, which ends with:\n" + "\n".join(history.log[-12:]))
                raise
    few = {"restores", "restored elsewhere", "disturbed", "refused: NOT_FOUND", "refused: ALREADY_EXISTS"}
    assert kind == "dynamodb" or counts.keys() >= few, counts


# -- deletions by imports ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [None, 34])
async def test_of_two_nodes_of_one_place_that_an_import_prunes_one_is_restored(most: int | None) -> None:
    """Between two transactions of the import somebody else creates nodes where it has just removed some."""
    rows = [("r", "CATEGORY"), ("r/a", "CATEGORY"), *[(f"r/a/{n:02}", "CATEGORY") for n in range(40)]]
    async with open_store("sqlite://:memory:") as store:
        await store.create()
        await load(store, wanted_of(rows, CODED), LoadResult())
        store.max_changes = 50

        async def create() -> None:
            for n in range(40):
                with suppress(CladeError):
                    await Writer(store).write(Create(CODED, ("r", "a", f"{n:02}"), "CATEGORY", "new", {}), ReadUsage())

        disturbed: Any = Interrupted(store, "commit", before=once(2, create))
        await load(disturbed, wanted_of(rows[:1], CODED), LoadResult(), prune=True)
        lost = lost_of(await invariants.all_items(store))
        top = next(one for one in lost.values() if one.node.path == ("r", "a"))
        assert {one.deletion for one in lost.values()} == {top.deletion}
        assert len(lost) > len(rows) - 1
        store.max_commit_changes = most
        writer = Writer(store, SOON)
        edit = Restore(CODED, (), top.node.id, names=[Named("id", id=top.node.id)])
        result = await writer.write(edit, ReadUsage())
        await writer.move_worker.finished()
        assert (result.move is None) == (most is None)
        await invariants.check(store, HIERARCHIES)
        assert {one.path for one in nodes_of(await invariants.all_items(store)).values()} == {
            tuple(row[0].split("/")) for row in rows
        }
