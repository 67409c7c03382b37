"""What can go wrong, as one tree. Each class carries the code that clients see.

CladeError
├── BadInput            BAD_USER_INPUT      an argument or a row that cannot be taken
│   ├── BadPath         BAD_PATH            a path that cannot exist
│   ├── BadCursor       BAD_CURSOR          a cursor of another list, or none at all
│   ├── WrongLevel      WRONG_LEVEL         a node of another level than asked for
│   └── BudgetExceeded  BUDGET_EXCEEDED     more nodes than one request may return
├── BadData             BAD_DATA            what lies in the table is not what its hierarchy says
├── Conflict            CONFLICT            somebody else wrote first
└── Unavailable         UNAVAILABLE         the store cannot answer now
    └── NoTable         UNAVAILABLE         there is no such table

A message names the value, the limit and the way out; it is shown to clients, so it holds no key of the table.
"""

from typing import ClassVar, Self


class CladeError(Exception):
    """Whatever Clade itself says no to; `str()` of it may be shown to anyone."""

    code: ClassVar[str] = "INTERNAL_SERVER_ERROR"


class BadInput(CladeError):
    code = "BAD_USER_INPUT"


class BadPath(BadInput):
    code = "BAD_PATH"


class BadCursor(BadInput):
    code = "BAD_CURSOR"


class WrongLevel(BadInput):
    code = "WRONG_LEVEL"


class BudgetExceeded(BadInput):
    code = "BUDGET_EXCEEDED"


class BadData(CladeError):
    code = "BAD_DATA"


class Conflict(CladeError):
    """A condition of a commit did not hold, so nothing of it was written.

    `failed` holds the places of the changes whose conditions failed, where the engine tells.
    """

    code = "CONFLICT"

    def __init__(self, message: str, failed: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.failed = failed

    @classmethod
    def over(cls, failed: tuple[int, ...] = ()) -> Self:
        """What both stores say when the conditions of these changes did not hold."""
        return cls("Somebody else wrote first, so nothing was changed; read again and repeat.", failed)


class Unavailable(CladeError):
    code = "UNAVAILABLE"


class NoTable(Unavailable):
    """The table that the settings name does not exist."""
