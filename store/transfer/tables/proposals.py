"""Proposals for the import of a foreign table: its keys, key templates and names, by a sample of its items."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

from store.model.hierarchy import Hierarchy, Level
from store.transfer.formats.columns import ColumnOptions, fold, match_columns
from store.transfer.formats.shapes import joined_path
from store.transfer.tables.items import ItemReader, JsonItem, key_text
from store.transfer.tables.templates import DIVIDER, VERSION, KeyTemplate

DELIMITERS = ("#", "|", "/", ":", "_")
MAX_CHAINS = 2_000
DIGITS_SCORE = 10
USUAL_KEYS = ("pk", "partitionkey", "hashkey", "sk", "sortkey", "rangekey")
_DIGITS = ("postal", "zip", "postcode")
_NAMES = ("name", "title", "label")
_TYPES = frozenset(("typename", "type", "entity", "entitytype", "et", "kind"))

# UUIDs without or with hyphens, and ULIDs; of one length ids such as KSUIDs and those of nanoid; numbers of orders.
_UUID = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}|[0-7][0-9a-hjkmnp-tv-z]{25}", re.IGNORECASE)
_RANDOM = re.compile(r"(?=.*\d)(?=.*[A-Za-z])([\w-]{20,}|(?=.*[a-z])(?=.*[A-Z])[\w-]{10,})", re.ASCII)
_NAMED = re.compile(r"(\w+)\W?\{(\w+)")  # a word before a level
_LONG_NUMBER = re.compile(r"\d{10,}")

Shape = tuple[str | None, ...]  # a literal, or None for the key of a level


class Proposal(NamedTuple):
    """Options of an import: the names of the keys, the key templates, and the columns. Levels are in one of them.

    With `is_guess` nothing in the keys names a level.
    """

    keys: Sequence[str]
    templates: Sequence[str]
    columns: ColumnOptions
    is_guess: bool = False


def proposals(hierarchy: Hierarchy, items: Sequence[JsonItem], keys: Sequence[str]) -> list[Proposal]:
    """Proposals for a table, the likeliest first; `keys` are the names of its keys, none if they are not known.

    Of keys that name no level, attributes that are named like levels come first: such keys may be anything.
    """
    header = dict.fromkeys(name for item in items for name, value in item.items() if {"S", "N"} & value.keys())
    levels = match_columns(hierarchy, [*header])
    by_attributes = [Proposal(keys, (), ColumnOptions(levels.levels, names=levels.names))] if levels.levels else []
    named: list[Proposal] = []
    others: list[Proposal] = []
    for names in [keys] if keys else key_candidates(items):
        values = [[key_text(item.get(name)) for name in names] for item in items]
        if len(names) == 2 and any(all(f"{sort}{one}".startswith(pk + one) for pk, sort in values) for one in "#|/:"):
            names, values = names[1:], [value[1:] for value in values]  # the partition key is the root of the path
        types = {key_text(item.get(name)) for item in items for name in item if fold(name) in _TYPES} - {""}
        if templates := propose_templates(hierarchy, values, names, types):
            reader = ItemReader(hierarchy, [KeyTemplate(hierarchy, text) for text in templates], names)
            found = [(match.levels[-1], item) for item in items if (match := reader.match(item))]
            options = ColumnOptions(names=propose_names([level for level, _ in found], [item for _, item in found]))
            is_named = any(fold(word) == fold(level) for text in templates for word, level in _NAMED.findall(text))
            (named if is_named else others).append(Proposal(names, templates, options, not is_named))
    return [*named, *by_attributes, *others] if len(levels.levels) > 1 else [*named, *others, *by_attributes]


def key_candidates(items: Sequence[JsonItem]) -> list[tuple[str, ...]]:
    """The attributes that may be the keys of a table, the likeliest first.

    An attribute that is an id in each item is the key. A partition key that no two items share needs no sort key.
    """
    pairs = key_attributes(items)
    if usual := [pair for pair in pairs if {*map(fold, pair)} <= {*USUAL_KEYS}]:
        return [*usual[:1]]
    values = {name: [key_text(item.get(name)) for item in items] for pair in pairs for name in pair}
    alone = [name for name, texts in values.items() if len({*texts}) == len(texts)]
    shared = [pair for pair in pairs if pair[0] not in alone]
    if ids := [name for name in alone if are_ids(values[name])]:
        return [(ids[0],), *((name,) for name in alone if joined_path(values[name])), *shared]
    return [*shared, *((name,) for name in alone), *(pair for pair in pairs if pair not in shared)]


def key_attributes(items: Sequence[JsonItem]) -> list[tuple[str, str]]:
    """The pairs of attributes that may be the keys of a table: texts or numbers that every item has, unique together.

    Attributes with the usual names come first, then texts.
    """
    common = [
        name
        for name in (items[0] if items else ())
        if fold(name) != "typename" and all({"S", "N"} & item.get(name, {}).keys() for item in items)
    ]
    common.sort(
        key=lambda name: USUAL_KEYS.index(fold(name)) if fold(name) in USUAL_KEYS else 10 + ("N" in items[0][name])
    )
    pairs = [(first, second) for first in common for second in common if first != second]
    return [pair for pair in pairs if len({tuple(map(str, map(item.get, pair))) for item in items}) == len(items)]


def are_ids(values: Sequence[str]) -> bool:
    """Whether most texts are ids: UUIDs, ULIDs, random texts of one length, or long numbers that differ.

    There may be other text before them, as in `Shop#00000000-0000-4000-8000-000000000000`.
    """
    values = [re.split("[#|/:]", value)[-1] for value in values]
    random = _RANDOM if len(values) > 1 and len({*map(len, values)}) == 1 else _UUID
    found = sum(bool(_UUID.fullmatch(value) or random.fullmatch(value)) for value in values)
    are_numbers = len(values) > 1 and len({*values}) == len(values) and all(map(_LONG_NUMBER.fullmatch, values))
    return are_numbers or found > 0.9 * len(values)


def propose_templates(
    hierarchy: Hierarchy, keys: Sequence[Sequence[str]], names: Sequence[str] = (), types: Set[str] = frozenset()
) -> list[str]:
    """Templates for the keys of a sample, each its partition key and its sort key if it has one; none if unclear.

    `names` are those of the keys. Keys that are ids or `types` of items are no levels, unless a text before them says
    so.
    """
    columns = [[key[index] for key in keys] for index in range(len(keys[0]))] if keys else []
    samples = [
        _KeySample("#", [(values[0],)], {})
        if len(columns) > 1 and _is_literal(hierarchy, values, types, is_last=index > 0)
        else _key_sample(hierarchy, values, names[index] if index < len(names) else "")
        for index, values in enumerate(columns)
    ]
    unnamed = [values for sample in samples for values in _unnamed(hierarchy, sample)]
    if any(are_ids(values) or {*values} <= types for values in unnamed):
        return []
    literals = [token for sample in samples for shape in sample.shapes for token in (*shape, sample.level) if token]
    chain = iter(_chain(hierarchy, unnamed, {*map(_level_name, literals)} & hierarchy.levels.keys()))
    written: list[list[str]] = []
    above: Level | None = None
    for sample in samples:
        texts, above = _written(hierarchy, sample, chain, above)
        written.append(texts)
    if not written or not all(written):
        return []
    return [DIVIDER.join([*(texts[0] for texts in written[:-1]), last]) for last in written[-1]]


def _is_literal(hierarchy: Hierarchy, values: Sequence[str], types: Set[str], *, is_last: bool) -> bool:
    """Whether one of two keys is the same word in all items, such as METADATA, and not a node."""
    if len(values) < 2 or len({*values}) > 1:
        return False
    return values[0] in types or (values[0].isupper() if is_last else _level_name(values[0]) in hierarchy.levels)


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
    """What the values of one key have in common: their delimiter, their shapes, and what is before all of them.

    `level` is the one that the name of the key says. Where it `is_nested`, paths differ in length.
    """

    delimiter: str
    shapes: list[Shape]
    values: dict[int, list[str]]  # by position in the longest shape
    prefix: str = ""
    is_container: bool = False
    is_nested: bool = False
    level: str | None = None


def _key_sample(hierarchy: Hierarchy, values: list[str], name: str) -> _KeySample:
    prefix = ""
    if all(value[:1] == "v" and value[1:].partition("_")[0].isdecimal() for value in values):
        prefix = f"v{{{VERSION}}}_"
        values = [value.partition("_")[2] for value in values]
    counts = {one: sum(one in value for value in values) for one in DELIMITERS}
    delimiter = max(DELIMITERS, key=lambda one: counts[one])
    if prefix or counts[delimiter] * 2 < len(values):
        level = None if prefix or _level_name(name) not in hierarchy.levels else _level_name(name)
        return _KeySample("#", [(None,)], {0: values}, prefix, level=level)
    split = [value.split(delimiter) for value in values]
    if any(value.endswith(delimiter) for value in values):
        first = {one[0] for one in split}
        literal = f"{first.pop()}{delimiter}" if len(first) == 1 and len(values) > 1 else ""
        return _KeySample(delimiter, [], {}, literal, is_container=True)
    shapes = list(dict.fromkeys(_shape(hierarchy, tokens, split) for tokens in split))
    longest = max(shapes, key=len)
    by_position = {index: [tokens[index] for tokens in split if index < len(tokens)] for index in range(len(longest))}
    has_nested = any(level.name in level.under for level in hierarchy.levels.values())
    is_nested = has_nested and len(shapes) > 1 and not any(token for shape in shapes for token in shape)
    return _KeySample(delimiter, shapes, {} if is_nested else by_position, is_nested=is_nested)


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
    longest = () if sample.is_nested else max(sample.shapes, key=len, default=())
    for index, token in enumerate(longest):
        if token is None and _level_at(hierarchy, sample, longest, index) is None:
            yield sample.values[index]


def _level_at(hierarchy: Hierarchy, sample: _KeySample, shape: Shape, index: int) -> str | None:
    """The level that the literal before a position names, or that all values there name."""
    if sample.level:
        return sample.level
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
    if sample.is_container or sample.is_nested:
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
    """Folders that end in the delimiter, with a level in itself, and what lies in them; or paths of such a level."""
    for level in hierarchy.levels.values():
        is_fitting = level.name in level.under and (above.name if above else None) in level.under
        if sample.is_nested and is_fitting:
            return [f"{{{level.name.lower()}*{sample.delimiter}}}"], level
        if level.name in level.under and (above is None or above.name in level.under):
            below = (one for one in hierarchy.levels.values() if one is not level and level.name in one.under)
            leaf = next(below, None)
            inner = f"[{{{leaf.name.lower()}}}]" if leaf else ""
            return [f"{sample.prefix}{{{level.name.lower()}*}}{sample.delimiter}{inner}"], leaf or level
    return [], above


def _level_name(token: str) -> str:
    return token.upper().replace("-", "_").replace(" ", "_")
