"""Who asks."""

from dataclasses import dataclass

from resolvers.access.grants import Grants


@dataclass(frozen=True)
class Caller:
    """Somebody who sends requests, told apart from others by `id`.

    `name` goes into `changedBy`. `reads` are what it may see and `writes` what it may change, None for everything.
    """

    id: str = ""
    name: str | None = None
    reads: Grants | None = None
    writes: Grants | None = None


ANYONE = Caller()
"""A caller without a credential, where none is asked for."""
