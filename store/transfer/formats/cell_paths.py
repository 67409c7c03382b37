"""Paths in a cell of a table, such as `Garden > Mowers`, also several of them: `Garden > Mowers | Gifts`."""

import re
from dataclasses import dataclass
from functools import cached_property

from store.errors import BadInput, shorten

_QUOTED = re.compile(r'\s*"((?:[^"]|"")*+)"\s*')
_IN_WORDS = frozenset("-–/.,:;&+'")  # signs that a key may have between letters, as in T-Shirts


@dataclass(frozen=True)
class CellPaths:
    """What separates the keys of a path in a cell, and several paths, if a cell has them. Raises BadInput for no text.

    Blanks around a separator do not belong to keys. One with a blank at a side, such as ` - `, needs blanks there. In a
    key it is written after a backslash, or the whole key in quotes, as in a cell of CSV.
    """

    split: str
    each: str | None = None

    def __post_init__(self) -> None:
        given = [text for text in (self.split, self.each) if text is not None]
        if "" in given or len(self._needs) < len(given):
            raise BadInput("split and each need a text each, and not the same, blanks apart.")

    @cached_property
    def _needs(self) -> dict[str, tuple[bool, bool]]:
        """Whether a separator needs blanks before and after it, by its text without them."""
        found: dict[str, tuple[bool, bool]] = {}
        for text in filter(None, (self.split, self.each)):
            sign = text.strip()
            found[sign or text] = (text[0].isspace(), text[-1].isspace()) if sign else (False, False)
        return found

    @cached_property
    def _signs(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, sorted(self._needs, key=len, reverse=True))))

    @cached_property
    def _escaped(self) -> re.Pattern[str] | None:
        return None if any("\\" in sign for sign in self._needs) else re.compile(rf"\\({self._signs.pattern})")

    def read(self, cell: str) -> list[tuple[str, ...]]:
        """The paths of a cell, each once; one separator at either end of a path is left out.

        Raises BadInput where a quote is not closed or a separator lacks a blank, and for a cell without any key.
        """
        paths: list[list[str]] = [[]]
        at: int | None = 0
        while at is not None:
            key, end = self._key(cell, at)
            paths[-1].append(key)
            at = end and end.end()
            if end and self.each and end[0] == (self.each.strip() or self.each):
                paths.append([])
        found = dict.fromkeys(tuple(path[not path[0] : len(path) - (not path[-1])]) for path in paths)
        found.pop((), None)
        if not found:
            raise BadInput(f'"{shorten(cell)}" has no key.')
        return [*found]

    def _key(self, cell: str, at: int) -> tuple[str, re.Match[str] | None]:
        """The key that begins at a place, and the separator after it, None at the end."""
        if quoted := _QUOTED.match(cell, at):
            end = self._signs.match(cell, quoted.end())
            if quoted.end() == len(cell) or (end and self._separates(cell, end)):
                return quoted[1].replace('""', '"'), end
        end = next((one for one in self._signs.finditer(cell, at) if self._separates(cell, one)), None)
        text = cell[at : end.start() if end else len(cell)].strip()
        if text.startswith('"') and text.count('"') % 2:
            raise BadInput(f"A quote in {shorten(cell)} is not closed; write it twice in a key in quotes.")
        return self._escaped.sub(r"\1", text) if self._escaped else text, end

    def _separates(self, cell: str, found: re.Match[str]) -> bool:
        """Whether a sign separates keys, and is not in one; raises BadInput where that is unclear."""
        sign = found[0]
        before, after = cell[max(0, found.start() - 1) : found.start()], cell[found.end() : found.end() + 1]
        if before == "\\" and self._escaped:
            return False
        blanks = before.isspace(), after.isspace()
        has = blanks[0] or (not before and blanks[1]), blanks[1] or (not after and blanks[0])  # cells are trimmed
        needs = self._needs[sign]
        if all(one or not needed for one, needed in zip(has, needs, strict=True)):
            return True
        if all(needs) and (any(has) or not _IN_WORDS.issuperset(sign)):
            raise BadInput(
                f'"{shorten(cell)}" has {sign} without blanks around it; write them, or the key in quotes. A separator '
                f'that is given without blanks, such as split "{sign}", needs none.'
            )
        return False
