"""Bringing the nodes of a file into the table: tree by tree, in transactions, so that it can stop anywhere and go on.

For each tree its stamp is read, then its records, then the difference is written. Each transaction requires the stamp
that the one before left, so whoever else writes to the tree makes it fail: then the tree is read and compared anew.
A tree with a journaled move under way is waited for, since not all that lies in it is seen. Nodes that the file has
elsewhere than the table are moved before, or not at all (see `resettlement`)."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import cast
from uuid import uuid4

from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import Conflict
from store.metadata.change_log import (
    Event,
    LogEntry,
    log_item,
    root_log_key,
)
from store.metadata.tree_version import TreeVersion
from store.model.items import Change, Item
from store.model.keys import (
    Key,
    id_key,
    parent_sort_key,
    path_of,
)
from store.model.paths import format_path
from store.model.ranges import siblings, subtree
from store.model.ranks import is_manual, rank_after
from store.model.records import derived_id
from store.reading.active_moves import _stamp, wait_for_moves
from store.text import shorten
from store.transfer.batches import Batch, Creation, batches
from store.transfer.diff import TreeDiff, TreeMerge
from store.transfer.rows import (
    ImportPlan,
    Node,
    Rejection,
    Tree,
)

TREES_AT_ONCE = 8  # a tree's transactions follow one another, so only several trees keep a remote table busy
PAGE_ITEMS = 1000
ATTEMPTS = 20  # to write one tree while others write to it, too
EXAMPLES = 5  # paths of each kind that are told


@dataclass
class LoadResult:
    """What an import did, or would do: nodes by level, some of their paths, and the rows that were not taken."""

    added: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    removed: Counter[str] = field(default_factory=Counter)
    moved: Counter[str] = field(default_factory=Counter)  # tops of subtrees, without what came along
    unchanged: int = 0
    commits: int = 0
    rejections: list[Rejection] = field(default_factory=list)
    examples: dict[Event, list[str]] = field(default_factory=dict)

    @property
    def written(self) -> int:
        return self.added.total() + self.changed.total() + self.removed.total() + self.moved.total()

    def note(self, event: Event, level: str, pk: str, sk: str) -> None:
        kind = {Event.CREATED: self.added, Event.UPDATED: self.changed, Event.DELETED: self.removed}[event]
        kind[level] += 1
        self._show(event, _shown(pk, sk))

    def note_move(self, level: str, source: Key, target: Key) -> None:
        self.moved[level] += 1
        self._show(Event.MOVED, f"{_shown(*source)} -> {_shown(*target)}")

    def _show(self, event: Event, example: str) -> None:
        examples = self.examples.setdefault(event, [])
        if len(examples) < EXAMPLES:
            examples.append(example)


async def load(
    store: Store,
    wanted: ImportPlan,
    outcome: LoadResult,
    *,
    prune: bool = False,
    dry_run: bool = False,
    settled: Callable[[int], None] = lambda nodes: None,
) -> None:
    """Make the table hold what the file wants, and tell in `outcome`, as it goes, what was done.

    With `prune`, nodes that the file lacks below its own are removed, unless rows are so spoilt that they do not tell
    which nodes they are about. `settled` hears of every so many nodes of the file that are done with. The wanted trees
    are given up one by one, for their memory. Raises Conflict where others never stop writing to a tree.
    """
    outcome.rejections += wanted.rejections
    work = _Load(store, wanted, outcome, prune and not wanted.obscure, dry_run, settled)
    roots = iter(sorted(wanted.trees, key=lambda root: -len(wanted.trees[root].nodes)))
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(TREES_AT_ONCE):
                group.create_task(work.trees(roots))
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    outcome.rejections.sort()


class _Load:
    """An import that is running: what its trees share."""

    def __init__(
        self,
        store: Store,
        wanted: ImportPlan,
        outcome: LoadResult,
        prune: bool,
        dry_run: bool,
        settled: Callable[[int], None],
    ) -> None:
        self.store = store
        self.wanted = wanted
        self.outcome = outcome
        self.prune = prune
        self.dry_run = dry_run
        self.settled = settled
        self.reads = ReadUsage()
        self.roots: TreeVersion | None = None  # of the hierarchy, as last read or written
        self.roots_lock = asyncio.Lock()
        self._root_ranks: dict[str, str] | None = None  # made by hands, each with its tree's partition

    async def trees(self, roots: Iterator[str]) -> None:
        """One tree after another, as long as there are any."""
        for root in roots:
            tree = self.wanted.trees.pop(root)
            if tree.nodes:
                await _TreeLoad(self, f"{self.wanted.hierarchy.name}#{root}", tree).run()

    async def rank_root(self, node: Node) -> None:
        """Settle the rank of a root to be created: where another one has it already, the next that is free."""
        async with self.roots_lock:
            name = self.wanted.hierarchy.name
            if self._root_ranks is None:
                roots = await self.store.range(siblings(name), self.reads)
                ranks = {cast(str, root["rank"]): cast(str, root["pk"]) for root in roots}
                self._root_ranks = {rank: pk for rank, pk in ranks.items() if is_manual(rank)}
            own = f"{name}#{node.root}"
            node.rank = rank_after(cast(str, node.rank), [rank for rank, pk in self._root_ranks.items() if pk != own])
            if node.rank is not None:
                self._root_ranks[node.rank] = own

    async def commit(self, changes: list[Change], batch: Batch, roots: list[LogEntry]) -> None:
        """Write a transaction, with the hierarchy's stamp and log where it makes roots; those follow one another."""
        if not batch.roots:
            await self.store.commit(changes)
        else:
            async with self.roots_lock:
                stamp = self.roots or await _stamp(self.store, self.wanted.hierarchy.name, self.reads)
                self.roots = None
                raised = stamp.incremented(batch.roots, now=batch.now)
                await self.store.commit([*changes, raised, log_item(stamp, roots, batch.at, batch.now)])
                self.roots = TreeVersion.of(stamp.partition, raised.item)
        self.outcome.commits += 1
        await asyncio.sleep(0)  # SQLite never waits, so this is where others get their turn, and a Ctrl-C its hearing


