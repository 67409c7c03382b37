"""Removing a node: alone, with all below it, or so that its children take its place."""

from dataclasses import dataclass
from enum import Enum

from msgspec.structs import replace

from store.draft import Draft, Moment
from store.edits import existing, touched
from store.errors import NotEmpty
from store.hierarchy import Hierarchy
from store.keys import Path, ancestor_keys, format_path, node_key, shorten
from store.moves import move_in
from store.reader import Reader
from store.records import Record


class Policy(Enum):
    """What becomes of a node's children when it is deleted."""

    REFUSE = "refuse"
    CASCADE = "cascade"
    REPARENT = "reparent"


@dataclass(frozen=True)
class Delete:
    """The end of a node. Its last state and its history stay with its id."""

    hierarchy: Hierarchy
    path: Path
    policy: Policy
    expected: int | None = None

    def partitions(self) -> set[str]:
        return touched(self.hierarchy.name, self.path)

    async def draft(self, reader: Reader, moment: Moment) -> Draft:
        place = node_key(self.hierarchy.name, self.path)
        seen = await reader.seen(self.partitions(), [place, *ancestor_keys(place)])
        record = existing(seen, self.hierarchy, self.path, self.expected)
        if self.policy is Policy.REFUSE and (children := sum(record.kids.values())):
            raise NotEmpty(
                f"{shorten(format_path(self.path))} has {children:,} children; delete them with it (CASCADE) "
                "or let them take its place (REPARENT)."
            )
        draft = Draft(seen, moment, record)
        records = await reader.subtree(record)
        if self.policy is Policy.REPARENT:
            await self._reparent(draft, reader, records)
            records = records[:1]
        draft.remove(records)
        draft.record = replace(record, kids={}, below={})
        return draft

    async def _reparent(self, draft: Draft, reader: Reader, records: list[Record]) -> None:
        """Move each child with all below it to where the node lies."""
        record = records[0]
        families: dict[str, list[Record]] = {}
        for one in records[1:]:
            families.setdefault(one.sk[: one.sk.index("#", len(record.sk)) + 1], []).append(one)
        for family in families.values():
            target = (*self.path[:-1], family[0].path[-1])
            await move_in(draft, reader, self.hierarchy, family, target, leaving=self.path)
