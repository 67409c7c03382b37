"""Redacted node: a node above the caller's grants, of which only path, level and names may be read."""

from collections.abc import Mapping
from typing import Any, Self

from resolvers.access.grants import Visibility
from store.errors import Forbidden, shorten
from store.model.names import NAMES, names_of
from store.model.paths import format_path
from store.model.records import Record

WITHHELD = frozenset(("id", "rank", "kids", "below", "revision", "updated_at", "changed_by", "attributes"))


class RedactedNode(Record, frozen=True, kw_only=True, dict=True):
    """A record that raises Forbidden when a withheld attribute is read.

    So code that serializes nodes cannot disclose more than is granted, even if it does not check for redacted nodes.
    """

    @classmethod
    def of_record(cls, record: Record) -> Self:
        """The redacted form of a record. It does not contain the withheld values, so none can leak."""
        return cls(
            pk=record.pk, sk=record.sk, rank="", id="", level=record.level, name=record.name, above=record.above,
            kids={}, below={}, revision=0, updated_at="",
            attributes={NAMES: names} if (names := record.attributes.get(NAMES)) is not None else {},
        )  # fmt: skip

    @property
    def names(self) -> Mapping[str, str]:
        """Its names in other languages, which may be read as its name may."""
        return names_of(super().__getattribute__("attributes"))

    def __getattribute__(self, name: str) -> Any:
        if name in WITHHELD:
            path = shorten(format_path(self.path))
            raise Forbidden(f"Your grants lie below {path}; of this node you may read only path, level and name.")
        return super().__getattribute__(name)


def total_withheld(owner: Record) -> Forbidden:
    """The error for `totalCount` of a list of a redacted node."""
    return Forbidden(f"Your grants lie below {shorten(format_path(owner.path))}; its lists have no totalCount.")


def redacted(outcome: Record | Exception | None, visibility: Visibility) -> Record | Exception | None:
    """A record as the caller may read it: in full, redacted, or not at all. Errors and None stay."""
    if visibility is Visibility.FULL or not isinstance(outcome, Record):
        return outcome
    return RedactedNode.of_record(outcome) if visibility is Visibility.REDACTED else None
