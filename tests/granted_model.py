"""Model of responses to a caller with grants: the plain model of the granted subtrees, whose tops are roots."""

from collections.abc import Iterable
from typing import Any

from resolvers.access.grants import Grants
from store.model.keys import Path
from store.model.records import Record
from tests.model import Model, meets, place_order


class GrantedModel(Model):
    """The visible nodes of another model. `is_partial` is whether some may be hidden."""

    def __init__(self, model: Model, tops: Iterable[Path]) -> None:
        self.hierarchy, self.below_roots = model.hierarchy, model.below_roots
        self.grants = Grants.of([(model.hierarchy, top) for top in tops], [])
        self.nodes = {path: record for path, record in model.nodes.items() if self.sees(path)}
        self.ids = {record.id: record for record in self.nodes.values()}
        self.is_partial = not self.sees(())
        self._redirect = None
        self.families = {}
        for path, record in self.nodes.items():
            self.families.setdefault(path[:-1] if self.sees(path[:-1]) else (), []).append(record)
        for family in self.families.values():
            family.sort(key=lambda record: record.rank)
        if self.is_partial and () in self.families:
            self.families[()].sort(key=lambda record: (record.level, record.path[-1], record.path))

    def sees(self, path: Path) -> bool:
        return self.grants.may_read(self.hierarchy, path)

    def above(self, record: Record) -> list[Record]:
        paths = [record.path[:length] for length in range(1, len(record.path))]
        return [self.nodes[path] for path in paths if path in self.nodes]

    def _whole(self, record: Record | None, kind: str, given: dict[str, Any]) -> list[Record]:
        levels = self._levels(given)
        if kind == "siblings" and record is not None and not self.sees(record.path[:-1]):
            return []
        if record is None and self.is_partial and self.is_over_trees(given):
            roots = self.families.get((), [])
            deep = levels & self.below_roots
            found = [one for one in self.nodes.values() if one.level in deep or (one in roots and one.level in levels)]
            found = [one for one in found if meets(one, given.get("where", {}))]
            is_by_key = place_order(given)[0] == "KEY"
            return sorted(found, key=lambda one: (one.path[-1] if is_by_key else "", one.path))
        return super()._whole(record, kind, given)
