"""History: the revisions of a node, newest first, one revision by its number, and the last one of a deleted node."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from resolvers.access.grants import may_read
from resolvers.outcomes import Outcome, gather_outcomes, is_error, outcome_of
from resolvers.planning.cursors import CursorKind, decode_number, encode_cursor
from resolvers.planning.page import Page, page_of
from resolvers.planning.relations import ConnectionArguments
from resolvers.session.request import Request
from store.errors import CladeError
from store.metadata.history import deleted_record, former_key, revisions, tombstone, with_revision
from store.model.items import Item
from store.model.keys import Key, id_key, revision_key
from store.model.records import Record

BY_KEYS = 10  # former revisions of each of several nodes: a key is a read unit, a Query of small items as well


@dataclass(frozen=True)
class RevisionCursors:
    """The cursors of a node's revisions."""

    node_id: str

    def cursor(self, record: Record) -> str:
        return encode_cursor(CursorKind.HISTORY, self.node_id, self.position(record))

    def position(self, record: Record) -> str:
        return str(record.revision)


@dataclass(frozen=True)
class DeletedNode:
    """The last state of a deleted node, at its last path; when it was deleted, and by whom."""

    record: Record
    at: str
    by: str | None


@dataclass(frozen=True)
class HistoryRequest:
    """A page of the revisions of a node, newest first; without `nodes` its records are not read."""

    record: Record
    window: ConnectionArguments
    nodes: bool

    def numbers(self) -> range:
        """The numbers of the revisions between the cursors. Raises BadCursor."""
        below, above = [
            None if cursor is None else decode_number(cursor, CursorKind.HISTORY, self.record.id)
            for cursor in (self.window.after, self.window.before)
        ]
        newest = self.record.revision
        return range(1 if above is None else above + 1, newest + 1 if below is None else min(below, newest + 1))

    @property
    def is_backwards(self) -> bool:
        """Whether the oldest are read first."""
        return self.window.last is not None

    def former(self, numbers: range, *, all_of_them: bool) -> tuple[range, int | None]:
        """The numbers of former revisions to read, and how many at most; the current one is in the record."""
        if all_of_them:
            return range(1, self.record.revision), None
        former = range(numbers.start, min(numbers.stop, self.record.revision))
        if not self.nodes:
            return range(0), None
        limit = self.window.limit
        is_first = self.record.revision in numbers and not self.is_backwards
        return (range(0), None) if limit is not None and limit <= is_first else (former, limit and limit - is_first)

    def page(self, request: Request, numbers: range, items: Sequence[Item], *, are_all: bool) -> Page:
        """The page, made of the former revisions that were read in its direction."""
        visible = [item for item in items if _is_visible(request, item)]
        total = len(visible) + 1 if are_all else self.record.revision
        found: list[Record] = []
        if self.nodes:
            if self.record.revision in numbers and not self.is_backwards:
                found.append(self.record)
            former = [with_revision(self.record, item) for item in visible]
            found += [one for one in former if one.revision in numbers]
            if self.record.revision in numbers and self.is_backwards:
                found.append(self.record)
        found = found[: self.window.limit]
        request.budget.spend_nodes(len(found[: self.window.size]))
        return page_of(found, self.window, total, RevisionCursors(self.record.id))


async def read_histories(request: Request, asked: Sequence[HistoryRequest]) -> list[Outcome[Page]]:
    """The pages of the histories of nodes, each with its own error.

    | nodes, pages | table | requests |
    | --- | --- | --- |
    | one, or more than BY_KEYS former revisions of each | `pk = "id#<id>" AND sk BETWEEN …` | one a node, together |
    | several, with few former revisions of each | keys `("id#<id>", "v<number>")` | one for each 100 keys |

    For callers with grants, revisions at hidden paths are left out, so all revisions of a node have to be read.
    """
    are_all = request.grants is not None
    plans: dict[int, tuple[range, range, int | None]] = {}
    outcomes: dict[int, Any] = {}
    for index, one in enumerate(asked):
        try:
            numbers = one.numbers()
            plans[index] = numbers, *one.former(numbers, all_of_them=are_all)
        except CladeError as error:
            outcomes[index] = error.bare()
    by_keys = {
        index: [revision_key(asked[index].record.id, number) for number in _first(former, limit, asked[index])]
        for index, (_, former, limit) in plans.items()
        if former and len(asked) > 1 and not are_all and limit is not None and limit <= BY_KEYS
    }
    items = await request.state.items(chain.from_iterable(by_keys.values()), current=True) if by_keys else {}
    for index, keys in by_keys.items():
        found = [items[key] for key in keys]
        if None not in found:  # else revisions are missing, so that there are others before these
            outcomes[index] = next(filter(is_error, found), found)
    rest = [index for index, (_, former, _) in plans.items() if index not in outcomes and former]
    queries = [_query(request, asked[index], plans[index][1], plans[index][2]) for index in rest]
    outcomes |= dict(zip(rest, await gather_outcomes(queries), strict=True))
    return [
        _page_or_error(request, one, plans, index, outcomes.get(index, []), are_all=are_all)
        for index, one in enumerate(asked)
    ]


def _first(former: range, limit: int | None, asked: HistoryRequest) -> list[int]:
    """The numbers of the revisions that are read first."""
    return list(former if asked.is_backwards else former[::-1])[:limit]


async def _query(request: Request, asked: HistoryRequest, former: range, limit: int | None) -> list[Item]:
    span = revisions(asked.record.id, former.stop, former.start)
    return await request.state.items_in(span, limit=limit, reverse=not asked.is_backwards)


def _page_or_error(
    request: Request, asked: HistoryRequest, plans: Mapping[int, Any], index: int, outcome: Any, *, are_all: bool
) -> Outcome[Page]:
    if is_error(outcome):
        return outcome
    return outcome_of(partial(asked.page, are_all=are_all), request, plans[index][0], outcome)


async def read_revisions(request: Request, asked: Sequence[tuple[Record, int]]) -> list[Outcome[Record | None]]:
    """The states of nodes at revisions, None where there is none: one BatchGetItem for each 100."""
    request.budget.spend_nodes(len(asked), "The revisions that are looked up")
    keys = [revision_key(record.id, number) for record, number in asked if 0 < number < record.revision]
    items = await request.state.items(keys, current=True) if keys else {}
    return [outcome_of(_revision, request, record, number, items) for record, number in asked]


def _revision(request: Request, record: Record, number: int, items: Mapping[Key, Any]) -> Outcome[Record | None]:
    if number == record.revision:
        return record
    version = items.get(revision_key(record.id, number)) if 0 < number < record.revision else None
    if version is None or is_error(version):
        return version
    return with_revision(record, version) if _is_visible(request, version) else None


async def find_deleted(request: Request, node_id: str) -> DeletedNode | None:
    """The deleted node of an id, None for an unknown id and a node that exists."""
    request.budget.spend_nodes(1)
    item = await request.state.item(id_key(node_id))
    if item is None or (gone := tombstone(item)) is None or not _is_visible(request, item):
        return None
    version = await request.state.item(revision_key(node_id, gone.revision))
    return None if version is None else DeletedNode(deleted_record(gone, version), gone.deleted, gone.deleted_by)


def _is_visible(request: Request, item: Item) -> bool:
    """Whether the caller may read the path of a former state, or of a deleted node."""
    return may_read(request.grants, former_key(item))
