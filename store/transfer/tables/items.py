"""Items of a foreign table as rows: their keys by a template, their attributes by name."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from store.errors import BadInput, quantity, shorten
from store.model.hierarchy import Hierarchy
from store.model.names import NAMES
from store.transfer.formats.cells import fold
from store.transfer.formats.source import REJECTED_JSON
from store.transfer.formats.table import Table, TableRow
from store.transfer.rows import NOTHING, Part, Rejection, Row, TextRows
from store.transfer.shapes.columns import LevelColumns
from store.transfer.shapes.shape import RowOptions, Shape
from store.transfer.tables.left_out import JsonItem, LeftOut
from store.transfer.tables.templates import KeyTemplate, Match

MAX_SHOWN_CHARACTERS = 500
REJECTED_ITEMS = REJECTED_JSON._replace(ending=".json")


@dataclass
class ItemReader:
    """Turns items in DynamoDB JSON into rows. Of several templates the first that matches counts.

    `columns` are attributes of items: for levels below those of the keys, for names, ids and attributes. Without any
    template they have all levels, and the keys are ids. Attributes of an item that are named like those of its level
    need no option: `by_name` are these, and `unused` counts the others.

    Items of `left_out` have no row, or with `removes` that of a node that is no more; where the items are but a part of
    the table, this is so for those that are deleted or expired. `unremoved` counts the deletions in a part that do not
    tell their node, since other items may make it, too.
    """

    hierarchy: Hierarchy
    templates: Sequence[KeyTemplate]
    keys: Sequence[str]
    columns: Sequence[LevelColumns] = ()
    left_out: LeftOut = field(default_factory=LeftOut)
    removes: bool = False
    is_part: bool = False

    def __post_init__(self) -> None:
        self._columns = {one.level: one for one in self.columns}
        self._below = [one for one in self.columns if one.key]
        self._given = {one for own in self.columns for one in (own.key, *own.values)}  # also for levels above an item's
        levels = self.hierarchy.levels.values()
        self._attributes = {level.name: {fold(name): name for name in level.attributes} for level in levels}
        self.clear()

    def clear(self) -> None:
        """Forget what was counted, before items are read again."""
        self.unused: Counter[str] = Counter()
        self.by_name: dict[str, str] = {}
        self.unremoved = 0

    def row(self, number: int, item: JsonItem, *, is_deleted: bool = False) -> Row | Rejection | None:
        """The row of an item, or of the keys of one that `is_deleted`; None for one that is left out."""
        match = self.match(item)
        is_skipped = not is_deleted and self.left_out.skips(item)
        if is_skipped or (not is_deleted and self.left_out.is_gone(item)):
            removes = self.removes or (self.is_part and not is_skipped)
            return self._removed(number, match) if match and removes else None
        if match is None:
            keys = ", ".join(f"{name} = {key_text(item.get(name)) or 'none'}" for name in self.keys)
            return Rejection(number, f"The keys {shorten(keys, 200)} match no --key.")
        if is_deleted:
            return self._removed(number, match)
        if not match.path:
            names = ", ".join(column.key for column in self._below)
            return Rejection(number, f"The item has none of the attributes of levels: {names}.")
        return Row(number, match.path, self._parts(match.levels, item), version=match.version or None)

    def match(self, item: JsonItem) -> Match | None:
        """What the keys of an item say, with the attributes of levels below; None where no template matches."""
        keys = [key_text(item.get(name)) for name in self.keys]
        matches = (one.match(*(keys if one.has_sort_key else keys[:1])) for one in self.templates if all(keys))
        found = next(filter(None, matches), None) if self.templates else Match([], [])
        for column in self._below:
            if found and (text := key_text(item.get(column.key))):
                path = column.paths.read(text)[0] if column.paths else (text,)
                found.levels.extend([column.level] * len(path))
                found.path.extend(path)
        return found

    def _removed(self, number: int, match: Match) -> Row | None:
        """The row of a node that is no more; None for a former version, which stays in the history, and where the keys
        are not the whole path.
        """
        if match.version:
            return None
        if self.is_part and self._below:
            self.unremoved += 1
            return None
        return Row(number, match.path, [], is_deleted=True) if match.path else None

    def sentences(self) -> list[str]:
        """What was not imported."""
        found = self.left_out.sentences()
        if self.unremoved:
            found.append(
                f"{quantity(self.unremoved, 'deleted item')} without a place in the keys: not removed; an import of "
                "the whole table with --prune removes their nodes."
            )
        if self.unused:
            names = ", ".join([f"{name} ({count:,})" for name, count in self.unused.most_common()])
            found.append(
                "Attributes of items without a place in their level, not imported: "
                f"{shorten(names, MAX_SHOWN_CHARACTERS)}; --attr gives them one."
            )
        return found

    def _parts(self, levels: Sequence[str], item: JsonItem) -> list[Part]:
        """The parts of a path: an attribute is a value of the last node, else of the deepest that it is given for.

        Of several nodes of one level only the deepest has values, since the attribute of an item is one value.
        """
        used: set[str] = set()
        parts: list[Part] = []
        columns = {**self._columns}
        for level in reversed(levels):
            own = columns.pop(level, None)
            parts.append(self._part(level, item, own, used, is_last=not parts) if own or not parts else Part(level))
        return parts[::-1]

    def _part(self, level: str, item: JsonItem, columns: LevelColumns | None, used: set[str], *, is_last: bool) -> Part:
        """The part of a level; the attributes of the item that it takes are added to those that are `used`."""
        columns = (columns or LevelColumns(level, "")).without(used)
        name, node_id = (key_text(item.get(column)) or None for column in (columns.name or "", columns.id or ""))
        given = {attribute: column for attribute, column in columns.attributes.items() if is_last or column in item}
        attributes = {attribute: plain(item.get(column)) for attribute, column in given.items()}
        if columns.names:
            attributes[NAMES] = {tag: key_text(item.get(column)) or None for tag, column in columns.names.items()}
        used |= {column for column in (columns.key, *columns.values) if column}
        if is_last:
            self._add_by_name(level, item, attributes, used)
        return Part(level, name, node_id, attributes or NOTHING, columns=columns.columns)

    def _add_by_name(self, level: str, item: JsonItem, attributes: dict[str, object], used: set[str]) -> None:
        for column, value in item.items():
            if column in used or column in self.keys:
                continue
            attribute = self._attributes[level].get(fold(column))
            if attribute is None or attribute in attributes:
                if column not in self._given:
                    self.unused[column] += 1
            else:
                attributes[attribute] = plain(value)
                used.add(column)
                self.by_name[column] = attribute


class Line(NamedTuple):
    """What an export says of a line beside its text: its place, for messages, and what is wrong with it."""

    place: str
    problem: str | None

    def item(self, text: str) -> tuple[str, Any]:
        """Kind and content of the line, as `item_of`."""
        if self.problem:
            raise BadInput(self.problem)
        return item_of(text)


class Items(Shape):
    """Items of an export as rows, by their reader."""

    is_table = False

    rejected = REJECTED_ITEMS

    def __init__(self, reader: ItemReader, table: Table) -> None:
        super().__init__(reader.hierarchy, table, RowOptions())
        self.reader = reader

    def read(self, rows: Iterable[TableRow] | None = None) -> TextRows:
        """The rows, each with its line; deleted former versions are left out."""
        reader = self.reader
        reader.clear()
        for number, text, line in self.table.values() if self.table.values else ():
            try:
                kind, item = line.item(text)
                row = reader.row(number, item, is_deleted=kind == "Keys")
            except BadInput as error:
                row = Rejection(number, str(error))
            if isinstance(row, Rejection):
                row = Rejection(number, line.place + row.reason)
            if row is not None:
                yield text, row


def plain(value: Any) -> object:
    """A value of DynamoDB JSON; numbers are texts, so that none loses digits, sets are lists, bytes are base64."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    ((kind, content),) = value.items()
    match kind:
        case "L":
            return [plain(one) for one in content]
        case "M":
            return {name: plain(one) for name, one in content.items()}
        case "NULL":
            return None
        case "SS" | "NS" | "BS":
            return sorted(content)
        case _:
            return content


def item_of(text: str) -> tuple[str, Any]:
    """Kind and content of a line of an export: `Item`, `NewImage` or `Keys` of what was deleted. Raises BadInput."""
    try:
        line = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadInput(f"The line is not valid JSON: {error}.") from None
    contents = [(kind, line.get(kind)) for kind in ("Item", "NewImage", "Keys")] if isinstance(line, dict) else []
    kind, content = next((one for one in contents if one[1]), ("", None))
    if isinstance(content, dict) and all(isinstance(value, dict) for value in content.values()):
        return kind, content
    raise BadInput('The line has no "Item" in DynamoDB JSON.')


def key_text(value: Any) -> str:
    """A key, which is a text or a number; nothing for any other value."""
    content = value.get("S") or value.get("N") if isinstance(value, dict) else None
    return content if isinstance(content, str) else ""
