"""Skipped rows: those that an import leaves out by the texts of their cells, or of their fields in JSON."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from store.errors import BadInput, quantity, shorten
from store.transfer.formats.cells import check_named, text_of


@dataclass
class Skip:
    """The values of columns whose rows are left out. `below` is the number of rows that are left out with one above
    them, and `missing` are the columns that no row had, both of the last reading.
    """

    values: Sequence[tuple[str, str]] = ()
    below: int = 0
    missing: set[str] = field(default_factory=set)
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Skip":
        """The values by texts such as `status=draft`. Raises BadInput."""
        pairs = [text.partition("=") for text in texts]
        if wrong := next((name + equals for name, equals, _ in pairs if not (name and equals)), None):
            raise BadInput(f"--skip {shorten(wrong)} has no column and value; use --skip status=draft.")
        return cls([(name, value.strip()) for name, _, value in pairs])

    @property
    def columns(self) -> set[str]:
        return {column for column, _ in self.values}

    def start(self) -> None:
        """Forget former rows."""
        self.below, self.missing = 0, self.columns
        self._counts.clear()

    def check(self, header: Sequence[str]) -> None:
        """Raise BadInput for a column that a table does not have."""
        check_named("--skip", self.columns, header)
        self._index = {column: header.index(column) for column in self.columns}

    def has(self, cells: Sequence[object]) -> bool:
        """Whether a row of cells, some of which may be missing, is left out."""
        row = {column: cells[at] for column, at in self._index.items() if at < len(cells)}
        return any(text_of(row.get(column)).strip() == value for column, value in self.values)

    def takes(self, cells: Sequence[object]) -> bool:
        """The same, and the row is counted."""
        return bool(self.values) and self.takes_object({column: cells[at] for column, at in self._index.items()})

    def takes_object(self, fields: Mapping[str, object]) -> bool:
        """The same of an object of JSON, where a column may be in an inner object, such as `data.status`."""
        for pair in self.values:
            found = inner(fields, pair[0])
            self.missing -= {pair[0]} if found is not None else set()
            if text_of(found).strip() == pair[1]:
                self._counts[pair] += 1
                return True
        return False

    def sentences(self) -> list[str]:
        """What was left out, for a person."""
        found: list[str] = []
        for column, value in dict.fromkeys(self.values):
            pair, count = f"{shorten(column)}={shorten(value)}", self._counts[column, value]
            left_out = f"{quantity(count, 'row')} with {pair}: left out by --skip."
            found.append(left_out if count else f"No row has {pair} of --skip.")
        return [*found, f"{quantity(self.below, 'row')} below these: left out, too."] if self.below else found


def inner(fields: Mapping[str, object], name: str) -> object:
    """The value of a field, also of one in an inner object by a dotted name; None without it."""
    if name in fields or "." not in name:
        return fields.get(name)
    first, _, rest = name.partition(".")
    found = fields.get(first)
    return inner(found, rest) if isinstance(found, dict) else None
