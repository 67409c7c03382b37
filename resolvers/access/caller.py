"""Caller: the authenticated sender of a request, with its grants."""

from dataclasses import dataclass

from resolvers.access.grants import Grants


@dataclass(frozen=True)
class Caller:
    """A sender of requests, identified by `id`.

    `name` is stored as `changedBy`. `reads` is what it may read and `writes` what it may write, None for everything.
    """

    id: str = ""
    name: str | None = None
    reads: Grants | None = None
    writes: Grants | None = None


class InvalidCredential(Exception):
    """A credential that authenticates nobody; the message is the reason, for the log alone, without any secret."""


ANYONE = Caller()
"""An anonymous caller, where no credential is required."""
