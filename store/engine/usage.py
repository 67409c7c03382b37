"""Read consumption: requests, items and DynamoDB's read units, with a limit for the units."""

from dataclasses import dataclass

from store.errors import BudgetExceeded

UNIT_BYTES = 4096  # one read unit is one strongly consistent read of up to 4 KB, or two eventually consistent ones
LEAST_UNITS = 0.5  # of any request
REQUESTS_A_UNIT = 0.5  # of the limit, since a request takes time however little it brings
PAGE_UNITS = 128.0  # of the largest page, 1 MB, eventually consistent


@dataclass(slots=True)
class ReadUsage:
    """The tally that every reading verb of a store checks before each request to the engine, and adds to after it.

    `requests` are calls that reach the engine, `items` what they returned, `units` DynamoDB's read capacity units. Of
    units there may be `limit`, of requests half as many; it is reached by what was read, so what is under way then
    still adds.
    """

    requests: int = 0
    items: int = 0
    units: float = 0.0
    limit: float = float("inf")
    refusal: BudgetExceeded | None = None
    """Why nothing more is read, once the limit is reached."""

    def add(self, *, items: int, units: float) -> None:
        """One request more, with what it brought and cost."""
        self.requests += 1
        self.items += items
        self.units += units

    def include(self, other: "ReadUsage") -> None:
        """Add what another tally has."""
        self.requests += other.requests
        self.items += other.items
        self.units += other.units

    def check(self, planned: int = 1) -> None:
        """Raise BudgetExceeded where the next so many requests would pass the limit, whatever little they bring."""
        if self.units + planned * LEAST_UNITS > self.limit or self.requests + planned > self.limit * REQUESTS_A_UNIT:
            self.refusal = BudgetExceeded(
                f"The request needs more than {self.limit:g} read units, or {self.limit * REQUESTS_A_UNIT:g} requests "
                "to the store. Ask for less in each, with first: and after:, or raise CLADE_MAX_READ_UNITS."
            )
            raise self.refusal

    def renew(self, units: float) -> None:
        """Let so many units more be read."""
        self.limit, self.refusal = self.units + units, None


def units_of(size: int, *, strong: bool = False) -> float:
    """What reading `size` bytes in one go costs; reading nothing costs as much as reading little.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
    """
    return max(1, -(-size // UNIT_BYTES)) * (1.0 if strong else 0.5)
