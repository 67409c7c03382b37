"""Taxonomy files: one `A > B > C` per line, with or without an id before it, in any order."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from store.errors import BadInput
from store.model.hierarchy import Hierarchy
from store.transfer.formats.lines import Lines, lines
from store.transfer.rows import Part, Rejection, Row

_LINE = re.compile(r"(?:(\d+)\s+-\s+)?(.*)", re.DOTALL)
_DIVIDER = re.compile(r"(?<=\s)>(?=\s)")


@dataclass(frozen=True)
class Taxonomy(Lines):
    """All nodes on a line's path are of one `level`, which is allowed under itself; the id is that of the last one.

    Blank lines and those that begin with # are skipped.
    """

    level: str

    @classmethod
    def of(cls, hierarchy: Hierarchy) -> "Taxonomy":
        """The format for a hierarchy with a level that may be a root and is allowed under itself; raises BadInput."""
        for level in hierarchy.levels.values():
            if level.may_be_root and level.name in level.under:
                return cls(level.name)
        raise BadInput(
            f"A taxonomy needs a level that may be a root and is allowed under itself; {hierarchy.name} has none: "
            "use csv or jsonl."
        )

    def rows(self, file: Path) -> Iterator[Row | Rejection]:
        for number, line in lines(file):
            if isinstance(line, Rejection):
                yield line
            elif not line.startswith(b"#"):
                yield self._row(number, line)

    def _row(self, number: int, line: bytes) -> Row | Rejection:
        try:
            text = line.decode()
        except UnicodeDecodeError:
            return Rejection(number, "The line is not valid UTF-8.")
        match = _LINE.fullmatch(text)
        assert match  # noqa: S101 - the pattern takes any text
        path = [segment.strip() for segment in _DIVIDER.split(f" {match[2]} ")]
        parts = [Part(self.level)] * (len(path) - 1)
        return Row(number, path, [*parts, Part(self.level, id=match[1])])
