"""Shared arguments: those that several fields of the schema take."""

from collections.abc import Collection
from inspect import Parameter

import strawberry

from graph.types.field import REQUIRED, argument
from graph.types.scalars import Path
from store.errors import BadInput
from store.text import shorten

FIRST = argument("first", int | None, "Maximum number of items, from the start of the list; all without it.")
AFTER = argument("after", str | None, "Only items after this cursor, such as the `endCursor` of the page before.")
HIERARCHY = argument("hierarchy", str, 'Name of the hierarchy, such as "location".', default=REQUIRED)


def id_argument(description: str) -> Parameter:
    """A required `id`."""
    return argument("id", strawberry.ID, description, default=REQUIRED)


def path_argument(description: str) -> Parameter:
    """A required `path`."""
    return argument("path", Path, description, default=REQUIRED)


def served_hierarchy(served: Collection[str], name: str) -> str:
    """The name in a `hierarchy` argument. Raises BadInput for a hierarchy that is not served."""
    if name not in served:
        raise BadInput(f'There is no hierarchy "{shorten(name)}"; use the name of one that is served.')
    return name
