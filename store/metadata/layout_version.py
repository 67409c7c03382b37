"""Layout version of a table, and the checks of it.

It is stored in an item of DynamoDB's table, and in SQLite's `user_version`. A table without it has version 1: such
tables were made before the version was stored.

| version | difference |
| --- | --- |
| 1 | the item of a root has `below`, the numbers of all nodes of its tree by level |
| 2 | it has none: the tree version has these numbers |
"""

from store.errors import WrongLayout
from store.model.items import Item
from store.model.keys import Key

LAYOUT = 2
"""The version that this Clade reads and writes."""

COPYING = -1
"""The version of a table while `clade copy` fills it; it cannot be used until the copy is complete."""

LAYOUT_KEY = Key("!", "layout")  # not that of a hierarchy, whose names begin with a letter


def layout_item(version: int | None = None) -> Item:
    """The item that stores a version, None: that of this Clade."""
    return {"pk": LAYOUT_KEY.pk, "sk": LAYOUT_KEY.sk, "version": LAYOUT if version is None else version}


def layout_in(item: Item | None) -> object:
    """The version in the item of a table."""
    return 1 if item is None else item.get("version")


def check_supported(name: str, found: object) -> None:
    """Raise WrongLayout for an unfinished copy, and for a table of a newer Clade."""
    if found == COPYING:
        raise WrongLayout(f'"{name}" is an unfinished copy; run the same clade copy again to finish it.')
    if not isinstance(found, int) or not 0 < found <= LAYOUT:
        raise WrongLayout(f'"{name}" has layout {found}, and this Clade supports up to {LAYOUT}; use a newer Clade.')


def check_layout(name: str, found: object) -> None:
    """Raise WrongLayout unless this is the version that can be read and written."""
    check_supported(name, found)
    if found != LAYOUT:
        raise WrongLayout(f'"{name}" has layout {found}, and this Clade needs {LAYOUT}; run: clade table migrate')
