"""Guard of the module path: Clade's packages must be its own, and not other modules of their names.

Somebody's `store.py` in a folder that Python searches first would be imported in place of Clade's `store`. This module
imports nothing of Clade; importing it raises ImportError, so it comes before all other imports of `clade`.
"""

from importlib.machinery import PathFinder
from pathlib import Path

PACKAGES = ("clade", "commands", "graph", "resolvers", "store")
HOME = Path(__file__).resolve().parents[1]


def foreign_package() -> str | None:
    """The sentence that names a module which hides a package of Clade, and the way out; None where none does."""
    for name in PACKAGES:
        spec = PathFinder.find_spec(name)
        places = [] if spec is None else [spec.origin] if spec.origin else list(spec.submodule_search_locations or [])
        for place in places:
            if not Path(place).resolve().is_relative_to(HOME / name):
                return (
                    f"{place} hides Clade's own package {name}; rename it, or leave its folder out of PYTHONPATH and "
                    "start in another one. (A file of hierarchies may have any name: CLADE_HIERARCHIES=shop/store.py.)"
                )
    return None


if sentence := foreign_package():
    raise ImportError(sentence)
