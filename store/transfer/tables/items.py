"""Items of a foreign table as rows: their keys by key templates, their attributes by name.

`CATEGORY#{category} / PRODUCT#{product}[#VARIANT#{variant}]` is a key template: a part for the partition key, and after
` / ` one for the sort key. `{product}` is the key of a level, `[…]` what may be absent. `{folder*}` before a delimiter
is any number of levels in themselves, each closed by the delimiter, so that `{folder*}/[{file}]` matches `photos/2026/`
and `photos/2026/beach.jpg`; `{category*#}` is one or more, with the delimiter between them. `{version}` is a number, 0
for the current version.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import orjson

from store.errors import BadInput
from store.model.hierarchy import Hierarchy
from store.model.names import NAMES
from store.text import shorten
from store.transfer.formats.matching import fold
from store.transfer.formats.table_rows import MAX_DEPTH, LevelColumns, flat
from store.transfer.rows import NOTHING, Part, Rejection, Row

DIVIDER = " / "
VERSION = "version"
MAX_TEMPLATE_CHARACTERS = 500
_FIELD = re.compile(r"\{(?P<level>[A-Za-z0-9_]+)(?P<many>\*)?(?P<between>[^{}\[\]]*)\}")
_EXAMPLE = "such as CATEGORY#{category} / PRODUCT#{product}[#VARIANT#{variant}]"


class Match(NamedTuple):
    """What a key is: the levels and segments of its path from the root down, and its version, None without one."""

    levels: list[str]
    path: list[str]
    version: int | None = None


class _Field(NamedTuple):
    """One level in a part: the group of its pattern, and its delimiter where it may repeat."""

    group: str
    level: str
    delimiter: str | None


@dataclass(frozen=True)
class _Part:
    """The part of a template for one key attribute."""

    pattern: re.Pattern[str]
    fields: tuple[_Field, ...]


class KeyTemplate:
    """A template for the levels of a hierarchy. Raises BadInput where it is none."""

    def __init__(self, hierarchy: Hierarchy, text: str) -> None:
        if len(text) > MAX_TEMPLATE_CHARACTERS:
            raise BadInput(f"A key template has at most {MAX_TEMPLATE_CHARACTERS} characters, not {len(text):,}.")
        parts = text.split(DIVIDER)
        if len(parts) > 2:
            raise BadInput(f'--key "{shorten(text)}" has {len(parts)} parts; a table has one or two keys, {_EXAMPLE}.')
        self.text = text
        self._parts = [_PartParser(hierarchy, part.strip()).part() for part in parts]
        if not any(field.level != VERSION for part in self._parts for field in part.fields):
            raise BadInput(f'--key "{shorten(text)}" names no level in braces, {_EXAMPLE}.')

    @property
    def has_sort_key(self) -> bool:
        """Whether it has a part for the sort key."""
        return len(self._parts) == 2

    @property
    def levels(self) -> list[str]:
        """The names of its levels, from the root down."""
        found = [field.level for part in self._parts for field in part.fields]
        return [level for level in dict.fromkeys(found) if level != VERSION]

    def match(self, *keys: str) -> Match | None:
        """What an item with these values of its keys is, None where they do not match."""
        if len(keys) != len(self._parts):
            return None
        levels: list[str] = []
        path: list[str] = []
        version: int | None = None
        for part, key in zip(self._parts, keys, strict=True):
            found = part.pattern.fullmatch(key)
            if found is None:
                return None
            for group, level, delimiter in part.fields:
                text = found[group]
                if text and level == VERSION:
                    version = int(text)
                elif text:
                    segments = [text] if delimiter is None else text.removesuffix(delimiter).split(delimiter)
                    levels += [level] * len(segments)
                    path += segments
        return Match(levels, path, version) if path else None


class _PartParser:
    """Turns the text of a part into a pattern, in which no key takes long: no field can match its own delimiter."""

    def __init__(self, hierarchy: Hierarchy, text: str) -> None:
        self._hierarchy = hierarchy
        self._text = text
        self._fields: list[_Field] = []
        self._excluded = "".join(sorted(set(_delimiters(text, hierarchy))))

    def part(self) -> _Part:
        return _Part(re.compile(self._pattern(), re.DOTALL), tuple(self._fields))

    def _pattern(self) -> str:
        pattern, depth, position = "", 0, 0
        while position < len(self._text):
            character = self._text[position]
            field = _FIELD.match(self._text, position)
            if field:
                position = field.end()
                literal = self._text[position : position + 1]
                is_closed = bool(field["many"]) and not field["between"]
                if is_closed and literal in ("", "{", "[", "]"):
                    raise self._error(f"{field[0]} has no delimiter; write {{{field['level']}*/}} or {field[0]}/")
                if self._text[position:].lstrip("[]").startswith("{"):
                    raise self._error(f"nothing stands between {field[0]} and the next level")
                pattern += self._field(field, literal)
                position += is_closed
                continue
            if character in "{}":
                raise self._error(f'a level is in braces, such as {{city}}, not "{shorten(self._text[position:], 20)}"')
            depth += (character == "[") - (character == "]")
            if depth < 0:
                raise self._error("a ] has no [")
            pattern += {"[": "(?:", "]": ")?"}.get(character, re.escape(character))
            position += 1
        if depth:
            raise self._error("a [ has no ]")
        return pattern

    def _field(self, field: re.Match[str], literal: str) -> str:
        name = field["level"]
        group = f"f{len(self._fields)}"
        if name.lower() == VERSION and name.upper() not in self._hierarchy.levels:
            self._fields.append(_Field(group, VERSION, None))
            return f"(?P<{group}>[0-9]{{1,9}})"
        level = self._hierarchy.level(name)
        if not field["many"]:
            if field["between"]:
                raise self._error(f"{field[0]} has a delimiter, which only {{{name}*}} has")
            self._fields.append(_Field(group, level.name, None))
            return f"(?P<{group}>{self._segment(self._excluded)})"
        if level.name not in level.under:
            raise self._error(f"{level.name} cannot be under {level.name}, so {field[0]} is not possible")
        delimiter = field["between"] or literal
        segment = self._segment(self._excluded + delimiter[0])
        self._fields.append(_Field(group, level.name, delimiter))
        if field["between"]:
            return f"(?P<{group}>{segment}(?:{re.escape(delimiter)}{segment})*)"
        return f"(?P<{group}>(?:{segment}{re.escape(delimiter)})*)"

    @staticmethod
    def _segment(excluded: str) -> str:
        return f"[^{re.escape(excluded)}]+" if excluded else ".+"

    def _error(self, reason: str) -> BadInput:
        return BadInput(f'--key "{shorten(self._text)}": {reason}.')


def _delimiters(text: str, hierarchy: Hierarchy) -> Iterator[str]:
    """The first characters of what follows the levels of a part, which no segment can have then."""
    for field in _FIELD.finditer(text):
        if field["level"].lower() == VERSION and field["level"].upper() not in hierarchy.levels:
            continue
        rest = text[field.end() :].lstrip("[]")
        if rest and not rest.startswith("{"):
            yield rest[0]


WireItem = Mapping[str, Any]
DELETED = "Keys"  # the kind of a line of an incremental export that has the keys of a deleted item alone
KINDS = frozenset(("S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"))
MAX_SHOWN_ATTRIBUTES = 20


class ItemReader:
    """Turns items in DynamoDB JSON into rows. Of several templates the first that matches counts.

    `columns` are attributes of items: for levels below those of the keys, for names, ids and attributes. Attributes of
    an item that are named like those of its level need no option; `unused` counts the others.
    """

    def __init__(
        self,
        hierarchy: Hierarchy,
        templates: Sequence[KeyTemplate],
        keys: Sequence[str],
        columns: Sequence[LevelColumns] = (),
    ) -> None:
        self._templates = templates
        self._keys = keys
        self._columns = {one.level: one for one in columns}
        self._below = [one for one in columns if one.key]
        self._given = {
            one for own in columns for one in (own.key, *own.columns.values(), *own.names.values())
        }  # also for levels above that of an item
        self._by_name = {
            level.name: {fold(name): name for name in level.attributes} for level in hierarchy.levels.values()
        }
        self.unused: Counter[str] = Counter()

    def row_of(self, number: int, kind: str, item: WireItem) -> Row | Rejection | None:
        """The row of a line of an export; None for a former version that was deleted."""
        return self.deletion(number, item) if kind == DELETED else self.row(number, item)

    def row(self, number: int, item: WireItem) -> Row | Rejection:
        """The row of an item."""
        match = self.match(item)
        if match is None:
            return Rejection(number, f"The keys {shorten(self.keys_text(item), 200)} match no --key.")
        levels, path = list(match.levels), list(match.path)
        for column in self._below:
            if text := key_text(item.get(column.key)):
                levels.append(column.level)
                path.append(text)
        parts = self._parts(levels, item)
        return Row(number, path, parts, version=match.version or None)

    def deletion(self, number: int, keys: WireItem) -> Row | Rejection | None:
        """The row of an item that was deleted; None for a former version, which stays in the history."""
        match = self.match(keys)
        if match is None:
            return Rejection(number, f"The keys {shorten(self.keys_text(keys), 200)} match no --key.")
        if match.version or self._below:
            return None
        return Row(number, match.path, [], is_deleted=True)

    def match(self, item: WireItem) -> Match | None:
        keys = [key_text(item.get(name)) for name in self._keys]
        for template in self._templates:
            found = template.match(*(keys if template.has_sort_key else keys[:1]))
            if found is not None and all(keys):
                return found
        return None

    def keys_text(self, item: WireItem) -> str:
        """The keys of an item, for messages."""
        return ", ".join(f"{name} = {key_text(item.get(name)) or 'none'}" for name in self._keys)

    def _parts(self, levels: Sequence[str], item: WireItem) -> list[Part]:
        """The parts of a path: an attribute is a value of the last node, else of the deepest that it is given for.

        Of several nodes of one level only the deepest has values, since the attribute of an item is one value.
        """
        used: set[str] = set()
        parts: list[Part] = []
        done: set[str] = set()
        for level in reversed(levels):
            columns = None if level in done else self._columns.get(level)
            done.add(level)
            parts.append(self._part(level, item, columns, used, is_last=not parts))
        return parts[::-1]

    def _part(self, level: str, item: WireItem, columns: LevelColumns | None, used: set[str], *, is_last: bool) -> Part:
        """The part of a level; the attributes of the item that it takes are added to those that are `used`."""
        if columns is None and not is_last:
            return Part(level)
        columns = (columns or LevelColumns(level, "")).without(used)
        attributes: dict[str, object] = {}
        name, node_id = (key_text(item.get(column)) or None for column in (columns.name or "", columns.id or ""))
        for attribute, column in columns.attributes.items():
            if is_last or column in item:
                attributes[attribute] = plain(item.get(column))
        if columns.names:
            attributes[NAMES] = {tag: key_text(item.get(column)) or None for tag, column in columns.names.items()}
        used |= {column for column in (columns.key, *columns.columns.values(), *columns.names.values()) if column}
        if is_last:
            self._add_by_name(level, item, attributes, used)
        return Part(level, name, node_id, attributes or NOTHING, columns=columns.columns)

    def _add_by_name(self, level: str, item: WireItem, attributes: dict[str, object], used: set[str]) -> None:
        for column, value in item.items():
            if column in used or column in self._keys:
                continue
            attribute = self._by_name[level].get(fold(column))
            if attribute is None or attribute in attributes:
                if column not in self._given:
                    self.unused[column] += 1
            else:
                attributes[attribute] = plain(value)
                used.add(column)

    def sentences(self) -> list[str]:
        """What was not imported."""
        if not self.unused:
            return []
        names = [f"{name} ({count:,})" for name, count in self.unused.most_common(MAX_SHOWN_ATTRIBUTES)]
        more = len(self.unused) - len(names)
        return [
            f"Attributes of items without a place in their level, not imported: {', '.join(names)}"
            f"{f' and {more} more' if more else ''}; --attr gives them one."
        ]


def fields_of(item: WireItem) -> dict[str, object]:
    """The attributes of an item as columns of a table, such as address.city for one in a map."""
    return flat({name: plain(value, _number) for name, value in item.items()})


def _number(text: str) -> object:
    """A number as a typed cell, to which `--numbers` does not apply."""
    try:
        return Decimal(text)
    except ArithmeticError:
        return text


def plain(value: Any, number: Callable[[str], object] = str, depth: int = 0) -> object:
    """A value of DynamoDB JSON; numbers are texts, so that none loses digits, sets are lists, bytes are base64.

    Raises BadInput for what is none.
    """
    if value is None:
        return None
    ((kind, content),) = value.items() if isinstance(value, dict) and len(value) == 1 else [("", None)]
    if kind in ("L", "M") and depth >= MAX_DEPTH:
        raise BadInput(f"A value is nested more than {MAX_DEPTH} times.")
    match kind, content:
        case "L", list():
            return [plain(one, number, depth + 1) for one in content]
        case "M", dict():
            return {name: plain(one, number, depth + 1) for name, one in content.items()}
        case "N", str():
            return number(content)
        case "NULL", _:
            return None
        case (("SS" | "NS" | "BS"), list()) if all(isinstance(one, str) for one in content):
            return sorted(content)
        case (("S" | "B"), str()) | ("BOOL", bool()):
            return content
        case _:
            raise BadInput(f"{shorten(repr(value))} is no value in DynamoDB JSON.")


def item_of(text: str) -> tuple[str, Any]:
    """Kind and content of a line of an export: `Item`, `NewImage` or `Keys` of what was deleted. Raises BadInput."""
    try:
        line = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadInput(f"The line is not valid JSON: {error}.") from None
    for kind in ("Item", "NewImage", DELETED):
        content = line.get(kind) if isinstance(line, dict) else None
        if content:
            if isinstance(content, dict) and all(isinstance(value, dict) for value in content.values()):
                return kind, content
            break
    raise BadInput('The line has no "Item" in DynamoDB JSON.')


def key_text(value: Any) -> str:
    """A key, which is a text or a number; nothing for any other value."""
    content = value.get("S") or value.get("N") if isinstance(value, dict) else None
    return content if isinstance(content, str) else ""
