"""Read usage: requests, items and DynamoDB's read capacity units, with a limit for the units."""

from dataclasses import dataclass

from store.engine.read_trace import ReadTrace
from store.errors import BudgetExceeded


@dataclass(slots=True)
class CallStats:
    """Counts since the store was made: `made` are calls of the store, each of one attempt or more.

    `retried` are attempts after the first, `throttled` responses that ask for a lower rate, `failed` calls without a
    response, `skipped` calls that an open circuit breaker rejected, and `is_silent` is whether it is open.
    """

    made: int = 0
    retried: int = 0
    throttled: int = 0
    failed: int = 0
    skipped: int = 0
    is_silent: bool = False


UNIT_BYTES = 4096  # one read unit is one strongly consistent read of up to 4 KB, or two eventually consistent ones
LEAST_UNITS = 0.5  # of any request
REQUESTS_A_UNIT = 0.5  # of the limit, since a request takes time however little it returns
PAGE_UNITS = 128.0  # of the largest page, 1 MB, eventually consistent


@dataclass(slots=True)
class ReadUsage:
    """The counts that each reading method of a store checks before a request to the engine, and adds to after it.

    `requests` are calls that reach the engine, `items` those that they returned, `units` DynamoDB's read capacity
    units. At most `limit` units are allowed, and half as many requests; requests that run when it is reached still
    count.
    """

    requests: int = 0
    items: int = 0
    units: float = 0.0
    limit: float = float("inf")
    refusal: BudgetExceeded | None = None
    """The error of the reads that the limit has rejected."""
    trace: ReadTrace | None = None
    """Lists each call, if that was requested."""

    def add(self, *, items: int, units: float) -> None:
        """Count one request with its items and units."""
        self.requests += 1
        self.items += items
        self.units += units

    def include(self, other: "ReadUsage") -> None:
        """Add the counts of another usage."""
        self.requests += other.requests
        self.items += other.items
        self.units += other.units

    def check(self, planned: int = 1) -> None:
        """Raise BudgetExceeded where the next `planned` requests would pass the limit even if they return nothing."""
        if self.units + planned * LEAST_UNITS > self.limit or self.requests + planned > self.limit * REQUESTS_A_UNIT:
            self.refusal = BudgetExceeded(
                f"The request needs more than {self.limit:g} read units, or {self.limit * REQUESTS_A_UNIT:g} requests "
                "to the store. Ask for less in each, with first: and after:, or raise CLADE_MAX_READ_UNITS."
            )
            raise self.refusal

    def renew(self, units: float) -> None:
        """Allow so many more units."""
        self.limit, self.refusal = self.units + units, None


def units_of(size: int, *, strong: bool = False) -> float:
    """The read capacity units of one request that reads `size` bytes; 0 bytes cost as much as 1.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
    """
    return max(1, -(-size // UNIT_BYTES)) * (1.0 if strong else 0.5)
