"""Findings of a check, and the fixes for them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from store.errors import BadPath, shorten
from store.model.attributes import Value
from store.model.keys import Key, path_of
from store.model.paths import format_path
from store.model.records import ABSENT, UNCONDITIONAL, Check, Condition, Item

MAX_PATH_CHARACTERS = 200
MAX_KEPT = 10_000  # with a fix, and as many without, of one tree: a bound of memory for a table full of errors


@dataclass(frozen=True, slots=True)
class Fix:
    """The values that correct attributes of the item at a key, None to remove one; `values` is None to remove the item,
    and those at the keys of `others`.

    `when` is what was read there, `checks` what was read elsewhere; a fix is only right while both are true.
    """

    key: Key
    values: Mapping[str, Value] | None
    when: Condition
    checks: tuple[Check, ...] = ()
    others: Sequence[Key] = ()

    @classmethod
    def of(cls, key: Key, item: Item | None, values: Mapping[str, Value], *checks: Check) -> "Fix":
        """The fix that gives these values to the item that was read at a key, or to a new one."""
        return cls(key, values, ABSENT if item is None else {name: item.get(name) for name in values}, checks)

    @classmethod
    def removing(cls, keys: Sequence[Key], *checks: Check) -> "Fix":
        """The fix that removes the items at some keys."""
        return cls(keys[0], None, UNCONDITIONAL, checks, keys[1:])


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem at a path of a hierarchy or, where that is empty, of the whole hierarchy; `fix` if there is one."""

    hierarchy: str
    path: str
    problem: str
    fix: Fix | None = None

    def __str__(self) -> str:
        return f"{self.hierarchy} {self.path}: {self.problem}" if self.path else f"{self.hierarchy}: {self.problem}"


@dataclass
class Findings:
    """The findings of one tree; those beyond a bound are only counted, in `omitted`."""

    kept: list[Finding] = field(default_factory=list)
    omitted: int = 0
    _fixable: int = 0

    def add(self, finding: Finding) -> None:
        is_fixable = finding.fix is not None
        same_kind = self._fixable if is_fixable else len(self.kept) - self._fixable
        if same_kind < MAX_KEPT:
            self.kept.append(finding)
            self._fixable += is_fixable
        else:
            self.omitted += 1

    def __iter__(self) -> Iterator[Finding]:
        """All that are kept, and one with the number of the others."""
        yield from self.kept
        if self.omitted:
            yield replace(self.kept[0], problem=f"and {self.omitted:,} more in this tree", fix=None)


def mismatch(name: str, found: str, expected: str) -> str:
    """The problem of an attribute with another value than expected."""
    return f"attribute `{name}` is {found}, expected {expected}"


def value_text(value: object) -> str:
    return "absent" if value is None else shorten(repr(value))


def counts_text(counts: object) -> str:
    """Counts as text: `3 CITY, 93 COUNTY`; also of a value that is none."""
    if not isinstance(counts, dict):
        return value_text(counts)
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()) if count) or "none"


def path_text(pk: object, sk: object) -> str:
    """The path at a key; the key itself where no node can have it."""
    if isinstance(pk, str) and isinstance(sk, str) and "#" in pk and sk[:1] == sk[-1:] == "#":
        try:
            return shorten(format_path(path_of(pk, sk)), MAX_PATH_CHARACTERS)
        except BadPath:
            pass
    return shorten(f"{pk} {sk}", MAX_PATH_CHARACTERS)
