"""Budgets of one request: the nodes, fields and bytes of its response, and the read units of the store.

Nodes are spent where they are read, so what is too much is an error of the field that asked for it, and the rest of the
response stands. Past the others there is no response: whatever came after would not be served either.
"""

from dataclasses import dataclass

from store.engine.usage import ReadUsage
from store.errors import BudgetExceeded
from store.text import quantity

RELATION_FIELDS = 10  # what a field that leads to nodes counts as: finding them takes ten times as long as a leaf


@dataclass(frozen=True)
class BudgetLimits:
    """The budgets that each request begins with; settings of the same names have the defaults."""

    nodes: int = 10_000
    fields: int = 120_000
    bytes: int = 16_000_000
    read_units: float = 2_000.0


class ResponseTooLarge(BudgetExceeded):
    """The response has more fields or bytes than it may have, so that there is none."""


class Budget:
    """The nodes, fields and bytes that a response may still have."""

    def __init__(self, limits: BudgetLimits = BudgetLimits(), reads: ReadUsage | None = None) -> None:
        """`reads` have a limit of their own."""
        self.limits = limits
        self._reads = ReadUsage() if reads is None else reads
        self.begin_again()

    def begin_again(self) -> None:
        """Give back everything: the response is made anew."""
        self.nodes_left = self.limits.nodes
        self.fields_left = self.limits.fields
        self.bytes_left = self.limits.bytes
        self._refusal: ResponseTooLarge | None = None

    @property
    def refusal(self) -> BudgetExceeded | None:
        """Why there is no response, once there is none."""
        return self._refusal or self._reads.refusal

    def spend_nodes(self, nodes: int, what: str = "What is asked") -> None:
        """Take nodes; raises BudgetExceeded, taking none, where so many are not left."""
        if nodes > self.nodes_left:
            raise refusal(what, nodes, self.nodes_left)
        self.nodes_left -= nodes

    def spend_fields(self, fields: int) -> None:
        """Take fields of objects that are about to be written; raises ResponseTooLarge where so many are not left."""
        self.fields_left -= fields
        if self.fields_left < 0:
            self._refuse(
                f"The response has more than {self.limits.fields:,} fields; one that leads to nodes counts as "
                f"{RELATION_FIELDS}. Ask for fewer nodes, or for fewer fields of each, or raise "
                "CLADE_MAX_RESPONSE_FIELDS."
            )

    def spend_bytes(self, size: int) -> None:
        """Take bytes that were written; raises ResponseTooLarge where so many are not left."""
        self.bytes_left -= size
        if self.bytes_left < 0:
            self.check_size(self.limits.bytes + 1)

    def check_size(self, size: int) -> None:
        """Raise ResponseTooLarge for a response of so many bytes, where it may not be as long."""
        if size > self.limits.bytes:
            self._refuse(
                f"The response has more than {self.limits.bytes:,} bytes. Ask for fewer nodes, or for fewer fields of "
                "each, or raise CLADE_MAX_RESPONSE_BYTES."
            )

    def _refuse(self, message: str) -> None:
        self._refusal = self._refusal or ResponseTooLarge(message)
        raise ResponseTooLarge(message)


def refusal(what: str, nodes: int, left: int) -> BudgetExceeded:
    """The error for something (`The children of US`) that is so many nodes where fewer are left."""
    return BudgetExceeded(
        f"{what} would be {quantity(nodes, 'node')}, and this request may return {left:,} more. "
        "Ask for fewer with first: and go on with after: in the next request, or raise CLADE_MAX_NODES."
    )
