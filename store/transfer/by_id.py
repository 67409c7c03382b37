"""Rows by ids or by unique values: rows that name stored nodes so, whatever the paths of these are, become rows with
paths.

The ids of a page of rows are looked up together: on DynamoDB by a BatchGetItem for the id records of each hundred, and
another one for their nodes, whose levels say what the cells are. The items of values take the place of id records; of
nodes that have moved since, these are read, too. An id or a value costs two read units so. A node that is read
with its whole tree costs a quarter of one, but a file of few ids must not read a large hierarchy, nor keep the places
of all its nodes in memory; and how many rows there are is known at the end only. In memory are a page and the plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from store.engine import ReadUsage, Store
from store.errors import BadInput, shorten
from store.kinds.marker import made_of
from store.kinds.registry import KINDS
from store.kinds.unique import Holder, UniqueKind, UniqueValue
from store.metadata.history import current_key
from store.model.attributes import Attribute
from store.model.hierarchy import Hierarchy
from store.model.keys import id_key
from store.model.names import NAMES, checked_name
from store.model.paths import checked_segment, visible_key
from store.model.records import Record, checked_id
from store.reading import read_marker, tree_version
from store.transfer.diff import bare_id
from store.transfer.rows import AskedNodes, ImportPlan, NodesOf, Part, Rejection, Row, given_id


async def find_nodes(
    store: Store, hierarchy: Hierarchy, attribute: Attribute | None, names: Sequence[str], reads: ReadUsage
) -> dict[str, Record]:
    """The nodes that have these ids, or these values of a unique attribute. Raises NotIndexed where not all are known.

    What is not where the first read has it is read again once.
    """
    found, left = dict[str, Record](), {one: f"{hierarchy.name}:{one}" for one in names}  # with their full ids
    values = {one: UniqueValue.of(hierarchy.name, attribute, one) for one in names if attribute}
    for is_by_item in (True, False, True, False) if attribute else (False, False):
        if not left:
            break
        if is_by_item:
            marker = await read_marker(store, hierarchy.name)
            had_nodes = marker is not None or (await tree_version(store, hierarchy.name, reads)).number > 0
            made = made_of(hierarchy.name, marker, KINDS[UniqueKind.name], had_nodes=had_nodes)
            items = await store.get([values[one].key(hierarchy, made) for one in left], reads, strong=True)
            holders = {one: Holder.of(item) for one, item in zip(left, items, strict=True) if item is not None}
            places = {one: holder.key(hierarchy.name) for one, holder in holders.items()}
            left = {one: holder.id for one, holder in holders.items()}
        else:
            items = await store.get([id_key(full_id) for full_id in left.values()], reads, strong=True)
            places = {one: key for one, item in zip(left, items, strict=True) if (key := current_key(item))}
        items = await store.get([*places.values()], reads, strong=True)
        for one, record in [(one, Record.of(item)) for one, item in zip(places, items, strict=True) if item]:
            if record.id == left[one] and (one not in values or values[one].is_of(record)):
                found[one] = record
        left = {one: left[one] for one in places if one not in found}
    return found


@dataclass
class RowsById:
    """Adds rows to a `plan`, for the stored nodes that have their ids, or their values of a unique `attribute`; nothing
    is created.

    `nodes_of` returns the nodes of a row, and raises BadInput. Where ids `are_unique`, all rows with the same one are
    rejected.
    """

    plan: ImportPlan
    nodes_of: NodesOf
    are_unique: bool = False
    attribute: Attribute | None = None
    _reads: ReadUsage = field(default_factory=ReadUsage)

    def __post_init__(self) -> None:
        self.plan.creates = self.plan.level_ids = False  # the ids have their levels

    async def take(self, store: Store, rows: Sequence[Row | Rejection]) -> None:
        """Add a page of rows; those with other ids are rejected. Raises NotIndexed where not all values are known."""
        asked: list[tuple[int, AskedNodes | Rejection]] = []
        for row in rows:
            try:
                asked.append((row.number, row if isinstance(row, Rejection) else self.nodes_of(row)))
            except BadInput as error:
                asked.append((row.number, Rejection(row.number, str(error))))
        ids = dict.fromkeys(node_id for _, nodes in asked if not isinstance(nodes, Rejection) for node_id, _ in nodes)
        found = await find_nodes(store, self.plan.hierarchy, self.attribute, [*ids], self._reads)
        for number, nodes in asked:
            if nodes:
                self.plan.take(nodes if isinstance(nodes, Rejection) else self._row(number, nodes, found))
            else:
                self.plan.rows += 1

    def _row(self, number: int, nodes: AskedNodes, found: Mapping[str, Record]) -> Row | Rejection:
        """The row of its nodes with their paths."""
        rows, name = list[Row](), self.attribute.name if self.attribute else "id"
        for asked, row_of in nodes:
            if (record := found.get(asked)) is None:
                end = "." if self.attribute else "; import it with its path first."
                return Rejection(number, f"No node has the {name} {shorten(asked)}{end}")
            if self.are_unique and (repeated := self._repeated(number, f"{name} {shorten(asked)}", record)):
                return repeated
            try:
                row = row_of(record)
            except BadInput as error:
                row = Rejection(number, str(error))
            if isinstance(row, Rejection):
                self.plan.rejected_ids.setdefault(bare_id(record), number)
                return row
            rows.append(row)
        first, *others = rows
        return first._replace(others=others)

    def _repeated(self, number: int, name: str, record: Record) -> Rejection | None:
        """The rejection of a row whose node an earlier one has, which is taken out of the plan; None for the first."""
        plan, tree, node_id = self.plan, self.plan.trees.use(record.pk), bare_id(record)
        if not (first := plan.ids.get(node_id) or plan.rejected_ids.get(node_id)):
            return None
        if tree.nodes.pop(record.sk, None) is not None:
            plan.nodes -= 1
            plan.rejections.append(Rejection(first, _twice(name, number)))
        return Rejection(number, _twice(name, first))


def _twice(name: str, other: int) -> str:
    return f"Row {other} has the {name}, too; write one row for each {name.partition(' ')[0]}."


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
                found.append((node_id, partial(_named, row.number, {language: name})))
        return found

    return nodes_of


def _named(number: int, names: Mapping[str, str], record: Record) -> Row:
    part = Part(record.level, id=bare_id(record), attributes={NAMES: names}, undefined={})
    return Row(number, record.path, [part], is_exact=True)
