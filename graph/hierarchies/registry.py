"""Served hierarchies: those that the modules and files named by the settings declare."""

import re
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from graph.hierarchies.loading import load, shown
from graph.hierarchies.names import check_names, location
from graph.hierarchies.node import Node, declared_in
from graph.settings import Settings
from store.errors import BadInput
from store.model.hierarchy import Hierarchy


def served(names: str | None = None) -> list[type[Node]]:
    """The hierarchy classes of these modules and files (divided by commas), else of those that the settings name.

    A module is looked for in the working directory too. Raises BadInput where one is missing, cannot be loaded,
    declares no hierarchy or one that another declares, has levels that do not fit together, and where names clash.
    """
    found: dict[str, type[Node]] = {}
    for name in dict.fromkeys((names or Settings().hierarchies).split(",")):
        module = load(name.strip())
        for cls in _declared_by(module):
            other = found.setdefault(cls.name, cls)
            if other is not cls:
                raise BadInput(
                    f'{location(cls)}: {cls.title} has hierarchy="{cls.name}", as {other.title} in {location(other)} '
                    "has; rename one of them, or serve only one."
                )
            _check_levels(cls)
    check_names(list(found.values()))
    return list(found.values())


def hierarchies(names: str | None = None) -> dict[str, Hierarchy]:
    """The same as the store's schemas, by name."""
    return {cls.name: cls.definition() for cls in served(names)}


def _declared_by(module: ModuleType) -> Sequence[type[Node]]:
    if classes := declared_in(module.__name__):
        return classes
    file = shown(module.__file__ or module.__name__)
    mine = Path(f"{module.__name__.replace('.', '/')}.py")
    if mine.is_file() and mine.resolve() != Path(file).resolve():
        raise BadInput(
            f'CLADE_HIERARCHIES names the module "{module.__name__}", which is {file} and declares no hierarchy; '
            f"for the file here write CLADE_HIERARCHIES={mine}."
        )
    raise BadInput(f'{file} declares no hierarchy; it needs a class like Location(Node, hierarchy="location").')


def _check_levels(cls: type[Node]) -> None:
    """Raise BadInput where the levels do not fit together, with the line of the level that the sentence names."""
    try:
        cls.definition()
    except ValueError as error:
        words = set(re.findall(r"\w+", str(error)))
        level = next((level for level in cls.levels.values() if level.title in words), cls)
        raise BadInput(f"{location(level)}: {error}") from None
