"""Errors, as one tree of classes, each with the code that clients see; the rules that inputs break; and the quantities,
shortened texts and times of messages.

CladeError
├── BadInput            BAD_USER_INPUT      an argument or a row that is invalid
│   ├── BadValue *      BAD_USER_INPUT      a part of an edit's input that is invalid
│   ├── BadPath *       BAD_PATH            a path that is invalid
│   ├── BadCursor       BAD_CURSOR          a cursor of another list, or an invalid one
│   │   └── CursorExpired   CURSOR_EXPIRED  a cursor of the change feed that is too old
│   ├── WrongLevel *    WRONG_LEVEL         a node of another level than requested
│   ├── BudgetExceeded  BUDGET_EXCEEDED     more nodes than one request may return
│   ├── NotFound *      NOT_FOUND           a node to change that does not exist
│   ├── AlreadyExists * ALREADY_EXISTS      a path or an id that another node has
│   ├── Taken *         TAKEN               a unique value that another node has
│   ├── Misplaced *     MISPLACED           a node whose level is not allowed at its place
│   ├── NotEmpty *      NOT_EMPTY           a node to delete that has children
│   ├── TooLarge *      TOO_LARGE           a change of more items than one transaction holds
│   └── Faults                              several faults of one input, with the code of the first
├── BadData             BAD_DATA            stored data that does not fit its hierarchy
│   └── DamagedItem     BAD_DATA            an item whose content cannot be read
├── Forbidden           FORBIDDEN           an operation that this server does not allow
├── NotIndexed          NOT_INDEXED         a search of which items are missing
├── Conflict *          CONFLICT            a concurrent write came first, or a move is running there
└── Unavailable         UNAVAILABLE         the store cannot be used now
    ├── Uncertain       UNAVAILABLE         the outcome of a change is unknown
    ├── NoTable         UNAVAILABLE         the table does not exist
    ├── WrongTable      UNAVAILABLE         a table that is not Clade's, or without what Clade needs
    │   └── WrongLayout     UNAVAILABLE     a table of another version of the schema
    └── Damaged         UNAVAILABLE         a table whose content was lost or changed on disk

Those with a star are faults (`Fault`), each with the rule that is broken; a mutation tells no other errors as faults.

A message names the value, the limit and the way out; it is shown to clients, so it holds no key of the table but that
of a damaged item, which is not shown to callers who may read only a part.
"""

import json
import math
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from enum import StrEnum
from typing import ClassVar, Self

UNCERTAIN = "It is unknown whether the change was made."
MAX_FAULTS = 100  # of one input that are told: a list may have as many wrong elements as its input has room for
CHECK_HINT = "Run clade check, then clade repair."
SHOWN_CHARACTERS = 60  # of a text in a message
MAX_SUGGESTED_CHARACTERS = 64  # of a name for which a similar one is looked for
# Control characters, ends of lines, overrides of the direction of a line, and lone surrogates, which no encoding has.
# Joiners and the blanks of other scripts belong to names.
OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Rule(StrEnum):
    """The rules that an input can break, as clients see them: each fault has one, so that a form can say it in its own
    words.
    """

    REQUIRED = "required"
    EMPTY = "empty"
    TYPE = "type"
    MINIMUM = "minimum"
    MAXIMUM = "maximum"
    MAX_LENGTH = "maxLength"
    MAX_ITEMS = "maxItems"
    PATTERN = "pattern"
    CHARACTERS = "characters"
    DUPLICATE = "duplicate"
    PATH = "path"
    DEPTH = "depth"
    MISSING = "missing"
    TAKEN = "taken"
    LEVEL = "level"
    MISPLACED = "misplaced"
    SIBLING = "sibling"
    NOT_EMPTY = "notEmpty"
    TOO_LARGE = "tooLarge"
    CONFLICT = "conflict"
    MORE = "more"


class CladeError(Exception):
    """The base of all errors that Clade raises itself; its message may be shown to anyone."""

    code: ClassVar[str] = "INTERNAL_SERVER_ERROR"

    def bare(self) -> Self:
        """This error without its traceback and causes, to be cached: these hold everything that was read for it."""
        self.__traceback__ = self.__context__ = self.__cause__ = None
        return self


