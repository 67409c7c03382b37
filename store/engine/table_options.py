"""Table options: capacity, recovery, protection, tags and encryption of a new table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from store.errors import BadInput

MAX_TAGS = 50  # of one table


class Capacity(NamedTuple):
    """Provisioned capacity, in DynamoDB's read and write units per second."""

    read: int
    write: int


@dataclass(frozen=True)
class TableOptions:
    """Options of a new table; without `capacity` it is on demand (paid per request).

    `recovery` is point-in-time recovery (35 days), `protection` deletion protection. None turns them on in AWS, and
    off on an engine at an endpoint.
    """

    recovery: bool | None = None
    protection: bool | None = None
    capacity: Capacity | None = None
    index_capacity: Capacity | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    kms_key: str | None = None

    def __post_init__(self) -> None:
        if self.index_capacity and not self.capacity:
            raise BadInput("--index-units needs --units; add it.")
        if min([1, *(self.capacity or ()), *(self.index_capacity or ())]) < 1:
            raise BadInput("A table and its indexes have at least 1 unit each.")
        if len(self.tags) > MAX_TAGS:
            raise BadInput(f"A table has at most {MAX_TAGS} tags, not {len(self.tags)}.")
