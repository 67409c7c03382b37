"""Read cost: the estimated price of reads before they are made, in DynamoDB's read units, then in requests."""

from collections.abc import Iterable
from dataclasses import dataclass

from resolvers.session.records_read import Read
from store.engine import units_of

ITEM_BYTES = 400  # of an ordinary node; only the ratio of estimates matters


@dataclass(frozen=True)
class ReadOption:
    """One way to read some lists: its reads, their estimated read units, and the maximum number of nodes read."""

    reads: tuple[Read, ...]
    units: float
    nodes: int

    @classmethod
    def of(cls, reads: Iterable[tuple[Read, int]]) -> "ReadOption":
        """The option of these reads, each with the estimated number of its items."""
        pairs = list(reads)
        units = sum([units_of(items * ITEM_BYTES) for _, items in pairs])
        return cls(tuple([read for read, _ in pairs]), units, sum([items for _, items in pairs]))

    @classmethod
    def all(cls, options: Iterable["ReadOption"]) -> "ReadOption":
        """The option of several parts together."""
        parts = list(options)
        reads = tuple([read for part in parts for read in part.reads])
        return cls(reads, sum([part.units for part in parts]), sum([part.nodes for part in parts]))


def cheapest(*options: ReadOption) -> ReadOption:
    return min(options, key=lambda option: (option.units, len(option.reads)))
