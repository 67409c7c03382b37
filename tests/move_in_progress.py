"""Move in progress: a tree at every moment of a large move that a reader can see.

It is written here as the records tell it, so that a test can put the commit between any two reads.
"""

from typing import Any

from store.engine import Store
from store.metadata.moves import MoveState
from store.metadata.tree_version import ActiveMoveRef, Event, LogEntry, TreeVersion, log_item
from store.model.keys import Path, ancestor_keys, node_key, path_of
from store.model.paths import format_path
from store.model.records import Delete, Item, Put, Record
from tests.model import AT, Model
from tests.stores import READS, Interrupted, once
from tests.systems.asking import write

MOVE = "000000000001"


class MoveInProgress:
    """The move of a subtree to another path, None for a cascade."""

    def __init__(self, before: Model, source: Path, target: Path | None) -> None:
        self.before = before
        self.after = moved(before, source, target)
        to = None if target is None else node_key(before.hierarchy, target)
        self.running = ActiveMoveRef(MOVE, node_key(before.hierarchy, source), to)

    def items(self) -> list[Item]:
        """The table after the copy: both ends exist."""
        copies = [record.item() for record in self.after.nodes.values() if self._is_copy(record)]
        return [*self.before.items(), *copies, *self.side(committed=False)]

    def side(self, *, committed: bool) -> list[Item]:
        """The items that the commit changes, before or after it."""
        model = self.after if committed else self.before
        lines = {key for end in self.running.ends for key in ancestor_keys(end)}
        above = [record.item() for record in model.nodes.values() if record.key in lines]
        shapes = {TreeVersion.of(str(item["pk"]), item).partition: item for item in model.items() if item["sk"] == "!"}
        stamps: list[Item] = []
        for partition in self.running.partitions:
            shape: Any = shapes.get(partition, {"shape": {}})["shape"]
            stamps.append(TreeVersion(partition, 7 + committed).incremented(shape, moves=(self.running,)).item)
        return [*above, *stamps, self._move(MoveState.SWEEPING if committed else MoveState.COPYING)]

    def log(self) -> list[Put]:
        """The log items of the commit, one of each tree."""
        source, target = self.running.ends[0], self.running.ends[-1]
        paths = format_path(path_of(*source)), format_path(path_of(*target))
        return [
            log_item(TreeVersion(end.pk, 8), [LogEntry(Event.MOVED, end.sk, "ground:n0", "AREA", 1, *paths)], AT, 4e9)
            for end in {end.pk: end for end in self.running.ends}.values()
        ]

    def _move(self, state: MoveState) -> Item:
        source, target = self.running.source, self.running.target
        item: Item = {
            "pk": "moves", "sk": MOVE, "from_pk": source.pk, "from_sk": source.sk, "top_id": "ground:n0",
            "state": state.value, "nodes": 1, "written": 1, "epoch": 1, "lease": 0, "started_at": AT,
        }  # fmt: skip
        return item if target is None else item | {"to_pk": target.pk, "to_sk": target.sk}

    def _is_copy(self, record: Record) -> bool:
        return self.running.target is not None and self.running.target.holds(record.key)


def moved(model: Model, source: Path, target: Path | None) -> Model:
    """A model with a subtree at another path, or without it."""
    places = {path: path for path in model.nodes}
    for path in model.nodes:
        if path[: len(source)] == source:
            del places[path]
            if target is not None:
                places[path] = target + path[len(source) :]
    return Model(
        model.hierarchy,
        {place: model.nodes[path].level for path, place in places.items()},
        {place: model.nodes[path].rank for path, place in places.items()},
        ids={place: model.nodes[path].id for path, place in places.items()},
    )


class FlippingStore(Interrupted):
    """Store that commits the move before one of its reads, by a commit like that of another process."""

    def __init__(self, store: Store, moving: MoveInProgress, reads_before: int) -> None:
        super().__init__(store, *READS, before=once(reads_before + 1, self._flip))
        self._moving, self._reads_before = moving, reads_before

    @property
    def has_committed(self) -> bool:
        return self.calls > self._reads_before

    async def _flip(self) -> None:
        await self._store.commit([*map(Put, self._moving.side(committed=True)), *self._moving.log()])


async def plant(store: Store, moving: MoveInProgress) -> None:
    """Write the table of a move that has not committed."""
    await store.create()
    items = {(item["pk"], item["sk"]): item for item in moving.items()}
    await write(store, list(items.values()))


async def flip_back(store: Store, moving: MoveInProgress) -> None:
    logged = [Delete(put.key) for put in moving.log()]
    await store.commit([*map(Put, moving.side(committed=False)), *logged])
