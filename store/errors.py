"""What can go wrong, as one tree. Each class carries the code that clients see.

CladeError
├── BadInput            BAD_USER_INPUT      an argument or a row that cannot be taken
│   ├── BadPath         BAD_PATH            a path that cannot exist
│   ├── BadCursor       BAD_CURSOR          a cursor of another list, or none at all
│   │   └── CursorExpired   CURSOR_EXPIRED  a cursor of the change feed that is too old
│   ├── WrongLevel      WRONG_LEVEL         a node of another level than asked for
│   ├── BudgetExceeded  BUDGET_EXCEEDED     more nodes than one request may return
│   ├── NotFound        NOT_FOUND           a node to change that is not there
│   ├── AlreadyExists   ALREADY_EXISTS      a path or an id that another node has
│   ├── Misplaced       MISPLACED           a node where it may not stand
│   ├── NotEmpty        NOT_EMPTY           a node to delete that has children
│   └── TooLarge        TOO_LARGE           a change of more items than fit into one transaction
├── BadData             BAD_DATA            what lies in the table is not what its hierarchy says
├── Forbidden           FORBIDDEN           something that this server does not allow
├── Conflict            CONFLICT            somebody else wrote first, or is moving what lies there
└── Unavailable         UNAVAILABLE         the store cannot answer now
    ├── Uncertain       UNAVAILABLE         the store does not tell whether a change was made
    ├── NoTable         UNAVAILABLE         there is no such table
    ├── WrongLayout     UNAVAILABLE         a table of another version of Clade
    └── Damaged         UNAVAILABLE         a table that holds what nobody wrote

A message names the value, the limit and the way out; it is shown to clients, so it holds no key of the table.
"""

from typing import ClassVar, Self

UNCERTAIN_HINT = "It is not known whether this was changed; look, or repeat it with the same idempotencyKey."


class CladeError(Exception):
    """Whatever Clade itself says no to; `str()` of it may be shown to anyone."""

    code: ClassVar[str] = "INTERNAL_SERVER_ERROR"

    def bare(self) -> Self:
        """The error without its frames and causes, for one that is kept: these hold all that was read for it."""
        self.__traceback__ = self.__context__ = self.__cause__ = None
        return self


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


class CursorExpired(BadCursor):
    code = "CURSOR_EXPIRED"


class NotFound(BadInput):
    code = "NOT_FOUND"


class AlreadyExists(BadInput):
    code = "ALREADY_EXISTS"


class Misplaced(BadInput):
    code = "MISPLACED"


class NotEmpty(BadInput):
    code = "NOT_EMPTY"


class TooLarge(BadInput):
    code = "TOO_LARGE"


class BadData(CladeError):
    code = "BAD_DATA"


class Forbidden(CladeError):
    code = "FORBIDDEN"


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


class Uncertain(Unavailable):
    """The store did not tell whether it made a change, and nothing that can be read tells it.

    Clients see `extensions.uncertain: true`. Any other error of a change says that it was not made.
    """

    @classmethod
    def after(cls, error: CladeError) -> Self:
        """What is told when a change may have been made before this error came."""
        return cls(f"{error} {UNCERTAIN_HINT}")


class NoTable(Unavailable):
    """The table that the settings name does not exist."""


class WrongLayout(Unavailable):
    """The table lies in a way that this version of Clade does not read."""


class Damaged(Unavailable):
    """The table holds what nobody wrote: bytes were lost or changed on their way to the disk or on it."""
