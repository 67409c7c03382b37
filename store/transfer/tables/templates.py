"""Key templates: how the keys of a foreign table contain the levels of a hierarchy.

`CATEGORY#{category} / PRODUCT#{product}[#VARIANT#{variant}]` is one: a part for the partition key, and after ` / ` one
for the sort key. `{product}` is the key of a level, `[…]` what may be absent. `{folder*}` before a delimiter is any
number of levels in themselves, each closed by the delimiter, so that `{folder*}/[{file}]` matches `photos/2026/` and
`photos/2026/beach.jpg`; `{category*#}` is one or more, with the delimiter between them. `{version}` is a number, 0 for
the current version.
"""

import re
from typing import NamedTuple

from store.errors import BadInput, shorten
from store.model.hierarchy import Hierarchy

DIVIDER = " / "
VERSION = "version"
MAX_TEMPLATE_CHARACTERS = 500
# A level `{city}`, `{category*#}` or `{folder*}/`, or any other character.
_TOKEN = re.compile(
    r"\{(?P<level>[A-Za-z0-9_]+)(\*(?P<between>[^{}\[\]]+)\}|\*\}(?P<closing>[^{}\[\]])|(?P<wrong>[^{}\[\]]*)\})|.",
    re.DOTALL,
)
_EXAMPLE = "such as CATEGORY#{category} / PRODUCT#{product}[#VARIANT#{variant}]"


class Match(NamedTuple):
    """What a key is: the levels and segments of its path from the root down, and its version, None without one."""

    levels: list[str]
    path: list[str]
    version: int | None = None


class KeyTemplate:
    """A template for the levels of a hierarchy. Raises BadInput where it is none."""

    def __init__(self, hierarchy: Hierarchy, text: str) -> None:
        if len(text) > MAX_TEMPLATE_CHARACTERS:
            raise BadInput(f"A key template has at most {MAX_TEMPLATE_CHARACTERS} characters, not {len(text):,}.")
        parts = text.split(DIVIDER)
        if len(parts) > 2:
            raise BadInput(f'--key "{shorten(text)}" has {len(parts)} parts; a table has one or two keys, {_EXAMPLE}.')
        self._parts = [_KeyPart(hierarchy, part.strip()) for part in parts]
        if not any(level != VERSION for part in self._parts for level, _ in part.fields):
            raise BadInput(f'--key "{shorten(text)}" names no level in braces, {_EXAMPLE}.')

    @property
    def has_sort_key(self) -> bool:
        """Whether it has a part for the sort key."""
        return len(self._parts) == 2

    @property
    def levels(self) -> list[str]:
        """The names of its levels, from the root down."""
        found = [level for part in self._parts for level, _ in part.fields]
        return [level for level in dict.fromkeys(found) if level != VERSION]

    def match(self, *keys: str) -> Match | None:
        """What an item with these values of its keys is, None where they do not match."""
        if len(keys) != len(self._parts):
            return None
        result = Match([], [])
        for part, key in zip(self._parts, keys, strict=True):
            found = part.pattern.fullmatch(key)
            if found is None:
                return None
            for text, (level, delimiter) in zip(found.groups(), part.fields, strict=True):
                if text and level == VERSION:
                    result = result._replace(version=int(text))
                elif text:
                    segments = [text] if delimiter is None else text.removesuffix(delimiter).split(delimiter)
                    result.levels.extend([level] * len(segments))
                    result.path.extend(segments)
        return result if result.path else None


class _KeyPart:
    """The part of a template for one key attribute: a pattern with a group for each of its `fields`, which are levels,
    each with its delimiter where it may repeat.

    No key takes long to match, since no field can match its own delimiter.
    """

    def __init__(self, hierarchy: Hierarchy, text: str) -> None:
        self._hierarchy = hierarchy
        self._text = text
        self.fields: list[tuple[str, str | None]] = []
        tokens = [*_TOKEN.finditer(text)]
        # The first characters of what follows the levels, which no segment can have then.
        levels = [token for token in tokens if token["level"] and not self._is_version(token["level"])]
        after = {token["closing"] or text[token.end() :].lstrip("[]")[:1] for token in levels}
        self._excluded = "".join(sorted(after - {"", "{"}))
        pattern = "".join([self._field(token) if token["level"] else self._literal(token) for token in tokens])
        try:
            self.pattern = re.compile(pattern, re.DOTALL)
        except re.error:
            raise self._error("a [ has no ], or a ] no [") from None

    def _is_version(self, name: str) -> bool:
        return name.lower() == VERSION and name.upper() not in self._hierarchy.levels

    def _literal(self, token: re.Match[str]) -> str:
        if token[0] in "{}":
            text = shorten(self._text[token.start() :], 20)
            raise self._error(f'a level is in braces, such as {{city}}, not "{text}"')
        return {"[": "(?:", "]": ")?"}.get(token[0], re.escape(token[0]))

    def _field(self, token: re.Match[str]) -> str:
        name, closing, between = token["level"], token["closing"], token["between"]
        if token["wrong"] == "*":
            raise self._error(f"{token[0]} has no delimiter; write {{{name}*/}} or {token[0]}/")
        if not closing and self._text[token.end() :].lstrip("[]").startswith("{"):
            raise self._error(f"nothing stands between {token[0]} and the next level")
        if self._is_version(name):
            self.fields.append((VERSION, None))
            return "([0-9]{1,9})"
        if token["wrong"]:
            raise self._error(f"{token[0]} has a delimiter, which only {{{name}*}} has")
        level, delimiter = self._hierarchy.level(name), between or closing
        self.fields.append((level.name, delimiter))
        if not delimiter:
            return f"({_segment(self._excluded)})"
        if level.name not in level.under:
            raise self._error(f"{level.name} cannot be under {level.name}, so {{{name}*}} is not possible")
        segment, escaped = _segment(self._excluded + delimiter[0]), re.escape(delimiter)
        return f"({segment}(?:{escaped}{segment})*)" if between else f"((?:{segment}{escaped})*)"

    def _error(self, reason: str) -> BadInput:
        return BadInput(f'--key "{shorten(self._text)}": {reason}.')


def _segment(excluded: str) -> str:
    return f"[^{re.escape(excluded)}]+" if excluded else ".+"
