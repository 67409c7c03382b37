"""Layout version of a table, and the check of it.

It is stored in an item of DynamoDB's table, and in SQLite's `user_version`.
"""

from store.errors import WrongLayout
from store.model.items import Item
from store.model.keys import Key

LAYOUT = 4
"""The version that this Clade reads and writes."""

COPYING = -1
"""The version of a table while `clade copy` fills it; it cannot be used until the copy is complete."""

LAYOUT_KEY = Key("!", "layout")  # not that of a hierarchy, whose names begin with a letter


def layout_item(version: int | None = None) -> Item:
    """The item that stores a version, None: that of this Clade."""
    return {"pk": LAYOUT_KEY.pk, "sk": LAYOUT_KEY.sk, "version": LAYOUT if version is None else version}


def layout_in(item: Item | None) -> object:
    """The version in the item of a table, None where it has none."""
    return None if item is None else item.get("version")


def check_layout(name: str, found: object) -> None:
    """Raise WrongLayout unless this is the version that can be read and written."""
    if found == COPYING:
        raise WrongLayout(f'"{name}" is an unfinished copy; run the same clade copy again to finish it.')
    if found is None:
        raise WrongLayout(f'"{name}" has no layout version; run clade table create, or use another table.')
    if found != LAYOUT:
        raise WrongLayout(
            f'"{name}" has layout {found}, and this Clade needs {LAYOUT}; use the version of Clade that wrote it.'
        )
