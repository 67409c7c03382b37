"""Page: a part of a list, as the fields of a connection show it."""

from dataclasses import dataclass, field
from typing import Protocol

from resolvers.outcomes import Outcome
from resolvers.planning.relations import ConnectionArguments
from store.model.records import Record


class Cursors(Protocol):
    """The cursors of the records of a list."""

    def cursor(self, record: Record) -> str: ...

    def position(self, record: Record) -> str:
        """The place of a record in the list: a text that sorts as the list does."""
        ...


@dataclass(frozen=True)
class Page:
    """The records of a page in the list's order, whether there are others, and `totalCount` if it was selected, or the
    error with which its read failed.

    `cursors` is None only for an empty page.
    """

    records: list[Record]
    has_next: bool = False
    has_previous: bool = False
    total: Outcome[int] | None = None
    cursors: Cursors | None = None
    json_fields: dict[int, tuple[bytes, int]] = field(default_factory=dict, compare=False)
    """A cache of the page's fields as JSON, by numbers that their writer chooses."""

    def cursor(self, record: Record) -> str:
        assert self.cursors is not None  # only an empty page has none  # noqa: S101
        return self.cursors.cursor(record)


def page_of(records: list[Record], window: ConnectionArguments, total: Outcome[int] | None, cursors: Cursors) -> Page:
    """The page of records that were read in the window's direction, one more than it shows where there is a next."""
    more = window.size is not None and len(records) > window.size
    shown = records[: window.size]
    if window.last is not None:
        return Page(shown[::-1], window.before is not None, more or window.after is not None, total, cursors)
    return Page(shown, more or window.before is not None, window.after is not None, total, cursors)
