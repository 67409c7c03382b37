"""The options that say which column of a CSV file holds what: `--level city=City`, `--attr store.street=Street`."""

from collections.abc import Iterable
from dataclasses import replace

from store.errors import BadInput
from store.model.hierarchy import Hierarchy, Level
from store.transfer.formats.columns import Columns, LevelColumns


def columns(
    hierarchy: Hierarchy,
    levels: Iterable[str],
    names: Iterable[str],
    ids: Iterable[str],
    attributes: Iterable[str],
    folded: Iterable[str],
) -> Columns:
    """The format that the options describe; raises BadInput with a sentence for what is wrong in them."""
    found: dict[str, LevelColumns] = {}
    for option in levels:
        name, column = _split("--level", option)
        level = hierarchy.level(name)
        if level.name in found:
            raise BadInput(f"--level {name} is given twice.")
        found[level.name] = LevelColumns(level.name, column)
    if not found:
        raise BadInput(
            'A CSV file needs its levels from the root down, as in --level country="Country" --level city=City.'
        )
    _check_order([hierarchy.levels[name] for name in found])
    for option in names:
        level, column = _of_level("--name", hierarchy, found, option)
        found[level.name] = replace(found[level.name], name=column)
    for option in ids:
        level, column = _of_level("--id", hierarchy, found, option)
        found[level.name] = replace(found[level.name], id=column)
    for option in attributes:
        level, attribute, column = _attribute(hierarchy, found, option)
        mapped = {**found[level.name].attributes, attribute: column}
        found[level.name] = replace(found[level.name], attributes=mapped)
    for option in folded:
        level = _mapped("--fold-case", hierarchy, found, option)
        found[level.name] = replace(found[level.name], fold=True)
    return Columns(list(found.values()))


def _split(option: str, value: str) -> tuple[str, str]:
    left, equals, column = value.partition("=")
    if not (left.strip() and equals and column.strip()):
        raise BadInput(f'{option} {value} has no column; write it like {option} {left or "city"}="Column".')
    return left.strip(), column.strip()


def _of_level(option: str, hierarchy: Hierarchy, found: dict[str, LevelColumns], value: str) -> tuple[Level, str]:
    name, column = _split(option, value)
    return _mapped(option, hierarchy, found, name), column


def _mapped(option: str, hierarchy: Hierarchy, found: dict[str, LevelColumns], name: str) -> Level:
    level = hierarchy.level(name)
    if level.name not in found:
        raise BadInput(f"{option} {name} names a level that no --level gives a column.")
    return level


def _attribute(hierarchy: Hierarchy, found: dict[str, LevelColumns], option: str) -> tuple[Level, str, str]:
    target, column = _split("--attr", option)
    name, dot, attribute = target.partition(".")
    if not dot:
        raise BadInput(f'--attr {option} names no attribute; write it like --attr store.street="Column".')
    level = _mapped("--attr", hierarchy, found, name)
    if attribute not in level.attributes:
        known = ", ".join(level.attributes) or "none"
        raise BadInput(f'{level.name} has no attribute "{attribute}"; it has {known}.')
    return level, attribute, column


def _check_order(levels: list[Level]) -> None:
    """Each level must be able to stand under one of those in front of it, or no row could ever be taken."""
    above: set[str | None] = {None}
    for level in levels:
        if not level.under & above:
            places = ", ".join(sorted(name or "the root" for name in level.under))
            raise BadInput(f"--level {level.name.lower()} stands in the wrong place: {level.name} goes under {places}.")
        above.add(level.name)
