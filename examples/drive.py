"""Hierarchy of file drives, one for each account: folders in folders, and files.

Serve it with CLADE_HIERARCHIES=examples/drive.py.
With CLADE_READS=granted and CLADE_WRITES=granted as well, an account whose key or token has the grant write:drive/a91
reads and writes the drive a91 and no other, and no other account reads this one.
"""

from clade import DateTime, Long, Node, attribute


class DriveNode(Node, hierarchy="drive", many="drives"):
    """A drive, or a folder or file in one."""

    modified: DateTime | None = attribute("Time of the last change of its content.")


class Drive(DriveNode, under=None):
    """The drive of one account; its key is the account's name."""


class Folder(DriveNode, under=[Drive, "self"]):
    """A folder."""


class File(DriveNode, under=[Drive, Folder]):
    """A file."""

    bytes: Long | None = attribute("Its size in bytes.")
    media_type: str | None = attribute("Its media type, as in an HTTP Content-Type.")
