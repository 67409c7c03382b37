"""Revisions: those of a node from the newest back to the first, one of them, and the last one of a deleted node."""

from dataclasses import dataclass
from typing import Any, cast

from resolvers.access.grants import Visibility
from resolvers.pages import Page, paged
from resolvers.planning.connection_arguments import ConnectionArguments
from resolvers.planning.cursors import CursorKind, decode_number, encode_cursor
from resolvers.session.request import Request
from store.metadata.history import deleted_record, revisions, with_revision
from store.model.items import Item
from store.model.keys import (
    hierarchy_of,
    id_key,
    path_of,
    revision_key,
)
from store.model.records import Record


@dataclass(frozen=True)
class States:
    """The list of a node's states, the newest first."""

    node_id: str

    def cursor(self, record: Record) -> str:
        return encode_cursor(CursorKind.HISTORY, self.node_id, str(record.revision))

    def revision(self, cursor: str) -> int:
        return decode_number(cursor, CursorKind.HISTORY, self.node_id)


@dataclass(frozen=True)
class Deleted:
    """A node that is no more, as it was at last, where it lay; when it was deleted, and by whom."""

    record: Record
    at: str
    by: str | None


async def history(request: Request, record: Record, window: ConnectionArguments, *, nodes: bool) -> Page:
    """The states of a node from this one back to the first, by one query; this one costs none.

    What a node was while it lay where the caller may not look is left out, which takes reading all of its states.
    """
    states = States(record.id)
    newest = record.revision + 1 if window.after is None else states.revision(window.after)
    found: list[Record] = [record] if nodes and newest > record.revision else []
    limit = None if window.limit is None else window.limit - len(found)
    total = record.revision
    if request.grants is not None:
        items = await request.items(revisions(record.id, record.revision), reverse=True)
        seen = [one for one in items if _is_seen(request, one)]
        total = len(seen) + 1
        found += [with_revision(record, one) for one in seen if nodes and cast(int, one["revision"]) < newest]
    elif nodes and newest > 1 and (limit is None or limit > 0):
        span = revisions(record.id, min(newest, record.revision))
        found += [with_revision(record, item) for item in await request.items(span, limit=limit, reverse=True)]
    request.spend(len(found[: window.size]))
    return paged(found, window, total, states)


async def at_revision(request: Request, record: Record, revision: int) -> Record | None:
    """The state of a node that had this number, None where there is none."""
    request.spend(1, "The revisions that are looked up")
    if revision == record.revision:
        return record
    if not 0 < revision < record.revision:
        return None
    key = revision_key(record.id, revision)
    version = (await request.get([key], now=True))[key]
    return with_revision(record, version) if version is not None and _is_seen(request, version) else None


def _is_seen(request: Request, item: Item) -> bool:
    """Whether the caller may see where a former state, or a deleted node, lay."""
    place = cast(dict[str, Any], item)
    path = path_of(place["tree"], place["key"])
    grants = request.grants
    return grants is None or grants.sight(hierarchy_of(place["tree"]), path) is Visibility.WHOLE


async def deleted(request: Request, node_id: str) -> Deleted | None:
    """The deleted node of an id, None where there was none or it lives."""
    request.spend(1)
    place = id_key(node_id)
    tombstone = (await request.get([place], now=True))[place]
    if tombstone is None or "deleted" not in tombstone or not _is_seen(request, tombstone):
        return None
    key = revision_key(node_id, cast(int, tombstone["revision"]))
    version = (await request.get([key], now=True))[key]
    if version is None:
        return None
    by = cast(str | None, tombstone.get("deleted_by"))
    return Deleted(deleted_record(tombstone, version), cast(str, tombstone["deleted"]), by)
