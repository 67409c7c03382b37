"""Proposals for the import of a foreign table: its keys, key templates and names, by a sample of its items.

A level is proposed only where a key says its name: in a text before a value (`PRODUCT#TV`), in the name of the
attribute (`State#City#Zip`), or as a whole path of a level in itself (`A`, `A/B`). All else is the user's to say.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import permutations
from typing import NamedTuple

from store.model.hierarchy import Hierarchy, Level
from store.transfer.formats.cells import fold
from store.transfer.shapes.cell_paths import joined_path
from store.transfer.shapes.columns import ColumnOptions, match_columns
from store.transfer.tables.items import ItemReader, key_text
from store.transfer.tables.left_out import JsonItem
from store.transfer.tables.templates import DIVIDER, MAX_TEMPLATE_CHARACTERS, VERSION, KeyTemplate

DELIMITERS = ("#", "|", "/", ":", "_")
USUAL_KEYS = ("pk", "partitionkey", "hashkey", "sk", "sortkey", "rangekey")
_NAMES = ("name", "title", "label")
_SYNONYMS = {"zip": "postalcode", "zipcode": "postalcode", "postcode": "postalcode"}

# UUIDs without or with hyphens, and ULIDs; of one length ids such as KSUIDs and those of nanoid; numbers of orders.
_UUID = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}|[0-7][0-9a-hjkmnp-tv-z]{25}", re.IGNORECASE)
_RANDOM = re.compile(r"(?=.*\d)(?=.*[A-Za-z])([\w-]{20,}|(?=.*[a-z])(?=.*[A-Z])[\w-]{10,})", re.ASCII)
_LONG_NUMBER = re.compile(r"\d{10,}")
_VERSIONED = re.compile(r"v\d+_(.+)")
_WORD_BEFORE = re.compile(r"\w\W?\{")  # a word before a level
_SYNTAX = re.compile(rf"[\[\]{{}}]|{DIVIDER}")  # which no literal of a template can have


class Proposal(NamedTuple):
    """Options of an import: the names of the keys, the key templates, and the columns. Levels are in one of them."""

    keys: Sequence[str]
    templates: Sequence[str]
    columns: ColumnOptions


def proposals(hierarchy: Hierarchy, items: Sequence[JsonItem], keys: Sequence[str]) -> list[Proposal]:
    """Proposals for a table, the likeliest first; `keys` are the names of its keys, none if they are not known.

    Keys with words for levels come first, then two or more attributes that are named like levels.
    """
    header = [*dict.fromkeys(name for item in items for name, value in item.items() if key_text(value))]
    found = match_columns(hierarchy, header)
    columns = ColumnOptions(found.levels, names=found.names)
    ranked = [(1 if len(found.levels) > 1 else 3, Proposal(keys, (), columns))] if found.levels else []
    for names in [keys] if keys else key_candidates(items):
        pairs = [[key_text(item.get(name)) for name in names] for item in items]
        if len(names) == 2 and any(all(f"{path}{one}".startswith(pk + one) for pk, path in pairs) for one in "#|/:"):
            names = names[1:]  # the partition key is the root of the path
        if templates := propose_templates(hierarchy, items, names):
            rank = 0 if any(map(_WORD_BEFORE.search, templates)) else 2
            reader = ItemReader(hierarchy, [KeyTemplate(hierarchy, text) for text in templates], names)
            ranked.append((rank, Proposal(names, templates, _names(reader, items))))
    return [proposal for _, proposal in sorted(ranked, key=lambda one: one[0])]


def key_candidates(items: Sequence[JsonItem]) -> list[tuple[str, ...]]:
    """The attributes that may be the keys of a table, the likeliest first.

    An attribute that is an id in each item is the key. A partition key that no two items share needs no sort key.
    """
    pairs: list[tuple[str, ...]] = [*key_attributes(items)]
    if usual := [pair for pair in pairs if {*map(fold, pair)} <= {*USUAL_KEYS}]:
        return [*usual[:1]]
    values = {name: [key_text(item.get(name)) for item in items] for pair in pairs for name in pair}
    alone: list[tuple[str, ...]] = [(name,) for name, texts in values.items() if len({*texts}) == len(texts)]
    ids = [names for names in alone if are_ids(values[names[0]])]
    return [*(ids[:1] or [pair for pair in pairs if pair[:1] not in alone]), *alone]


def key_attributes(items: Sequence[JsonItem]) -> list[tuple[str, str]]:
    """The pairs of attributes that may be the keys of a table: texts or numbers that every item has, unique together.

    Attributes with the usual names come first.
    """
    names = [name for name in (items[0] if items else ()) if fold(name) != "typename"]
    values = {name: texts for name in names if all(texts := [key_text(item.get(name)) for item in items])}
    common = sorted(values, key=lambda name: (*USUAL_KEYS, fold(name)).index(fold(name)))
    pairs = permutations(common, 2)
    return [pair for pair in pairs if len({*zip(*[values[name] for name in pair], strict=True)}) == len(items)]


def are_ids(values: Sequence[str]) -> bool:
    """Whether most texts are ids: UUIDs, ULIDs, random texts of one length, or long numbers that differ.

    There may be other text before them, as in `Shop#00000000-0000-4000-8000-000000000000`.
    """
    values = [re.split("[#|/:]", value)[-1] for value in values]
    random = _RANDOM if len(values) > 1 and len({*map(len, values)}) == 1 else _UUID
    found = sum(bool(_UUID.fullmatch(value) or random.fullmatch(value)) for value in values)
    are_numbers = len(values) > 1 and len({*values}) == len(values) and all(map(_LONG_NUMBER.fullmatch, values))
    return are_numbers or found > 0.9 * len(values)


def propose_templates(hierarchy: Hierarchy, items: Sequence[JsonItem], names: Sequence[str]) -> list[str]:
    """Templates for the keys of a sample, by the names of these; none where they name no level."""
    keys = [[key_text(item.get(name)) for item in items] for name in names]
    parts: list[list[str]] = []
    above: str | None = None
    for name, values in zip(names, keys, strict=True):
        parts.append(_parts(hierarchy, name, values, above))
        levels = re.findall(r"\{(\w+)", max(parts[-1], key=len))
        above = levels[-1].upper() if levels else above
    both = zip(zip(*parts, strict=True), zip(*keys, strict=True), strict=True)
    # Two keys that are equal are one node, for which there is no template.
    texts = {DIVIDER.join(texts) for texts, values in both if all(texts) and len({*values}) == len(values)}
    found: dict[str, str] = {}  # how the longest text of each template is written, but for ] at its end
    for text in sorted((text for text in texts if "{" in text), key=lambda text: (len(text), text)):
        shorter = next((one for one in found if text.startswith(one)), "")
        found[text] = f"{found.pop(shorter)}[{text.removeprefix(shorter)}" if shorter else text
    templates = [written + "]" * (written.count("[") - written.count("]")) for written in found.values()]
    return [template for template in templates if len(template) <= MAX_TEMPLATE_CHARACTERS]


def _parts(hierarchy: Hierarchy, name: str, values: Sequence[str], above: str | None) -> list[str]:
    """For each value of a key its part of a template; empty where it names no level and is not one word for all."""
    name = "" if are_ids(values) else name
    found = [_by_words(hierarchy, value) or _by_name(hierarchy, name, value) for value in values]
    if not any(found) and (path := _path(hierarchy, values, above)):
        return [path] * len(values)
    words = {value for value, text in zip(values, found, strict=True) if not text}
    word = words.pop() if len(words) == 1 else ""  # such as METADATA
    return [text or ("" if _SYNTAX.search(word) else word) for text in found]


def _by_words(hierarchy: Hierarchy, value: str) -> str:
    """The part for a value with words for its levels, such as `PRODUCT#TV#VARIANT#Black` or `v2_Audit`, else empty."""
    if (versioned := _VERSIONED.fullmatch(value)) and (level := _level(hierarchy, versioned[1])):
        return f"v{{{VERSION}}}_{{{level.name.lower()}}}"
    for delimiter in DELIMITERS:
        tokens = value.split(delimiter)
        levels = [level for word in tokens[::2] if (level := _level(hierarchy, word))]
        if all(tokens) and 2 * len(levels) == len(tokens):
            pairs = zip(tokens[::2], levels, strict=True)
            return delimiter.join(f"{word}{delimiter}{{{level.name.lower()}}}" for word, level in pairs)
    return ""


def _by_name(hierarchy: Hierarchy, name: str, value: str) -> str:
    """The part for a value of an attribute that names the levels in it, such as `State#City#Zip`, else empty."""
    for delimiter in DELIMITERS:
        words, count = name.split(delimiter), value.count(delimiter) + 1
        levels = [level for word in words if (level := _level(hierarchy, word))]
        if len(levels) == len(words) >= count:
            return delimiter.join(f"{{{level.name.lower()}}}" for level in levels[:count])
    return ""


def _path(hierarchy: Hierarchy, values: Sequence[str], above: str | None) -> str:
    """The part for whole paths of a level in itself, or for folders that end in a delimiter with what lies in them."""
    levels = hierarchy.levels.values()
    level = next((one for one in levels if one.name in one.under and above in one.under), None)
    delimiter = max("/#|:", key=lambda one: sum(one in value for value in values))
    if level is None or are_ids(values):
        return ""
    if any(value.endswith(delimiter) for value in values):
        first, *others = {value.partition(delimiter)[0] for value in values}
        prefix = "" if others or _SYNTAX.search(first) else first + delimiter
        leaf = next((one for one in levels if one is not level and level.name in one.under), None)
        return f"{prefix}{{{level.name.lower()}*}}{delimiter}{f'[{{{leaf.name.lower()}}}]' if leaf else ''}"
    found = joined_path({value.replace(delimiter, "/") for value in values})
    return f"{{{level.name.lower()}*{delimiter}}}" if found and "/" in found[1] else ""


def _level(hierarchy: Hierarchy, word: str) -> Level | None:
    wanted = _SYNONYMS.get(fold(word), fold(word))
    levels = () if _SYNTAX.search(word) else hierarchy.levels.values()
    return next((level for level in levels if fold(level.name) == wanted), None)


def _names(reader: ItemReader, items: Iterable[JsonItem]) -> ColumnOptions:
    """Attributes such as productName or title as names of the levels whose items have them."""
    found: dict[str, str] = {}
    for item in items:
        by_name, match = {fold(name): name for name in item}, reader.match(item)
        level = match.levels[-1].lower() if match else ""
        if level and (names := [by_name[name] for name in (f"{fold(level)}name", *_NAMES) if name in by_name]):
            found.setdefault(level, f"{level}={names[0]}")
    return ColumnOptions(names=[*found.values()])
