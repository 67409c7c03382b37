"""Model of responses to a caller with grants: the plain model without hidden nodes."""

from collections.abc import Iterable
from typing import Any

from resolvers.access.grants import Grants, Visibility
from resolvers.planning.cursors import CursorKind
from store.model.keys import Path, first_rank, last_segment
from store.model.paths import format_path
from store.model.records import Record
from tests.model import Field, Model, Refused


def position(record: Record) -> str:
    """The position of a node among siblings some of which are hidden."""
    return first_rank(record.level, last_segment(record.pk, record.sk))


class GrantedModel(Model):
    """The visible nodes of another model."""

    def __init__(self, model: Model, tops: Iterable[Path]) -> None:
        self.hierarchy = model.hierarchy
        self.grants = Grants.of([(model.hierarchy, top) for top in tops], [])
        self.nodes = {
            path: record for path, record in model.nodes.items() if self.visibility(path) is not Visibility.HIDDEN
        }
        self.ids = {
            record.id: record for path, record in self.nodes.items() if self.visibility(path) is Visibility.FULL
        }
        self._redirect = None
        self.families = {}
        for path, record in self.nodes.items():
            self.families.setdefault(path[:-1], []).append(record)
        for parent, family in self.families.items():
            family.sort(key=(lambda record: record.rank) if self.visibility(parent) is Visibility.FULL else position)

    def visibility(self, path: Path) -> Visibility:
        return self.grants.visibility(self.hierarchy, path)

    def is_partial(self, record: Record | None) -> bool:
        """Whether the lists of a node, or of roots, show only granted nodes."""
        return self.visibility(() if record is None else record.path) is not Visibility.FULL

    def _owner(self, record: Record | None) -> str:
        return format_path(record.path) if record and self.is_partial(record) else super()._owner(record)

    def _order(self, record: Record | None, kind: str, given: dict[str, Any]) -> tuple[CursorKind, Any]:
        order, place = super()._order(record, kind, given)
        by_rank = order in (CursorKind.ROOTS, CursorKind.CHILDREN)
        return order, position if by_rank and self.is_partial(record) else place

    def _value(self, one: Field, record: Record) -> Any:
        if one.name in ("children", "descendants") and self.visibility(record.path) is Visibility.REDACTED:
            self.listing(record, one.name, {**one.arguments, "after": None, "before": None})  # refuses the rest first
            if any(isinstance(part, Field) and part.name == "totalCount" for part in one.fields):
                raise Refused("FORBIDDEN")
        return super()._value(one, record)
