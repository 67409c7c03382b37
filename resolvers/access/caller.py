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


ANYONE = Caller()
"""An anonymous caller, where no credential is required."""
