"""Column options of a CSV file: `--level city=City`, `--name`, `--id`, `--attr store.street=Street`, `--fold-case`."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from store.errors import BadInput
from store.model.hierarchy import Hierarchy, Level
from store.transfer.formats.columns import Columns, LevelColumns


def columns(
    hierarchy: Hierarchy,
    levels: Iterable[str],
    names: Iterable[str],
    ids: Iterable[str],
    attributes: Iterable[str],
    case_insensitive: Iterable[str],
) -> Columns:
    """The column mapping that the options describe. Raises BadInput for the first wrong option."""
    mapping: dict[str, LevelColumns] = {}
    for option in levels:
        name, column = _split("--level", option)
        level = hierarchy.level(name)
        if level.name in mapping:
            raise BadInput(f"--level {name} is given twice.")
        mapping[level.name] = LevelColumns(level.name, column)
    if not mapping:
        raise BadInput(
            'A CSV file needs its levels from the root down, such as --level country="Country" --level city=City.'
        )
    _check_order([hierarchy.levels[name] for name in mapping])
    for field, options in (("name", names), ("id", ids)):
        for option in options:
            name, column = _split(f"--{field}", option)
            level = _mapped(f"--{field}", hierarchy, mapping, name)
            change: dict[str, Any] = {field: column}
            mapping[level.name] = replace(mapping[level.name], **change)
    for option in attributes:
        level, attribute, column = _attribute(hierarchy, mapping, option)
        mapped = {**mapping[level.name].attributes, attribute: column}
        mapping[level.name] = replace(mapping[level.name], attributes=mapped)
    for option in case_insensitive:
        level = _mapped("--fold-case", hierarchy, mapping, option)
        mapping[level.name] = replace(mapping[level.name], fold=True)
    return Columns(list(mapping.values()))


def _split(option: str, value: str) -> tuple[str, str]:
    left, equals, column = value.partition("=")
    if not (left.strip() and equals and column.strip()):
        raise BadInput(f'{option} {value} has no column; use {option} {left or "city"}="Column".')
    return left.strip(), column.strip()


def _mapped(option: str, hierarchy: Hierarchy, mapping: dict[str, LevelColumns], name: str) -> Level:
    level = hierarchy.level(name)
    if level.name not in mapping:
        raise BadInput(f"{option} {name} needs a column for this level; add --level {name}=Column.")
    return level


def _attribute(hierarchy: Hierarchy, mapping: dict[str, LevelColumns], option: str) -> tuple[Level, str, str]:
    target, column = _split("--attr", option)
    name, dot, attribute = target.partition(".")
    if not dot:
        raise BadInput(f'--attr {option} has no attribute; use --attr store.street="Column".')
    level = _mapped("--attr", hierarchy, mapping, name)
    if attribute not in level.attributes:
        attributes = ", ".join(level.attributes) or "none"
        raise BadInput(f'{level.name} has no attribute "{attribute}"; it has {attributes}.')
    return level, attribute, column


def _check_order(levels: list[Level]) -> None:
    """Check that each level is allowed under one of the levels before it; otherwise every row would be rejected."""
    above: set[str | None] = {None}
    for level in levels:
        if not level.under & above:
            places = ", ".join(sorted(name or "the root" for name in level.under))
            raise BadInput(
                f"--level {level.name.lower()} is in the wrong position: {level.name} is allowed under {places}."
            )
        above.add(level.name)
