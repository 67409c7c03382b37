"""What reading costs: requests, items and DynamoDB's read units."""

from dataclasses import dataclass

UNIT_BYTES = 4096  # one read unit is one strongly consistent read of up to 4 KB, or two eventually consistent ones


@dataclass(slots=True)
class Reads:
    """The tally that every reading verb of a store adds to.

    `requests` are calls that reach the engine, `items` what they returned, `units` DynamoDB's read capacity units.
    """

    requests: int = 0
    items: int = 0
    units: float = 0.0

    def add(self, *, items: int, units: float) -> None:
        """One request more, with what it brought and cost."""
        self.requests += 1
        self.items += items
        self.units += units


def units_of(size: int, *, strong: bool = False) -> float:
    """What reading `size` bytes in one go costs; reading nothing costs as much as reading little.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
    """
    return max(1, -(-size // UNIT_BYTES)) * (1.0 if strong else 0.5)
