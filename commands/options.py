"""Arguments and options that several commands have."""

from typing import Annotated

import typer

from graph.hierarchies.registry import hierarchies
from store.errors import BadInput
from store.model.hierarchy import Hierarchy

StoreUrl = Annotated[
    str | None,
    typer.Option("--store", help="Store URL instead of CLADE_STORE, such as sqlite:///clade.db.", metavar="URL"),
]
HierarchyName = Annotated[str, typer.Argument(help="Name of a hierarchy, such as location.", metavar="HIERARCHY")]
OptionalHierarchy = Annotated[
    str | None,
    typer.Argument(help="Name of a hierarchy, such as location; all served ones by default.", metavar="HIERARCHY"),
]


def hierarchy_named(name: str) -> Hierarchy:
    """The served hierarchy of this name. Raises BadInput."""
    served = hierarchies()
    if name not in served:
        raise BadInput(f'Unknown hierarchy "{name}"; CLADE_HIERARCHIES has {", ".join(served)}.')
    return served[name]