class _TreeLoad:
    """The part of an import that is about one tree, whose partition is `pk`."""

    def __init__(self, load: _Load, pk: str, tree: Tree) -> None:
        self._load = load
        self._pk = pk
        self._tree = tree
        self._written = 0  # nodes of the file, in all attempts
        self._settled = 0

    async def run(self) -> None:
        for attempt in range(ATTEMPTS):
            stamp = await wait_for_moves(self._load.store, self._pk, self._load.reads)
            try:
                return await self._attempt(stamp)
            except Conflict:
                await asyncio.sleep(random.uniform(0, 0.02 * (attempt + 1)))  # noqa: S311 - no secret
        name = format_path(path_of(self._pk, "#"))
        raise Conflict(f"{name} is being written by others all the time; the same command later goes on.")

    async def _attempt(self, stamp: TreeVersion) -> None:
        """Compare the tree with its records and write what differs."""
        found = await self._difference()
        creations = await self._identified(found)
        unchanged = max(0, found.unchanged - self._written)
        self._settle(found.unchanged + len(found.rejections))
        for batch in batches(found, creations, self._pk, self._load.store.max_changes):
            if not self._load.dry_run:
                raised = stamp.incremented(batch.shape, now=batch.now)
                log = log_item(stamp, batch.entries, batch.at, batch.now)
                roots = [one._replace(sk=root_log_key(self._pk)) for one in batch.entries if one.sk == "#"]
                await self._load.commit([*batch.changes, raised, log], batch, roots)
                stamp = TreeVersion.of(self._pk, raised.item)
            self._tell(batch.entries)
        self._load.outcome.unchanged += unchanged
        self._load.outcome.rejections += found.rejections

    async def _difference(self) -> TreeDiff:
        """All records of the tree are read, but only what changes is kept."""
        merge = TreeMerge(self._load.wanted, self._tree, self._pk, prune=self._load.prune)
        span = subtree(self._pk, "#")
        while True:
            items = await self._load.store.range(span, self._load.reads, limit=PAGE_ITEMS, strong=True)
            merge.take(items)
            await asyncio.sleep(0)
            if len(items) < PAGE_ITEMS:
                return merge.finish()
            span = span.after(cast(str, items[-1]["sk"]))

    async def _identified(self, found: TreeDiff) -> list[Creation]:
        """The nodes to be created with their ids; those whose id belongs to another node are rejected."""
        creations: list[Creation] = []
        lost: dict[str, int] = {}  # the rows of rejected nodes by sort key
        coming = iter(found.created)
        while page := list(islice(coming, PAGE_ITEMS)):
            ids = [self._id_of(node) for node in page]
            items = await self._load.store.get([id_key(one) for one in ids], self._load.reads, strong=True)
            for node, node_id, item in zip(page, ids, items, strict=True):
                if node.sk == "#" and node.rank is not None:
                    await self._load.rank_root(node)
                if rejection := self._taken(node, item) or _orphaned(node, lost):
                    lost[node.sk] = node.number
                    found.rejections.append(rejection)
                else:
                    creations.append(self._creation(node, node_id, item))
            await asyncio.sleep(0)
        return creations

    def _id_of(self, node: Node) -> str:
        """The full id: the given one, or one made from the path, unless the file gives that to another node."""
        hierarchy = self._load.wanted.hierarchy.name
        return f"{hierarchy}:{self._load.wanted.id_of(node) or derived_id(hierarchy, node.path)}"

    def _taken(self, node: Node, item: Item | None) -> Rejection | None:
        """What is wrong with a given id that lies at `item`."""
        if item is None or "deleted" in item or node.id is None or self._is_at(node, item):
            return None
        reason = f"The id {node.id} belongs to {_shown(cast(str, item['tree']), cast(str, item['key']))} already"
        if (unmoved := self._load.wanted.unmoved.get(node.id)) is None:
            return Rejection(node.number, f"{reason}; an import moves it only with --moves.", moved=True)
        return Rejection(node.number, f"{reason}, and cannot be moved here: {unmoved}", moved=True)

    def _creation(self, node: Node, node_id: str, item: Item | None) -> Creation:
        """The id of a deleted node goes on with its revisions where the file names it; a made id that is or was
        another's gives way to a random one.
        """
        if item is None:
            return Creation(node, node_id)
        if "deleted" in item and node.id is not None:
            return Creation(node, node_id, cast(int, item["revision"]) + 1, {"deleted": item["deleted"]})
        if "deleted" not in item and self._is_at(node, item):  # left over by a deletion that was not Clade's
            return Creation(node, node_id, when={"tree": self._pk, "key": node.sk})
        return Creation(node, f"{self._load.wanted.hierarchy.name}:{uuid4().hex}")

    def _is_at(self, node: Node, item: Item) -> bool:
        return (item["tree"], item["key"]) == (self._pk, node.sk)

    def _settle(self, nodes: int) -> None:
        """Tell of nodes that are done with, but not twice of those that an earlier attempt told of."""
        if nodes > self._settled:
            self._load.settled(nodes - self._settled)
            self._settled = nodes

    def _tell(self, entries: list[LogEntry]) -> None:
        for entry in entries:
            self._load.outcome.note(entry.event, entry.level, self._pk, entry.sk)
        written = sum(entry.event is not Event.DELETED for entry in entries)
        self._written += written
        self._settle(self._settled + written)


def _orphaned(node: Node, lost: Mapping[str, int]) -> Rejection | None:
    if len(node.sk) == 1 or (parent := parent_sort_key(node.sk)) not in lost:
        return None
    return Rejection(node.number, f"The parent of {node} is missing, since row {lost[parent]} was rejected.")


def _shown(pk: str, sk: str) -> str:
    return shorten(format_path(path_of(pk, sk)), 200)
