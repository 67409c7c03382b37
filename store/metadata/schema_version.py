"""The version of how hierarchies lie in a table, and what follows from the one that a table has.

It stands in an item of DynamoDB's table, and in SQLite's header. A table without it is of version 1: such were made
before the version was kept.
"""

from store.errors import WrongLayout
from store.model.items import Item
from store.model.keys import Key

LAYOUT = 1
"""What this Clade reads and writes."""

COPYING = -1
"""What a table has into which a copy is being written; nobody can use it until the copy is whole."""

LAYOUT_KEY = Key("!", "layout")  # no hierarchy's: their names begin with a letter


def layout_item(version: int | None = None) -> Item:
    """The item of a version, else of this Clade's."""
    return {"pk": LAYOUT_KEY.pk, "sk": LAYOUT_KEY.sk, "version": LAYOUT if version is None else version}


def layout_in(item: Item | None) -> object:
    """The version that a table's item tells."""
    return 1 if item is None else item.get("version")


def check_supported(name: str, found: object) -> None:
    """Raise WrongLayout for an unfinished copy, and for a table of a version that a newer Clade made."""
    if found == COPYING:
        raise WrongLayout(f'"{name}" holds an unfinished copy; the same clade copy again finishes it.')
    if not isinstance(found, int) or not 0 < found <= LAYOUT:
        raise WrongLayout(f'"{name}" has layout {found}, and this Clade knows up to {LAYOUT}; use a newer Clade.')


def check_layout(name: str, found: object) -> None:
    """Raise WrongLayout unless a table of this version can be read and written."""
    check_supported(name, found)
    if found != LAYOUT:
        raise WrongLayout(f'"{name}" has layout {found}, and this Clade needs {LAYOUT}; run: clade table migrate')