class Fault(CladeError):
    """What is wrong with the input of an edit, or keeps it from being made now.

    `field` is the part of the input that is at fault, by names as in Python (`("attributes", "url")`), `rule` what it
    breaks, and `edit` the place of the edit among several, from 0.
    """

    field: tuple[str, ...] = ()
    edit: int | None = None
    rule: Rule

    def __init__(self, message: str, rule: Rule | None = None) -> None:
        super().__init__(message)
        if rule is not None:
            self.rule = rule

    def at(self, *field: str) -> Self:
        """This fault, of this part of an input."""
        self.field = field
        return self

    def of(self, what: str) -> Self:
        """This fault, whose message says of what it is."""
        self.args = (f"{what}: {self}",)
        return self


class BadInput(CladeError):
    code = "BAD_USER_INPUT"


class BadValue(BadInput, Fault):
    def __init__(self, message: str, rule: Rule) -> None:
        super().__init__(message, rule)


class BadPath(BadInput, Fault):
    code = "BAD_PATH"
    rule = Rule.PATH


class BadCursor(BadInput):
    code = "BAD_CURSOR"


class WrongLevel(BadInput, Fault):
    code = "WRONG_LEVEL"
    rule = Rule.LEVEL


class BudgetExceeded(BadInput):
    code = "BUDGET_EXCEEDED"


class CursorExpired(BadCursor):
    code = "CURSOR_EXPIRED"


class NotFound(BadInput, Fault):
    code = "NOT_FOUND"
    rule = Rule.MISSING


class AlreadyExists(BadInput, Fault):
    code = "ALREADY_EXISTS"
    rule = Rule.TAKEN


class Taken(BadInput, Fault):
    code = "TAKEN"
    rule = Rule.TAKEN


class Misplaced(BadInput, Fault):
    code = "MISPLACED"
    rule = Rule.MISPLACED


class NotEmpty(BadInput, Fault):
    code = "NOT_EMPTY"
    rule = Rule.NOT_EMPTY


class TooLarge(BadInput, Fault):
    code = "TOO_LARGE"
    rule = Rule.TOO_LARGE


class Faults(BadInput):
    """Several faults of one input; message and code are those of the first."""

    def __init__(self, errors: Sequence[Fault]) -> None:
        super().__init__(str(errors[0]))
        self.errors, self.code = errors, errors[0].code  # type: ignore[misc]


class BadData(CladeError):
    code = "BAD_DATA"


class DamagedItem(BadData):
    """The item at a key has a content of the wrong shape, which is the `problem`."""

    def __init__(self, pk: str, sk: str, problem: str) -> None:
        super().__init__(f'The item "{pk}", "{sk}" is damaged: {problem}. {CHECK_HINT}')
        self.sk = sk
        self.problem = problem


class Forbidden(CladeError):
    code = "FORBIDDEN"


class NotIndexed(CladeError):
    """Search items are missing, so that an answer could lack something."""

    code = "NOT_INDEXED"


