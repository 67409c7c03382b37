"""Column options of a table: `--level city=City`, `--name`, `--name-in city.de=Stadt`, `--id`,
`--attr store.street=Street`, `--fold-case`.
"""

from collections.abc import Iterable

from store.errors import BadInput
from store.model.hierarchy import Hierarchy
from store.model.names import canonical_language
from store.transfer.formats.columns import NUMERIC, ColumnOptions, LevelColumns


class NoLevels(BadInput):
    """A table without a column of a level."""


def columns(hierarchy: Hierarchy, options: ColumnOptions, in_keys: Iterable[str] = ()) -> list[LevelColumns]:
    """The columns that the options describe, by level. Raises BadInput for the first wrong option.

    Levels that are `in_keys` have no column of their own.
    """
    mapping = _level_columns(hierarchy, options.levels, in_keys)

    def mapped(option: str, name: str) -> LevelColumns:
        level = hierarchy.level(name)
        if level.name not in mapping:
            raise BadInput(f"{option} {name} needs a column for this level; add --level {name}=Column.")
        return mapping[level.name]

    for option in options.names:
        name, column = _split("--name", option)
        mapped("--name", name).name = column
    for option in options.names_in:
        name, language, column = _split_target("--name-in", option, "no language", 'city.de="Column"')
        mapped("--name-in", name).names[canonical_language(language)] = column
    for option in options.ids:
        name, column = _split("--id", option)
        mapped("--id", name).id = column
    for option in options.attributes:
        name, attribute, column = _split_target("--attr", option, "no attribute", 'store.street="Column"')
        level = mapped("--attr", name)
        defined = hierarchy.levels[level.level].attributes
        if attribute not in defined:
            raise BadInput(f'{level.level} has no attribute "{attribute}"; it has {", ".join(defined) or "none"}.')
        level.attributes[attribute] = column
    for name in options.case_insensitive:
        mapped("--fold-case", name).fold = True
    return list(mapping.values())


def _level_columns(hierarchy: Hierarchy, options: Iterable[str], in_keys: Iterable[str]) -> dict[str, LevelColumns]:
    """The columns of `--level` by level; each level must be allowed below an earlier one, as in the rows."""
    mapping = {name: LevelColumns(name, "") for name in in_keys}
    for option in options:
        name, column = _split("--level", option)
        level = hierarchy.level(name)
        if level.name in mapping:
            raise BadInput(
                f"--level {name} is given twice. Nodes of one level in several columns, such as category, subcategory, "
                "are imported by their paths: write a file with the columns path, level and name."
            )
        if not level.under & {None, *mapping}:
            places = ", ".join(sorted(above or "the root" for above in level.under))
            raise BadInput(f"--level {name} is in the wrong position: {level.name} is allowed under {places}.")
        numeric = frozenset(name for name, attribute in level.attributes.items() if attribute.kind in NUMERIC)
        mapping[level.name] = LevelColumns(level.name, column, numeric=numeric)
    if not mapping:
        raise NoLevels(
            f"No column is named like a level of {hierarchy.name}; name the columns of its levels from the root down, "
            'such as --level country="Country" --level city=City.'
        )
    return mapping


def _split_target(option: str, value: str, lacks: str, example: str) -> tuple[str, str, str]:
    """The level, what is named of it, and the column of `level.what=column`."""
    target, column = _split(option, value)
    level, dot, what = target.partition(".")
    if not dot:
        raise BadInput(f"{option} {value} has {lacks}; use {option} {example}.")
    return level, what, column


def _split(option: str, value: str) -> tuple[str, str]:
    left, equals, column = value.partition("=")
    if not (left.strip() and equals and column.strip()):
        raise BadInput(f'{option} {value} has no column; use {option} {left or "city"}="Column".')
    return left.strip(), column.strip()
