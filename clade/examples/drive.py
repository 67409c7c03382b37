"""File drives, one for each account: folders in folders, and files.

Serve it with CLADE_HIERARCHIES=clade.examples.drive.
With CLADE_READS=granted and CLADE_WRITES=granted as well, an account whose key or token has the grant write:drive/a91
has its own drive, a91, to itself: it finds no other, and nobody else finds this one.
"""

from clade import DateTime, Long, Node, attribute


class DriveNode(Node, hierarchy="drive", many="drives"):
    """Something in a drive, or the drive itself."""

    modified: DateTime | None = attribute("When its content was last changed.")


class Drive(DriveNode, under=None):
    """The drive of one account; its key is the account's name."""


class Folder(DriveNode, under=[Drive, "self"]):
    """A folder."""


class File(DriveNode, under=[Drive, Folder]):
    """A file."""

    bytes: Long | None = attribute("Its size in bytes.")
    media_type: str | None = attribute("What is in it, as in an HTTP Content-Type.")
