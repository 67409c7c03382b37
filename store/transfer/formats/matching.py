"""Columns matched by their names with levels and attributes of a hierarchy, as options of an import."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from store.model.attributes import Kind
from store.model.hierarchy import Hierarchy, Level

NUMERIC = frozenset({Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DECIMAL})


@dataclass
class ColumnOptions:
    """The columns of a table as in the command line, such as `city=City` and `store.street=Street`.

    With `tree` it is a tree by parent ids, such as `id=ID,parent=PARENT`; `levels` are texts in its column of levels.
    """

    levels: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)
    case_insensitive: list[str] = field(default_factory=list)
    names_in: list[str] = field(default_factory=list)
    tree: str | None = None

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Each option with its value."""
        if self.tree is not None:
            yield "--tree-by", self.tree
        options = ("--level", self.levels), ("--name", self.names), ("--id", self.ids), ("--attr", self.attributes)
        for option, values in (*options, ("--fold-case", self.case_insensitive), ("--name-in", self.names_in)):
            for value in values:
                yield option, value

    @property
    def is_table(self) -> bool:
        """Whether they name columns of levels or of a tree by parent ids."""
        return bool(self.levels or self.tree)

    def merged(self, other: "ColumnOptions") -> "ColumnOptions":
        """These options, and what only the other ones have."""
        lists = [_merged(first, second) for first, second in zip(self._lists(), other._lists(), strict=True)]
        merged = ColumnOptions(tree=self.tree)
        for mine, both in zip(merged._lists(), lists, strict=True):
            mine += both
        return merged

    def _lists(self) -> tuple[list[str], ...]:
        return self.levels, self.names, self.ids, self.attributes, self.case_insensitive, self.names_in


def match_columns(hierarchy: Hierarchy, header: Sequence[str], *, codes: bool = True) -> ColumnOptions:
    """The columns that are named like a level, such as `Country` or `city_name`, and like their attributes.

    With `codes` a level below another one may have its key in a column such as `product_code`.
    """
    free = _Columns(header)
    options = ColumnOptions()
    levels: dict[str, Level] = {}
    for level in hierarchy.levels.values():
        own = fold(level.name)
        names = [own, f"{own}key", f"{own}name", *(_codes(own, levels) if codes else ())]
        if level.under & {None, *levels} and (key := free.take(*names)):
            levels[level.name] = level
            keys = [key, *free.take_deeper(own)] if level.name in level.under else [key]
            options.levels += [f"{level.name.lower()}={one}" for one in keys]
    for name, level in levels.items():
        own, lower = fold(name), name.lower()
        options.names += [f"{lower}={column}" for column in [free.take(f"{own}name")] if column]
        options.ids += [f"{lower}={column}" for column in [free.take(f"{own}id")] if column]
        for attribute in level.attributes:
            if column := free.take(f"{own}{fold(attribute)}"):
                options.attributes.append(f"{lower}.{attribute}={column}")
    _match_deepest(list(levels.values()), free, options)
    return options


def fold(name: str) -> str:
    """A name without case, spaces and punctuation, so that `Square Feet` is `square_feet`."""
    return "".join(character for character in name.casefold() if character.isalnum())


def _codes(own: str, above: dict[str, Level]) -> list[str]:
    """Columns of codes that are keys of a level without a column of its own name, such as those of products."""
    is_in_groups = any(level.name in level.under for level in [*above.values()][-1:])
    return [f"{own}id", f"{own}code", f"{own}number", *(["sku"] if is_in_groups else [])] if above else []


def _match_deepest(levels: list[Level], free: "_Columns", options: ColumnOptions) -> None:
    """Columns that name no level are of the deepest level that has such an attribute."""
    taken = {option.partition("=")[0] for option in options.attributes}
    for level in reversed(levels):
        for attribute in level.attributes:
            target = f"{level.name.lower()}.{attribute}"
            if target not in taken and (column := free.take(fold(attribute))):
                options.attributes.append(f"{target}={column}")
    if levels:
        lower = levels[-1].name.lower()
        if not any(option.startswith(f"{lower}=") for option in options.names) and (column := free.take("name")):
            options.names.append(f"{lower}={column}")
        if not any(option.startswith(f"{lower}=") for option in options.ids) and (column := free.take("id")):
            options.ids.append(f"{lower}={column}")


_DEEPER = "((sub)+{0}|{0}(level|l)?[2-9])(name)?"  # of a level in itself, whose own column is taken


class _Columns:
    """The columns that are not matched yet, by folded name; of dotted ones also by what is after the last dot."""

    def __init__(self, header: Sequence[str]) -> None:
        self._free: dict[str, list[str]] = {}
        for column in dict.fromkeys(header):  # one that is there twice is matched, and then refused
            for name in dict.fromkeys((fold(column), fold(column.rpartition(".")[2]))):
                if name:
                    self._free.setdefault(name, []).append(column)

    def take(self, *names: str) -> str | None:
        """The column of the first of these names that exactly one has; it is not taken again."""
        for name in names:
            columns = self._free.get(name, [])
            if len(columns) == 1:
                (column,) = columns
                for others in self._free.values():
                    if column in others:
                        others.remove(column)
                return column
        return None

    def take_deeper(self, own: str) -> list[str]:
        """The columns of the same level further down, such as `Subcategory` or `category_2`, in their order."""
        names = [name for name in self._free if re.fullmatch(_DEEPER.format(own), name)]
        return [column for name in names if (column := self.take(name))]


def _merged(first: list[str], second: list[str]) -> list[str]:
    targets = {option.partition("=")[0].lower() for option in first}
    return [*first, *(option for option in second if option.partition("=")[0].lower() not in targets)]
