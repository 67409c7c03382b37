"""A node above what its reader may see: where it lies and what it is called, and nothing else of it."""

from typing import Any, Self

from resolvers.access.grants import Visibility
from store.errors import Forbidden
from store.model.paths import format_path
from store.model.records import Record
from store.text import shorten

WITHHELD = frozenset(("id", "rank", "kids", "below", "revision", "updated_at", "changed_by", "attributes"))


class RedactedNode(Record, frozen=True, kw_only=True, dict=True):
    """A record that raises Forbidden where anything is asked of it that is withheld.

    So whatever tells a node tells no more of a stub than it may, also where nobody has thought of stubs.
    """

    @classmethod
    def of_record(cls, record: Record) -> Self:
        """What is left of a record. The withheld is not in it, so no trick brings it out."""
        return cls(
            pk=record.pk, sk=record.sk, rank="", id="", level=record.level, name=record.name, above=record.above,
            kids={}, below={}, revision=0, updated_at="", attributes={},
        )  # fmt: skip

    def __getattribute__(self, name: str) -> Any:
        if name in WITHHELD:
            path = shorten(format_path(self.path))
            raise Forbidden(f"Only what lies below {path} may be read, so of itself only its path and name are told.")
        return super().__getattribute__(name)


def shown(outcome: Record | Exception | None, sight: Visibility) -> Record | Exception | None:
    """A record as it is seen: whole, as a stub, or not at all. What is no record stays."""
    if sight is Visibility.WHOLE or not isinstance(outcome, Record):
        return outcome
    return RedactedNode.of_record(outcome) if sight is Visibility.STUB else None
