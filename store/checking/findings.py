"""What a check finds wrong in a table, and what would make it right."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from store.errors import BadPath
from store.model.attributes import Value
from store.model.items import (
    ABSENT,
    Check,
    Condition,
    Item,
)
from store.model.keys import Key, path_of
from store.model.paths import format_path
from store.text import shorten

MAX_PATH_CHARACTERS = 200
MOST_KEPT = 10_000  # of either kind in one tree: in a table that is wrong all over, no more are held at once


@dataclass(frozen=True, slots=True)
class Fix:
    """The attributes that make the item at a key right, None where one is too many; `values` is None to remove it.

    `when` is what was seen there, `checks` what was seen elsewhere; a mend is only right while both are true.
    """

    key: Key
    values: Mapping[str, Value] | None
    when: Condition
    checks: tuple[Check, ...] = ()

    @classmethod
    def of(cls, key: Key, seen: Item | None, values: Mapping[str, Value], *checks: Check) -> "Fix":
        """The mend that gives these values to the item seen at a key, or to a new one."""
        return cls(key, values, ABSENT if seen is None else {name: seen.get(name) for name in values}, checks)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong in a hierarchy, at a path or, where that is empty, with the hierarchy as a whole."""

    hierarchy: str
    path: str
    wrong: str
    mend: Fix | None = None

    def __str__(self) -> str:
        return f"{self.hierarchy} {self.path}: {self.wrong}" if self.path else f"{self.hierarchy}: {self.wrong}"


@dataclass
class Findings:
    """What is found in one place; `left_out` counts what is too much to be held, nothing is left out uncounted."""

    kept: list[Finding] = field(default_factory=list)
    left_out: int = 0
    _mendable: int = 0

    def add(self, finding: Finding) -> None:
        mendable = finding.mend is not None
        alike = self._mendable if mendable else len(self.kept) - self._mendable
        if alike < MOST_KEPT:
            self.kept.append(finding)
            self._mendable += mendable
        else:
            self.left_out += 1

    def __iter__(self) -> Iterator[Finding]:
        """All that are kept, and one that counts the others."""
        yield from self.kept
        if self.left_out:
            yield replace(self.kept[0], wrong=f"and {self.left_out:,} more in this tree", mend=None)


def place(pk: object, sk: object) -> str:
    """The path at a key as people read it, also where the key is none that a node can have."""
    if isinstance(pk, str) and isinstance(sk, str) and "#" in pk and sk[:1] == sk[-1:] == "#":
        try:
            return shorten(format_path(path_of(pk, sk)), MAX_PATH_CHARACTERS)
        except BadPath:
            pass
    return shorten(f"{pk} {sk}", MAX_PATH_CHARACTERS)


def told(counts: object) -> str:
    """Counts as people read them: `3 CITY, 93 COUNTY`; also what should be counts and is none."""
    if not isinstance(counts, dict):
        return shorten(repr(counts))
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()) if count) or "none"
