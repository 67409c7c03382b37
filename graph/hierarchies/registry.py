"""Served hierarchies: those that the modules named by the settings register."""

import importlib
import sys
from pathlib import Path

from graph.hierarchies.names import check_names
from graph.hierarchies.node import Node, WrongClass
from graph.settings import Settings
from store.errors import BadInput
from store.model.hierarchy import Hierarchy


def served(modules: str | None = None) -> list[type[Node]]:
    """The hierarchy classes of these modules (divided by commas), else of those that the settings name, in order.

    A module is looked for beside the working directory too. Raises BadInput where one is missing, registers nothing, or
    has levels that do not fit together, and where names of the schema clash.
    """
    found: dict[str, type[Node]] = {}
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    for name in (modules or Settings().hierarchies).split(","):
        module = _module(name.strip())
        classes = {cls.name: cls for cls in Node.hierarchies.values() if cls.__module__ == module}
        if not classes:
            raise BadInput(f"{module} registers no hierarchy: it needs a class such as Location(Node, hierarchy=…).")
        try:
            for cls in classes.values():
                cls.definition()
        except ValueError as wrong:
            raise BadInput(f"In {module}: {wrong}") from None
        found |= classes
    check_names(list(found.values()))
    return list(found.values())


def hierarchies(modules: str | None = None) -> dict[str, Hierarchy]:
    """The same as the store knows them, by name."""
    return {cls.name: cls.definition() for cls in served(modules)}


def _module(name: str) -> str:
    if not all(part.isidentifier() for part in name.split(".")):
        raise BadInput(f'CLADE_HIERARCHIES names the module "{name}"; write them like graph.locations,my_hierarchy.')
    try:
        return importlib.import_module(name).__name__
    except WrongClass as wrong:
        raise BadInput(f"In {name}: {wrong}") from None
    except ModuleNotFoundError as error:
        if error.name and name.startswith(error.name):
            raise BadInput(f'CLADE_HIERARCHIES names the module "{name}", which cannot be found.') from None
        raise
