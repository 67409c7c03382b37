"""Removing a node: alone, with all below it, or so that its children take its place."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from msgspec.structs import replace

from store.draft import Draft, Moment
from store.edits import existing, touched
from store.errors import NotEmpty, TooLarge
from store.hierarchy import Hierarchy
from store.journal import begun
from store.keys import Key, Path, ancestor_keys, format_path, node_key, shorten
from store.moves import move_in
from store.quantity import quantity
from store.reader import Reader
from store.records import Record


class Policy(Enum):
    """What becomes of a node's children when it is deleted."""

    REFUSE = "refuse"
    CASCADE = "cascade"
    REPARENT = "reparent"


@dataclass(frozen=True)
class Delete:
    """The end of a node. Its last state and its history stay with its id.

    A cascade that does not fit into one transaction is only registered by the draft, and journaled.
    """

    hierarchy: Hierarchy
    path: Path
    policy: Policy
    expected: int | None = None

    def partitions(self) -> set[str]:
        return touched(self.hierarchy.name, self.path)

    def needs(self) -> list[Key]:
        place = node_key(self.hierarchy.name, self.path)
        return [place, *ancestor_keys(place)]

    async def draft(self, reader: Reader, moment: Moment) -> Draft:
        seen = await reader.seen(self.partitions(), self.needs())
        record = existing(seen, self.hierarchy, self.path, self.expected)
        if self.policy is Policy.REFUSE and (children := sum(record.kids.values())):
            raise NotEmpty(
                f"{shorten(format_path(self.path))} has {quantity(children, 'child', 'children')}; delete them with it "
                "(CASCADE) or let them take its place (REPARENT)."
            )
        draft = Draft(seen, moment, record)
        records = await reader.subtree(record, len(self.path))
        if self.policy is Policy.REPARENT:
            await self._reparent(draft, reader, record, records)
            await draft.remove([record])
        elif records is not None:
            await draft.remove(records)
        else:
            draft.begin(begun(record, None, moment.now, moment.at, moment.by))
        draft.record = replace(record, kids={}, below={})
        return draft

    async def _reparent(self, draft: Draft, reader: Reader, record: Record, records: Sequence[Record] | None) -> None:
        """Move each child with all below it to where the node lies; raises TooLarge where that is no transaction."""
        if records is None:
            raise TooLarge(
                f"{shorten(format_path(self.path))} and all below it are {1 + sum(record.below.values()):,} nodes, "
                "more than change in one transaction of DynamoDB. Move its children to where they shall be, one by "
                "one, and delete it then."
            )
        families: dict[str, list[Record]] = {}
        for one in records[1:]:
            families.setdefault(one.sk[: one.sk.index("#", len(record.sk)) + 1], []).append(one)
        for family in families.values():
            target = (*self.path[:-1], family[0].path[-1])
            await move_in(draft, reader, self.hierarchy, family, target, leaving=self.path)
