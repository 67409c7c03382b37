"""Items of a foreign table as rows: their keys by a template, their attributes by name; both proposed from a sample."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

import orjson

from store.errors import BadInput, quantity, shorten
from store.model.hierarchy import Hierarchy, Level
from store.model.names import NAMES
from store.transfer.formats.columns import LevelColumns, fold
from store.transfer.rows import NOTHING, Part, Rejection, Row
from store.transfer.tables.left_out import LeftOut
from store.transfer.tables.templates import DIVIDER, VERSION, KeyTemplate, Match

MAX_SHOWN_ATTRIBUTES = 20
DELIMITERS = ("#", "|", "/", ":", "_")
MAX_CHAINS = 2_000
DIGITS_SCORE = 10
_DIGITS = ("postal", "zip", "postcode")
_NAMES = ("name", "title", "label")

JsonItem = Mapping[str, Any]  # in DynamoDB JSON
Shape = tuple[str | None, ...]  # a literal, or None for the key of a level


class ItemReader:
    """Turns items in DynamoDB JSON into rows. Of several templates the first that matches counts.

    `columns` are attributes of items: for levels below those of the keys, for names, ids and attributes. Without any
    template they have all levels, and the keys are ids. Attributes of an item that are named like those of its level
    need no option; `unused` counts the others. Items of `left_out` have no row; with `removes`, or where the items are
    but a part of the table, those that are deleted or expired have the row of a node that is no more. `unremoved`
    counts the deletions in a part that do not tell this node, since other items may make it, too.
    """

    def __init__(
        self,
        hierarchy: Hierarchy,
        templates: Sequence[KeyTemplate],
        keys: Sequence[str],
        columns: Sequence[LevelColumns] = (),
        left_out: LeftOut | None = None,
        *,
        removes: bool = False,
        is_part: bool = False,
    ) -> None:
        self.left_out = left_out or LeftOut()
        self._removes = removes or is_part
        self._is_part = is_part
        self._templates = templates
        self._keys = keys
        self._columns = {one.level: one for one in columns}
        self._below = [one for one in columns if one.key]
        self._given = {one for own in columns for one in (own.key, *own.values)}  # also for levels above an item's
        self._by_name = {
            level.name: {fold(name): name for name in level.attributes} for level in hierarchy.levels.values()
        }
        self.clear()

    def clear(self) -> None:
        """Forget what was counted, before items are read again."""
        self.unused: Counter[str] = Counter()
        self.unremoved = 0
        self.left_out.clear()

    def row(self, number: int, item: JsonItem) -> Row | Rejection | None:
        """The row of an item; None for one that is left out."""
        if self.left_out.skips(item):
            return None
        is_gone = self.left_out.is_gone(item)
        match = self.match(item)
        if is_gone and (match is None or match.version or not self._removes):
            return None
        if match is None:
            return self._no_match(number, item)
        levels, path = list(match.levels), list(match.path)
        for column in self._below:
            if text := key_text(item.get(column.key)):
                levels.append(column.level)
                path.append(text)
        if is_gone:
            is_unclear = self._is_part and bool(self._below)
            self.unremoved += is_unclear
            return Row(number, path, [], is_deleted=True) if path and not is_unclear else None
        if not path:
            names = ", ".join(column.key for column in self._below)
            return Rejection(number, f"The item has none of the attributes of levels: {names}.")
        return Row(number, path, self._parts(levels, item), version=match.version or None)

    def deletion(self, number: int, keys: JsonItem) -> Row | Rejection | None:
        """The row of an item that was deleted; None for a former version, which stays in the history, and where its
        keys are not the whole path.
        """
        match = self.match(keys)
        if match is None:
            return self._no_match(number, keys)
        if match.version or self._below:
            self.unremoved += not match.version
            return None
        return Row(number, match.path, [], is_deleted=True)

    def match(self, item: JsonItem) -> Match | None:
        """What the keys of an item say; None where no template matches."""
        if not self._templates:
            return Match([], [])
        keys = [key_text(item.get(name)) for name in self._keys]
        for template in self._templates:
            found = template.match(*(keys if template.has_sort_key else keys[:1]))
            if found is not None and all(keys):
                return found
        return None

    def sentences(self) -> list[str]:
        """What was not imported."""
        found = self.left_out.sentences()
        if self.unremoved:
            found.append(
                f"{quantity(self.unremoved, 'deleted item')} without a place in the keys: not removed; an import of "
                "the whole table with --prune removes their nodes."
            )
        if self.unused:
            names = [f"{name} ({count:,})" for name, count in self.unused.most_common(MAX_SHOWN_ATTRIBUTES)]
            more = len(self.unused) - len(names)
            found.append(
                f"Attributes of items without a place in their level, not imported: {', '.join(names)}"
                f"{f' and {more} more' if more else ''}; --attr gives them one."
            )
        return found

    def _no_match(self, number: int, item: JsonItem) -> Rejection:
        keys = ", ".join(f"{name} = {key_text(item.get(name)) or 'none'}" for name in self._keys)
        return Rejection(number, f"The keys {shorten(keys, 200)} match no --key.")

    def _parts(self, levels: Sequence[str], item: JsonItem) -> list[Part]:
        """The parts of a path: an attribute is a value of the last node, else of the deepest that it is given for.

        Of several nodes of one level only the deepest has values, since the attribute of an item is one value.
        """
        used: set[str] = set()
        parts: list[Part] = []
        columns = {**self._columns}
        for level in reversed(levels):
            parts.append(self._part(level, item, columns.pop(level, None), used, is_last=not parts))
        return parts[::-1]

    def _part(self, level: str, item: JsonItem, columns: LevelColumns | None, used: set[str], *, is_last: bool) -> Part:
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
        used |= {column for column in (columns.key, *columns.values) if column}
        if is_last:
            self._add_by_name(level, item, attributes, used)
        return Part(level, name, node_id, attributes or NOTHING, columns=columns.columns)

    def _add_by_name(self, level: str, item: JsonItem, attributes: dict[str, object], used: set[str]) -> None:
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
    for kind in ("Item", "NewImage", "Keys"):
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


def key_attributes(items: Sequence[JsonItem]) -> list[tuple[str, str]]:
    """The pairs of attributes that may be the keys of a table: texts or numbers that every item has, unique together.

    Attributes with the usual names come first.
    """
    common = [
        name for name in (items[0] if items else ()) if all({"S", "N"} & item.get(name, {}).keys() for item in items)
    ]
    usual = ("pk", "partitionkey", "hashkey", "sk", "sortkey", "rangekey")
    common.sort(key=lambda name: usual.index(fold(name)) if fold(name) in usual else len(usual))
    pairs = [(first, second) for first in common for second in common if first != second]
    return [pair for pair in pairs if len({tuple(map(str, map(item.get, pair))) for item in items}) == len(items)]


def propose_templates(hierarchy: Hierarchy, keys: Sequence[Sequence[str]]) -> list[str]:
    """Templates for the keys of a sample, each its partition key and its sort key if it has one; none if unclear."""
    samples = [_key_sample(hierarchy, [key[index] for key in keys]) for index in range(len(keys[0]))] if keys else []
    unnamed = [values for sample in samples for values in _unnamed(hierarchy, sample)]
    literals = [token for sample in samples for shape in sample.shapes for token in shape if token]
    chain = iter(_chain(hierarchy, unnamed, {*map(_level_name, literals)} & hierarchy.levels.keys()))
    written: list[list[str]] = []
    above: Level | None = None
    for sample in samples:
        texts, above = _written(hierarchy, sample, chain, above)
        written.append(texts)
    if not written or not all(written):
        return []
    return [DIVIDER.join([*(texts[0] for texts in written[:-1]), last]) for last in written[-1]]


def propose_names(levels: Sequence[str], items: Sequence[JsonItem]) -> list[str]:
    """Values of `--name` for attributes such as productName or title, for the level of each item."""
    found: Counter[tuple[str, str]] = Counter()
    for level, item in zip(levels, items, strict=True):
        wanted = [f"{fold(level)}name", *_NAMES]
        names = {fold(name): name for name in item}
        if first := next((names[one] for one in wanted if one in names), None):
            found[level.lower(), first] += 1
    options: dict[str, str] = {}
    for (level, name), _ in found.most_common():
        options.setdefault(level, f"{level}={name}")
    return list(options.values())


class _KeySample(NamedTuple):
    """What the values of one key have in common: their delimiter, their shapes, and what is before all of them."""

    delimiter: str
    shapes: list[Shape]
    values: dict[int, list[str]]  # by position in the longest shape
    prefix: str = ""
    is_container: bool = False


def _key_sample(hierarchy: Hierarchy, values: list[str]) -> _KeySample:
    prefix = ""
    if all(value[:1] == "v" and value[1:].partition("_")[0].isdecimal() for value in values):
        prefix = f"v{{{VERSION}}}_"
        values = [value.partition("_")[2] for value in values]
    counts = {one: sum(one in value for value in values) for one in DELIMITERS}
    delimiter = max(DELIMITERS, key=lambda one: counts[one])
    if prefix or counts[delimiter] * 2 < len(values):
        return _KeySample("#", [(None,)], {0: values}, prefix)
    split = [value.split(delimiter) for value in values]
    if any(value.endswith(delimiter) for value in values):
        first = {one[0] for one in split}
        literal = f"{first.pop()}{delimiter}" if len(first) == 1 and len(values) > 1 else ""
        return _KeySample(delimiter, [], {}, literal, is_container=True)
    shapes = list(dict.fromkeys(_shape(hierarchy, tokens, split) for tokens in split))
    longest = max(shapes, key=len)
    by_position = {index: [tokens[index] for tokens in split if index < len(tokens)] for index in range(len(longest))}
    return _KeySample(delimiter, shapes, by_position)


def _shape(hierarchy: Hierarchy, tokens: list[str], all_tokens: list[list[str]]) -> Shape:
    """The tokens that are literals: named like a level, or the same in all values and followed by another token."""
    levels = {fold(level) for level in hierarchy.levels}
    found: list[str | None] = []
    for index, token in enumerate(tokens):
        others = {one[index] for one in all_tokens if index < len(one)}
        is_word = fold(token) in levels or (len(others) == 1 and len(all_tokens) > 1 and token.isupper())
        is_last = index == len(tokens) - 1
        after_literal = bool(found) and found[-1] is not None
        found.append(token if is_word and not is_last and not after_literal else None)
    return tuple(found)


def _unnamed(hierarchy: Hierarchy, sample: _KeySample) -> Iterator[list[str]]:
    """The values of positions whose level no literal names."""
    longest = max(sample.shapes, key=len, default=())
    for index, token in enumerate(longest):
        if token is None and _level_at(hierarchy, sample, longest, index) is None:
            yield sample.values[index]


def _level_at(hierarchy: Hierarchy, sample: _KeySample, shape: Shape, index: int) -> str | None:
    """The level that the literal before a position names, or that all values there name."""
    words = {shape[index - 1] or ""} if index and shape[index - 1] else set(sample.values.get(index, ()))
    names = {_level_name(word) for word in words}
    return names.pop() if len(names) == 1 and names <= hierarchy.levels.keys() else None


def _chain(hierarchy: Hierarchy, unnamed: list[list[str]], named: Set[str]) -> list[str]:
    """Levels for the positions without a name, from a root down: those that stand in most places first."""
    free = [level for level in hierarchy.levels.values() if level.name not in named]
    best: tuple[int, list[str]] = (-1, [])
    waiting = [[level] for level in free if named or level.may_be_root]
    for _ in range(MAX_CHAINS):
        if not waiting:
            break
        chain = waiting.pop(0)
        if len(chain) == len(unnamed):
            score = sum(_score(level, values) for level, values in zip(chain, unnamed, strict=True))
            best = max(best, (score, [level.name for level in chain]), key=lambda one: one[0])
        elif len(chain) < len(unnamed):
            waiting += [[*chain, one] for one in free if one not in chain and chain[-1].name in one.under]
    return best[1]


def _score(level: Level, values: list[str]) -> int:
    is_digits = all(value.isdecimal() for value in values)
    return len(level.under) + DIGITS_SCORE * (is_digits and fold(level.name).startswith(_DIGITS))


def _written(
    hierarchy: Hierarchy, sample: _KeySample, chain: Iterator[str], above: Level | None
) -> tuple[list[str], Level | None]:
    """The texts of a part of a template, one for each shape that does not begin a longer one, and its last level."""
    if sample.is_container:
        return _container(hierarchy, sample, above)
    texts: list[str] = []
    names: dict[int, str | None] = {}
    shapes = sorted(sample.shapes, key=len, reverse=True)
    for shape in shapes:
        if any(other[: len(shape)] == shape for other in shapes if len(other) > len(shape)):
            continue
        ends = {len(other) for other in shapes if shape[: len(other)] == other and len(other) < len(shape)}
        text, closing = sample.prefix, ""
        for index, token in enumerate(shape):
            if index in ends:
                text, closing = f"{text}[", f"{closing}]"
            text += sample.delimiter if index else ""
            if token is not None:
                text += token
                continue
            name = _level_at(hierarchy, sample, shape, index)
            if name is None:
                name = names.setdefault(index, next(chain, None))
            if name is None:
                return [], above
            above = hierarchy.levels[name]
            text += f"{{{name.lower()}}}"
        texts.append(text + closing)
    return texts, above


def _container(hierarchy: Hierarchy, sample: _KeySample, above: Level | None) -> tuple[list[str], Level | None]:
    """Folders that end in the delimiter, with a level in itself, and what lies in them."""
    for level in hierarchy.levels.values():
        if level.name in level.under and (above is None or above.name in level.under):
            below = (one for one in hierarchy.levels.values() if one is not level and level.name in one.under)
            leaf = next(below, None)
            inner = f"[{{{leaf.name.lower()}}}]" if leaf else ""
            return [f"{sample.prefix}{{{level.name.lower()}*}}{sample.delimiter}{inner}"], leaf or level
    return [], above


def _level_name(token: str) -> str:
    return token.upper().replace("-", "_").replace(" ", "_")
