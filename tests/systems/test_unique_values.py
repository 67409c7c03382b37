"""Unique values: random histories of edits, jobs that are killed, and writers at once, each outcome that of a model."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations
from random import Random
from typing import Any, cast

import pytest

from store.connect import open_store
from store.engine import ReadUsage, Store
from store.errors import CladeError
from store.kinds.unique import UniqueValue
from store.model.keys import Path
from store.model.records import Record
from store.reading import recent_moves
from store.writing.create_update import Create, Update
from store.writing.edit import Edit, Named
from store.writing.edit_many import EditMany
from store.writing.edit_request import EditOptions
from store.writing.move_delete import Delete, Move, Policy
from store.writing.move_worker import MoveWorker
from store.writing.writer import Writer
from tests import invariants
from tests.selection import examples
from tests.store.writing import journaled
from tests.store.writing.journaled import SOON
from tests.stores import Interrupted, once
from tests.systems.unique_model import (
    CODE,
    NAMES,
    SHOP,
    Busy,
    Model,
    Node,
    Nodes,
    Refused,
    below,
    canonical,
    fits,
    had,
    stored,
    told,
)

HISTORIES = {"sqlite": (100, 2_000), "dynamodb": (6, 100)}
LIMITS = (22, 22, 22, 60, 100)  # changes in a transaction: with the least ones two nodes are moved by a job
STEPS = 7
GROUP = 30  # requests that one transaction may hold
LONG = "m" * 520  # of which one fits below a root
KEYS = ("a", "b", "c", "d")
VALUES: dict[str, tuple[Any, ...]] = {
    "code": (None, None, "", "A", "B", "C", "5", "caf\u00e9", "cafe\u0301", "x" * 600),
    "number": (None, 5, 6, 7, 8),
}
PLANTED = f"a a/a a/a/a a/a/{LONG} a/b a/b/a b b/c b/c/a b/{LONG}".split()
Outcome = Any  # a result or an error


class Choice:
    """Random edits of the nodes of a model, most of them possible."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance

    def edit(self, nodes: Nodes, *, small: bool = False) -> Edit:
        """One edit; a `small` one moves nothing and is of one node."""
        kinds = [self.create] * 4 + [self.update] * 5 + ([] if small else [self.move] * 3 + [self.delete] * 2)
        edit = self.chance.choice(kinds if nodes else [self.create])(nodes)
        if self.chance.random() < 0.04 and not isinstance(edit, Create):
            edit = replace(edit, **self.chance.choice([{"expected": 99}, {"path": ("nowhere", "x")}]))
        elif isinstance(edit, Update | Delete) and self.chance.random() < 0.3:
            code = nodes[edit.path].values.get("code")
            if (
                code is not None
                and sum(canonical(node.values.get("code")) == canonical(code) for node in nodes.values()) == 1
            ):
                edit = replace(edit, names=[Named("node", value=UniqueValue.of(SHOP.name, CODE, code))])
        return edit

    def path(self, nodes: Nodes, level: str = "") -> Path:
        return self.chance.choice([path for path, node in nodes.items() if level in ("", node.level)] or [()])

    def place(self, nodes: Nodes, key: str | None = None) -> Path:
        """A place for a node, mostly a free one."""
        for _ in range(9):
            parent = self.path(nodes, "FOLDER") if self.chance.random() < 0.85 else ()
            path = (*parent[:3], key or (LONG if self.chance.random() < 0.08 else self.chance.choice(KEYS)))
            if fits(path) and (path not in nodes or self.chance.random() < 0.1):
                break
        return path if fits(path) else ("e",)

    def values(self, level: str) -> dict[str, Any]:
        names = NAMES[level] if self.chance.random() < 0.5 else self.chance.sample(NAMES[level], 1)
        return {name: self.chance.choice(VALUES[name]) for name in names}

    def create(self, nodes: Nodes) -> Create:
        path = self.place(nodes)
        level = "FOLDER" if len(path) < 2 or self.chance.random() < 0.4 else "ITEM"
        node_id = self.chance.choice(["i", "j", "k", "l"]) if self.chance.random() < 0.3 else None
        return Create(SHOP, path, level, "n", self.values(level), node_id)

    def update(self, nodes: Nodes) -> Update:
        path = self.path(nodes)
        return Update(SHOP, path, None, None, self.values(nodes[path].level))

    def move(self, nodes: Nodes) -> Edit:
        path = self.path(nodes)
        target = self.place(nodes, self.chance.choice([path[-1], None]))
        return Move(SHOP, path, target) if target != path else self.delete(nodes)

    def delete(self, nodes: Nodes) -> Delete:
        return Delete(SHOP, self.path(nodes), self.chance.choice(list(Policy)))

    def large(self, nodes: Nodes) -> Edit:
        """A move or deletion of a large subtree."""
        path = self.chance.choice(sorted(nodes, key=lambda one: len(below(nodes, one)))[-4:])
        targets = [self.place(nodes, self.chance.choice([path[-1], path[-1], None])) for _ in range(9)]
        targets += [("b", LONG, path[-1])] * (4 if ("b", LONG) in nodes else 0)  # where there may be no room
        free = [one for one in targets if one[: len(path)] != path and one not in nodes]
        if not free or self.chance.random() < 0.4:
            return Delete(SHOP, path, Policy.CASCADE)
        return Move(SHOP, path, self.chance.choice(free))

    def passing(self, nodes: Nodes) -> list[Edit]:
        """Several nodes pass their codes on to one another, in any order."""
        paths = [path for path, node in nodes.items() if "code" in node.values]
        some = self.chance.sample(paths, min(len(paths), self.chance.choice((2, 2, 3, 5))))
        codes = [nodes[path].values["code"] for path in some]
        return [
            Update(SHOP, one, None, None, {"code": code}) for one, code in zip(some, codes[1:] + codes[:1], strict=True)
        ]


