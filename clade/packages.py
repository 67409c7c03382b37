"""Guard of the module path: Clade's packages must be its own, and not other modules of their names.

Somebody's `store.py` in a folder that Python searches first would be imported in place of Clade's `store`. This module
imports nothing of Clade; importing it raises ImportError, so it comes before all other imports of `clade`.
"""

import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

PACKAGES = ("clade", "commands", "graph", "resolvers", "store")
HOME = Path(__file__).resolve().parents[1]


def foreign_package(imported: Mapping[str, ModuleType]) -> str | None:
    """The sentence that names a module which hides a package of Clade, and the way out; None where none does.

    The module path is searched for each package that is not `imported` already.
    """
    for name in PACKAGES:
        spec = imported[name].__spec__ if name in imported else PathFinder.find_spec(name)
        for place in _places(spec):
            if not Path(place).resolve().is_relative_to(HOME / name):
                return (
                    f"{place} hides Clade's own package {name}; rename it, or leave its folder out of PYTHONPATH and "
                    "start in another one. (A file of hierarchies may have any name: CLADE_HIERARCHIES=shop/store.py.)"
                )
    return None


def _places(spec: ModuleSpec | None) -> list[str]:
    """The file of a module, or the folders of a package without one."""
    if spec is None:
        return []
    return [spec.origin] if spec.origin else list(spec.submodule_search_locations or [])


if sentence := foreign_package(sys.modules):
    raise ImportError(sentence)
