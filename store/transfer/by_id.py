"""Rows by ids: rows that name stored nodes by their ids, whatever the paths of these are, become rows with paths.

The ids of a page of rows are looked up together: on DynamoDB by a BatchGetItem for the id records of each hundred, and
another one for their nodes, whose levels say what the cells are. An id costs two read units so. A node that is read
with its whole tree costs a quarter of one, but a file of few ids must not read a large hierarchy, nor keep the places
of all its nodes in memory; and how many rows there are is known at the end only. In memory are a page and the plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from store.engine import ReadUsage, Store
from store.errors import BadInput
from store.metadata.history import current_key
from store.model.keys import Key, Path, id_key
from store.model.names import NAMES, checked_name
from store.model.paths import checked_segment, visible_key
from store.model.records import Record, checked_id
from store.transfer.diff import bare_id
from store.transfer.rows import AskedNodes, ImportPlan, NodesOf, Part, Rejection, Row, given_id


@dataclass
class RowsById:
    """Adds rows to a `plan`, for the stored nodes that have their ids; nothing is created.

    `nodes_of` returns the nodes of a row, and raises BadInput. Where ids `are_unique`, all rows with the same id are
    rejected.
    """

    plan: ImportPlan
    nodes_of: NodesOf
    are_unique: bool = False
    _reads: ReadUsage = field(default_factory=ReadUsage)

    def __post_init__(self) -> None:
        self.plan.creates = self.plan.level_ids = False  # the ids have their levels

    async def take(self, store: Store, rows: Sequence[Row | Rejection]) -> None:
        """Add a page of rows; those with other ids are rejected."""
        asked: list[tuple[int, AskedNodes | Rejection]] = []
        for row in rows:
            try:
                asked.append((row.number, row if isinstance(row, Rejection) else self.nodes_of(row)))
            except BadInput as error:
                asked.append((row.number, Rejection(row.number, str(error))))
        ids = dict.fromkeys(node_id for _, nodes in asked if not isinstance(nodes, Rejection) for node_id, _ in nodes)
        found = await self._find(store, [*ids])
        for number, nodes in asked:
            if nodes:
                self.plan.take(nodes if isinstance(nodes, Rejection) else self._row(number, nodes, found))
            else:
                self.plan.rows += 1

    async def _find(self, store: Store, ids: Sequence[str], *, is_repeated: bool = False) -> dict[str, Record]:
        """The nodes that have these ids."""
        keys = [id_key(f"{self.plan.hierarchy.name}:{one}") for one in ids]
        items = await store.get(keys, self._reads, strong=True)
        places = {one: key for one, item in zip(ids, items, strict=True) if (key := current_key(item))}
        nodes = await store.get([*places.values()], self._reads, strong=True)
        records = {one: Record.of(item) for one, item in zip(places, nodes, strict=True) if item is not None}
        found = {one: record for one, record in records.items() if bare_id(record) == one}
        moved = [one for one in places if one not in found]  # between the two reads
        return found | await self._find(store, moved, is_repeated=True) if moved and not is_repeated else found

    def _row(self, number: int, nodes: AskedNodes, found: Mapping[str, Record]) -> Row | Rejection:
        """The row of its nodes with their paths."""
        rows: list[Row] = []
        for node_id, row_at in nodes:
            if (record := found.get(node_id)) is None:
                return Rejection(number, f"No node has the id {node_id}; import it with its path first.")
            if self.are_unique and (repeated := self._repeated(number, node_id, record.key)):
                return repeated
            try:
                row = row_at(record.path, record.level)
            except BadInput as error:
                row = Rejection(number, str(error))
            if isinstance(row, Rejection):
                self.plan.rejected_ids.setdefault(node_id, number)
                return row
            rows.append(row)
        first, *others = rows
        return first._replace(others=others)

    def _repeated(self, number: int, node_id: str, key: Key) -> Rejection | None:
        """The rejection of a row whose id a former one has, which is taken out of the plan; None for the first one."""
        plan, tree = self.plan, self.plan.trees.use(key.pk)
        if not (first := plan.ids.get(node_id) or plan.rejected_ids.get(node_id)):
            return None
        if tree.nodes.pop(key.sk, None) is not None:
            plan.nodes -= 1
            plan.rejections.append(Rejection(first, _twice(node_id, number)))
        return Rejection(number, _twice(node_id, first))


def _twice(node_id: str, other: int) -> str:
    return f"Row {other} has the id {node_id}, too; write one row for each id."


def names_in(language: str, *, level_ids: bool) -> NodesOf:
    """The nodes of rows of a tree, of which only the names matter, in a language. A row without an id is rejected.

    A name is the key where the file has no names; a node whose cell of names is empty, or a former version, has none.
    """

    def nodes_of(row: Row) -> AskedNodes:
        if not any(part.id for part in row.parts):
            raise BadInput("No node of the row has an id.")
        found: list[tuple[str, partial[Row]]] = []
        for key, part in zip(reversed(row.path), reversed(row.parts), strict=False) if row.version is None else ():
            if part.id and (part.name or "name" not in part.columns):
                name = checked_name(part.name) or visible_key(checked_segment(key))
                node_id = checked_id(given_id(part, of_level=level_ids))
                found.append((node_id, partial(_named, row.number, node_id, {language: name})))
        return found

    return nodes_of


def _named(number: int, node_id: str, names: Mapping[str, str], path: Path, level: str) -> Row:
    return Row(number, path, [Part(level, id=node_id, attributes={NAMES: names}, undefined={})], is_exact=True)