class History:
    """A store with its model: each step is made on both and compared."""

    def __init__(self, store: Store, chance: Random, counts: Counter[str]) -> None:
        self.store, self.chance, self.counts = store, chance, counts
        self.choice, self.model, self.log = Choice(chance), Model(), list[str]()

    async def run(self, steps: int) -> None:
        await self.plant()
        kinds = [self.single] * 6 + [self.batch] * 4 + [self.pass_on] + [self.at_once] * 2 + [self.between] * 2
        kinds += [self.group] + [self.killed] * 4
        for _ in range(steps):
            kind = self.chance.choice(kinds)
            if self.model.jobs and self.chance.random() < 0.3:
                kind = partial(self.resume, self.chance.choice([0, 1, 2, 3, 5, 99]))
            await kind()
            await self.check()
        while self.model.jobs:
            await self.resume(99)
            await self.check()

    async def plant(self) -> None:
        """Two trees, in which some values are already had."""
        own = {name: self.chance.sample([*VALUES[name], *[None] * 9], len(PLANTED)) for name in VALUES}
        own["code"] = [None if one == "cafe\u0301" else one for one in own["code"]]
        edits = list[Edit]()
        for number, path in enumerate(PLANTED):
            level = "FOLDER" if path.count("/") < 2 else "ITEM"
            values = {name: own[name][number] for name in NAMES[level]}
            edits.append(Create(SHOP, tuple(path.split("/")), level, "n", values))
        results = await Writer(self.store).write_in_order([(one, EditOptions()) for one in edits], ReadUsage())
        for edit, result in zip(edits, results, strict=True):
            self.take([edit], result)
        await self.check()
        self.store.max_commit_changes = self.chance.choice(LIMITS)

    # -- steps ---------------------------------------------------------------------------------------------------------

    async def single(self) -> None:
        """One edit, which now and then wants a value of a node that a job holds."""
        edit, nodes = self.choice.edit(self.model.nodes), {**self.model.nodes, **self.model.hidden}
        wanted = [
            one.values["code"] for path, one in nodes.items() if self.model.is_busy(path) and "code" in one.values
        ]
        if wanted and isinstance(edit, Create | Update):
            edit = replace(edit, values={**edit.values, "code": self.chance.choice(wanted)})
        await self.write(edit)

    async def batch(self) -> None:
        """Several edits, each chosen by what those before it leave."""
        edits = list[Edit]()
        for _ in range(self.chance.choice((2, 2, 3, 4, 6))):
            edits.append(self.choice.edit(self.nodes_after(edits)))
            try:
                self.model.made(edits)
            except Refused:
                if self.chance.random() < 0.9:
                    edits.pop()
        await self.write(*edits, several=True)

    def nodes_after(self, edits: Sequence[Edit]) -> Nodes:
        try:
            return self.model.made(edits)[0]
        except Refused:
            return self.model.nodes

    async def pass_on(self) -> None:
        await self.write(*self.choice.passing(self.model.nodes), several=True)

    async def write(self, *edits: Edit, several: bool = False) -> None:
        """Make edits, now and then after a dry run, which has the same faults."""
        asked = EditMany(SHOP, edits) if several else edits[0]
        if several and not edits:
            return
        before = await invariants.all_items(self.store)
        if self.chance.random() < 0.1:
            dry = await outcome(Writer(self.store).write(asked, ReadUsage(), EditOptions(dry_run=True)))
            assert await invariants.all_items(self.store) == before
            if isinstance(dry, CladeError) or several:
                self.agrees(edits, dry, single=not several)
        writer = Writer(self.store, SOON)
        result = await outcome(writer.write(asked, ReadUsage()))
        await writer.move_worker.finished()
        self.take(edits, result, single=not several)
        if isinstance(result, CladeError) and not (isinstance(edits[0], Move) and "BAD_PATH" in result.code):
            assert await invariants.all_items(self.store) == before

    async def at_once(self) -> None:
        """Two servers make edits of single nodes at once, which mostly want one value."""
        edits = [self.choice.edit(self.model.nodes, small=True) for _ in range(self.chance.choice((2, 2, 3)))]
        code = self.chance.choice(VALUES["code"])
        if self.chance.random() < 0.7:
            edits = [replace(cast(Any, one), values={**cast(Any, one).values, "code": code}) for one in edits]
        writers = Writer(self.store), Writer(self.store)
        sent = [outcome(writers[n % 2].write(one, ReadUsage())) for n, one in enumerate(edits)]
        await self.in_some_order(edits, await asyncio.gather(*sent))

    async def between(self) -> None:
        """Another server makes an edit between two calls of the first one."""
        edits, results = [self.choice.edit(self.model.nodes, small=True) for _ in range(2)], list[Outcome]()

        async def other() -> None:
            results.append(await outcome(Writer(self.store).write(edits[1], ReadUsage())))

        method, number = self.chance.choice([("commit", 1), ("get", 1), ("get", 2), ("get", 3), ("get", 4)])
        store: Any = Interrupted(self.store, method, before=once(number, other))
        results.insert(0, await outcome(Writer(store).write(edits[0], ReadUsage())))
        await self.in_some_order(edits[: len(results)], results)

    async def group(self) -> None:
        """Requests that are committed together, of which one asks for a value that another node has."""
        nodes = self.model.nodes
        paths = [path for path, node in nodes.items() if node.level == "FOLDER"]
        if not paths:
            return
        parent, number = self.chance.choice(paths), GROUP if self.chance.random() < 0.1 else 3
        taken = self.chance.choice([node.values["code"] for node in nodes.values() if "code" in node.values] or ["A"])
        codes = [f"g{n}" for n in range(number)]
        codes[self.chance.randrange(number)] = taken
        edits = [Create(SHOP, (*parent, f"g{n}"), "ITEM", "n", {"code": code}) for n, code in enumerate(codes)]
        writer = Writer(self.store)
        sent = [outcome(writer.write(one, ReadUsage())) for one in edits]
        for edit, result in zip(edits, await asyncio.gather(*sent), strict=True):
            self.take([edit], result)
        await self.write(Delete(SHOP, parent, Policy.CASCADE))  # which makes room

    async def killed(self) -> None:
        """The process dies after some commits of a large edit."""
        if not self.model.nodes:
            return
        edit, commits = self.choice.large(self.model.nodes), self.chance.choice((0, 1, 1, 2, 2, 3, 4, 5, 6, 8))
        known = {one.id for one in await recent_moves(self.store, ReadUsage())}
        writer = Writer(journaled.mortal(self.store, commits), SOON)
        result: Outcome = None
        try:
            result = await outcome(writer.write(edit, ReadUsage()))
            await ended(writer.move_worker)
        except journaled.Dies:
            self.counts["killed"] += 1
        self.log.append(f"killed after {commits} commits: {brief(edit)}")
        is_job = {one.id for one in await recent_moves(self.store, ReadUsage())} - known
        if not is_job and result is None and commits:  # it was made by one transaction, of which nobody was told
            self.model.nodes = self.model.made([edit], single=True)[0]
        elif result is not None:
            self.take([edit], result)

    async def resume(self, commits: int) -> None:
        """Another worker takes over what has not ended, and dies after some commits."""
        await journaled.lapse(self.store)
        worker = MoveWorker(journaled.mortal(self.store, commits), SOON)
        for step in (worker.resume(), ended(worker)):
            try:
                await step
            except journaled.Dies:
                self.counts["killed again"] += 1
        self.log.append(f"resumed, {commits} commits")

    # -- comparison ----------------------------------------------------------------------------------------------------

    def take(self, edits: Sequence[Edit], result: Outcome, *, single: bool = True) -> None:
        """Change the model by edits that were made; those of a job follow with it."""
        nodes = self.agrees(edits, result, single=single)
        if nodes is not None and result.move is None:
            ids = {f"new {place}": node.record.id for place, node in enumerate(result.nodes)}
            self.model.nodes = {path: replace(one, id=ids.get(one.id, one.id)) for path, one in nodes.items()}

    def agrees(self, edits: Sequence[Edit], result: Outcome, *, single: bool = True) -> Nodes | None:
        """The nodes after edits that are made, None where they are refused; fails unless the model says the same."""
        faults = told(result) if isinstance(result, CladeError) else []
        self.log.append(
            f"{', '.join(map(brief, edits))}: {faults or ('a job' if getattr(result, 'move', None) else 'made')}"
        )
        reparents = isinstance(edits[0], Delete) and edits[0].policy is Policy.REPARENT
        if "TOO_LARGE" in {code for code, *_ in faults} and (reparents or not single):
            self.counts["too large"] += 1
            return None
        try:
            nodes, expected = self.model.made(edits, single=single)
        except Busy:
            assert faults, edits
            assert "TAKEN" not in {code for code, *_ in faults}, edits
            self.counts["busy"] += 1
            return None
        except Refused as error:
            if (error.code, error.edit) not in {one[:2] for one in faults}:
                raise AssertionError(f"{edits} is no {error.code}, but {faults}") from None
            self.counts[error.code] += 1
            return None
        assert faults == expected, edits
        for code, *_ in expected:
            self.counts[f"value: {code}"] += 1
        self.counts["several made" if len(edits) > 1 and not faults else "made" if not faults else "refused"] += 1
        return None if faults else nodes

    async def in_some_order(self, edits: Sequence[Edit], results: Sequence[Outcome]) -> None:
        """Take the results of edits that were made at once: they, and what is stored, are those of some order."""
        before, reasons = self.model.nodes, list[str]()
        there = nodes_of(await invariants.all_items(self.store))
        for order in permutations(range(len(edits))):
            self.model.nodes = before
            try:
                for place in order:
                    self.take([edits[place]], results[place])
                assert self.model.nodes.items() <= there.items()
            except AssertionError as error:
                reasons.append(str(error))
            else:
                self.counts["at once"] += 1
                self.log.append(f"at once, in the order {order}")
                return
        raise AssertionError("\n".join(reasons))

    async def check(self) -> None:
        """Fail unless the table has the nodes of the model, and of each value the item of its only node."""
        model, items = self.model, await invariants.all_items(self.store)
        there = nodes_of(items)
        ran = {one.id for one in model.jobs}
        model.follow(moves := await recent_moves(self.store, ReadUsage()), there)
        self.counts.update(f"{one.state} {one.target is None}" for one in moves if one.id in ran and one.ended_at)
        stored(had(there))
        found = {(item["pk"], item["sk"]): item["id"] for item in items if item["pk"].startswith("unique/")}
        expected, hidden = stored(had(model.nodes)), stored(had(model.hidden))
        assert expected.items() <= found.items()
        assert found.items() <= (expected | hidden).items()
        if model.jobs:
            assert model.nodes.items() <= there.items()
        else:
            assert there == model.nodes
            await invariants.check(self.store, {"shop": SHOP})