class Conflict(Fault):
    """A condition of a commit was not fulfilled, so nothing of it was written.

    `failed` are the indexes of the changes whose conditions failed, where the engine reports them.
    """

    code = "CONFLICT"
    rule = Rule.CONFLICT

    def __init__(self, message: str, failed: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.failed = failed

    @classmethod
    def over(cls, failed: tuple[int, ...] = ()) -> Self:
        """The error of both stores when the conditions of these changes were not fulfilled."""
        return cls("Another write came first, so nothing was changed; read again and retry.", failed)


class Unavailable(CladeError):
    code = "UNAVAILABLE"


class IndexBehind(Unavailable):
    """An index is behind the table, so that not all nodes of a deletion are known."""

    def __init__(self, node_id: str) -> None:
        super().__init__(f"The index of the table is behind, so not all nodes below {node_id} are known; retry later.")


class Uncertain(Unavailable):
    """A change may or may not have been made: the store's answer was lost, and a read cannot settle it.

    Clients see `extensions.uncertain: true`. After any other error a change was not made.
    """

    @classmethod
    def after(cls, error: CladeError) -> Self:
        """The error of a change that may have been made before `error` occurred."""
        return cls(f"{error} {UNCERTAIN}")


class NoTable(Unavailable):
    """The table of the settings does not exist."""


class WrongTable(Unavailable):
    """The table is not Clade's, or its engine lacks something that Clade needs."""


class WrongLayout(WrongTable):
    """The table has a version of the schema that this version of Clade does not read."""


class Damaged(Unavailable):
    """The content of the table is corrupt: bytes were lost or changed on their way to the disk or on it."""


class FaultList:
    """The faults of one input that were found so far, so that a client learns of all of them at once."""

    def __init__(self, errors: Iterable[Fault] = ()) -> None:
        self.errors = [*errors]

    def add(self, error: Fault | Faults) -> None:
        self.errors += error.errors if isinstance(error, Faults) else [error]

    def collecting(self, *field: str) -> "_Collecting":
        """Collect a fault of the block, and end the block; faults without a field get this one.

        Errors that are no faults, such as a spent budget, pass.
        """
        return _Collecting(self, field)

    def below(self, *field: str) -> "_Collecting":
        """As `collecting`, where the field of a fault is a part of this one, such as the place of an element."""
        return _Collecting(self, field, is_whole=True)

    def error(self) -> Fault | Faults:
        """The only fault itself, or all of them."""
        return self.errors[0] if len(self.errors) == 1 else Faults(self.errors)

    def check(self) -> None:
        """Raise the faults, if there are any."""
        if self.errors:
            raise self.error()


class _Collecting:
    """The block of `FaultList.collecting`: a class, since each edit has several, and a generator is slower."""

    def __init__(self, faults: FaultList, field: tuple[str, ...], *, is_whole: bool = False) -> None:
        self._faults, self._field, self._is_whole = faults, field, is_whole

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if not isinstance(error, Fault | Faults):
            return False
        for one in error.errors if isinstance(error, Faults) else [error]:
            if self._is_whole or not one.field:
                one.at(*self._field, *one.field)
            self._faults.errors.append(one)
        return True


def quantity(number: int, thing: str, things: str = "") -> str:
    """`1 node`, `2,500 nodes`; `things` where that is not the singular with an s."""
    return f"{number:,} {thing if number == 1 else things or f'{thing}s'}"


def install_hint(*packages: str) -> str:
    """The end of a message about packages that are missing: how they come to where this runs."""
    return f"install with: {shlex.join([sys.executable, '-m', 'pip', 'install', *packages])}"


def shell_words(words: Iterable[str]) -> str:
    """Words as a shell reads them; those with characters that are not printable as in Bash, Zsh and POSIX.1-2024, with
    the bytes of these in octal numbers: `$'a\\033b'`.
    """
    return " ".join([_escaped(word) if OBEYED.search(word) else shlex.quote(word) for word in words])


def _escaped(word: str) -> str:
    quoted = re.sub(r"[\\']", r"\\\g<0>", word)
    return f"$'{OBEYED.sub(_in_octal, quoted)}'"


def _in_octal(match: re.Match[str]) -> str:
    return "".join([f"\\{byte:03o}" for byte in match[0].encode("utf-8", "surrogateescape")])


def shorten(text: str, limit: int = SHOWN_CHARACTERS) -> str:
    """`text` for a message: at most `limit` characters, those that cannot be printed replaced."""
    clean = text[:limit]
    if not clean.isprintable():
        clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in clean)
    return clean + ("…" if len(text) > limit else "")


def shown(value: object) -> str:
    """A value of any type and depth for a message, as JSON where it can be."""
    if isinstance(value, float) and math.isinf(value):
        return "a number beyond 1.8e308"
    if isinstance(value, str):
        value = value[: SHOWN_CHARACTERS + 1]  # JSON of all of a long text takes its time, for each of many errors
    try:
        return shorten(json.dumps(value, ensure_ascii=False))
    except TypeError:
        return shorten(repr(value))
    except RecursionError:
        return "a value that is nested too deeply"


def shown_address(address: str) -> str:
    """A web address for a message, without what may be secret in it: credentials, query and fragment."""
    start, divider, rest = re.split("[?#]", address, maxsplit=1)[0].partition("//")
    host, slash, path = rest.partition("/")
    return shorten(f"{start}{divider}{host.rpartition('@')[2]}{slash}{path}", 200)


def suggestion(name: str, names: Iterable[str]) -> str:
    """` Did you mean COUNTRY?`, the most similar of the names in any case, or nothing."""
    by_lower = {one.lower(): one for one in names}
    near = get_close_matches(name[:MAX_SUGGESTED_CHARACTERS].lower(), by_lower, n=1)
    return f" Did you mean {by_lower[near[0]]}?" if near else ""


def rfc3339(seconds: float) -> str:
    """A time as text in UTC (RFC 3339, milliseconds); `seconds` since 1970."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
