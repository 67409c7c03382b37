"""What reads are thought to cost before they are made: DynamoDB's read units, and then requests."""

from collections.abc import Iterable
from dataclasses import dataclass

from resolvers.session.records_read import Read
from store.engine.usage import units_of

ITEM_BYTES = 400  # what an ordinary node takes in a table; only the ratio of estimates matters


@dataclass(frozen=True)
class ReadOption:
    """One way to get what is wanted: what to read, what that costs, and how many nodes it brings at most."""

    reads: tuple[Read, ...]
    units: float
    nodes: int

    @classmethod
    def of(cls, reads: Iterable[tuple[Read, int]]) -> "ReadOption":
        """Reads with the number of items that each is thought to bring."""
        pairs = list(reads)
        units = sum([units_of(items * ITEM_BYTES) for _, items in pairs])
        return cls(tuple([read for read, _ in pairs]), units, sum([items for _, items in pairs]))

    @classmethod
    def all(cls, options: Iterable["ReadOption"]) -> "ReadOption":
        """Several ways together, each of which gets a part."""
        parts = list(options)
        reads = tuple([read for part in parts for read in part.reads])
        return cls(reads, sum([part.units for part in parts]), sum([part.nodes for part in parts]))


def cheapest(*options: ReadOption) -> ReadOption:
    return min(options, key=lambda option: (option.units, len(option.reads)))