def nodes_of(items: Sequence[Any]) -> Nodes:
    """The nodes of a table, hidden ones included."""
    records = [Record.of(item) for item in items if "tier" in item]
    return {record.path: Node(record.id, record.level, {**record.attributes}) for record in records}


def brief(edit: Edit) -> str:
    """An edit in a line, for the message of a failure."""
    names = ("names", "path", "target", "level", "values", "node_id", "expected", "policy")
    given = ", ".join(f"{one}={value}" for one in names if (value := getattr(edit, one, None)) is not None)
    return f"{type(edit).__name__}({given})".replace(LONG, "LONG").replace("x" * 600, "X")


async def ended(worker: MoveWorker) -> None:
    """Wait for all jobs of a worker, which may die."""
    results = await asyncio.gather(*worker._tasks.values(), return_exceptions=True)
    if any(results):
        raise journaled.Dies


async def outcome(work: Awaitable[Any]) -> Outcome:
    try:
        return await work
    except CladeError as error:
        return error


@pytest.mark.both_stores
async def test_values_and_refusals_are_those_of_a_model(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counts, kind = Counter[str](), store_url.partition(":")[0]
    for seed in range(examples(*HISTORIES[kind])):
        monkeypatch.setattr("store.writing.move_delete.MAX_CHECKED_NODES", 0 if seed % 2 else 100_000)
        url = "sqlite://:memory:" if kind == "sqlite" else store_url.replace("clade", f"clade-{seed}", 1)
        async with open_store(url) as store:
            await store.create()
            history = History(store, Random(f"{kind} {seed}"), counts)  # noqa: S311
            try:
                await history.run(STEPS)
            except BaseException as error:
                error.add_note(f"history {seed}, which ends with:\n" + "\n".join(history.log[-6:]))
                raise
    few = {"made", "several made", "value: TAKEN", "too large", "at once", "killed", "killed again", "BAD_PATH", "busy"}
    few |= {f"{state} {is_deletion}" for state, is_deletion in [("DONE", True), ("DONE", False), ("UNDONE", False)]}
    assert kind == "dynamodb" or counts.keys() >= few | {"value: CONFLICT", "CONFLICT", "MISPLACED", "NOT_EMPTY"}, (
        counts
    )
