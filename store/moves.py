"""Nodes to other places, with all below them: renames, and moves to another parent, another tree or a root's place."""

from dataclasses import dataclass

from store.aliases import alias_key
from store.draft import Draft, Moment, relocated
from store.edits import existing, levels_above, touched
from store.errors import BadPath, Misplaced
from store.hierarchy import Hierarchy
from store.keys import (
    MAX_SEGMENTS,
    MAX_SORT_KEY_BYTES,
    Path,
    ancestor_keys,
    first_rank,
    format_path,
    last_segment,
    node_key,
    shorten,
)
from store.ranks import is_made
from store.reader import Reader
from store.records import Record


@dataclass(frozen=True)
class Move:
    """A node with all below it to another path, whose last segment is its key there."""

    hierarchy: Hierarchy
    path: Path
    target: Path
    expected: int | None = None

    def partitions(self) -> set[str]:
        return touched(self.hierarchy.name, self.path, self.target)

    async def draft(self, reader: Reader, moment: Moment) -> Draft:
        place = node_key(self.hierarchy.name, self.path)
        seen = await reader.seen(self.partitions(), [place, *ancestor_keys(place)])
        top = existing(seen, self.hierarchy, self.path, self.expected)
        if self.target == self.path:
            return Draft(seen, moment, top)
        if self.target[: len(self.path)] == self.path:
            raise Misplaced(f"{shorten(format_path(self.path))} cannot be moved to below itself.")
        draft = Draft(seen, moment, top)
        await move_in(draft, reader, self.hierarchy, await reader.subtree(top), self.target)
        return draft


async def move_in(
    draft: Draft, reader: Reader, hierarchy: Hierarchy, records: list[Record], target: Path, *, leaving: Path = ()
) -> None:
    """Draft the move of a node and all below it to a path, and make it the node that the draft is about.

    The node at `leaving` is removed in the same draft. Raises a CladeError where the node may not lie there.
    """
    top, key = records[0], node_key(hierarchy.name, target)
    keys = [key, *ancestor_keys(key), alias_key(top.key), alias_key(key)]
    await reader.add(draft.seen, touched(hierarchy.name, target), keys)
    above = levels_above(draft.seen, hierarchy, target, top.level)
    own = last_segment(key.pk, key.sk)
    keeps = is_made(top.rank) and target[:-1] == top.path[:-1]
    moved = relocated(records, key, above, top.rank if keeps else first_rank(top.level, own))
    check_fit(moved)
    if draft.seen.item(key) is not None and target != leaving:
        draft.collisions.append(target)
        return
    draft.move(records, moved)
    draft.record = moved[0]


def check_fit(moved: list[Record]) -> None:
    """Raise BadPath where a node would come to lie deeper, or under longer keys, than is possible."""
    for one in moved:
        if one.depth >= MAX_SEGMENTS or len(one.sk.encode()) > MAX_SORT_KEY_BYTES:
            name = one.sk.rsplit("#", 2)[-2]
            raise BadPath(
                f'"{shorten(name)}" would lie {one.depth + 1} segments deep under a key of {len(one.sk.encode())} '
                f"bytes; at most {MAX_SEGMENTS} and {MAX_SORT_KEY_BYTES} are possible."
            )
    if (size := len(moved[0].rank.encode())) > MAX_SORT_KEY_BYTES:
        raise BadPath(f"The key and its level take {size} bytes; at most {MAX_SORT_KEY_BYTES} fit.")
