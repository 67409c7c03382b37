"""Budgets of one request: the nodes, fields and bytes of its response, and the read units of the store.

Nodes are counted where they are read, so only the field that selects too many is an error. The other budgets end the
whole response, since every field after that would fail as well. Of reads that are made together, the error of a failed
one is in the place of its result, its *outcome*.

Nodes of a list that is read whole to be sorted or filtered are no part of the response. They have a budget of their
own, the number that the read units return, so that reads bound their memory. A list that is cached spends it as well,
since comparing its nodes takes as long.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from store.engine import UNIT_BYTES, ReadUsage
from store.errors import BudgetExceeded, quantity

T = TypeVar("T")

NODE_BYTES = 400  # of an ordinary node as stored
COMPARED_A_UNIT = 2 * UNIT_BYTES // NODE_BYTES  # nodes that an eventually consistent read unit returns
RELATION_FIELDS = 10  # cost of a field that returns nodes, in leaf fields: it takes ten times as long


@dataclass(frozen=True)
class BudgetLimits:
    """The budgets of each request; all but the fields are settings."""

    nodes: int = 10_000
    fields: int = 120_000
    """A tree of 5,600 nodes with ten leaves each; the nodes and the bytes bound what is usual."""
    bytes: int = 16_000_000
    read_units: float = 2_000.0

    @property
    def compared(self) -> int:
        """The maximum number of nodes that are sorted or filtered."""
        return int(min(self.read_units, 1e12) * COMPARED_A_UNIT)


class ResponseTooLarge(BudgetExceeded):
    """The response has more fields or bytes than are allowed, so it is not sent."""


class TooManyNodes(BudgetExceeded):
    """A list or lookup (`The children of US`) of `nodes` nodes, None for a number that is not known, where only `left`
    are left; with `compared` they are read to be sorted or filtered.
    """

    def __init__(self, what: str, nodes: int | None, left: int, *, compared: bool = False) -> None:
        size = f"more than {quantity(left, 'node')}" if nodes is None else quantity(nodes, "node")
        fact = f"{what} would be {size}, and this request may"
        if not compared:
            way_out = "Ask for fewer with first: and go on with after: in the next request, or raise CLADE_MAX_NODES."
            super().__init__(f"{fact} return {left:,} more. {way_out}")
            return
        super().__init__(
            f"{fact} sort and filter {left:,} more ({COMPARED_A_UNIT} a read unit). orderBy and where take the whole "
            "list: narrow it with level and conditions on key or path, or ask for pages by key or path, or raise "
            "CLADE_MAX_READ_UNITS."
        )


class Budget:
    """The remaining nodes, fields and bytes of a response."""

    def __init__(self, limits: BudgetLimits = BudgetLimits(), reads: ReadUsage | None = None) -> None:
        """`reads` is the usage of the store, which has a limit of its own."""
        self.limits = limits
        self._reads = ReadUsage() if reads is None else reads
        self.reset()

    def reset(self) -> None:
        """Restore all budgets, for another attempt at the response."""
        self.nodes_left = self.limits.nodes
        self.compared_left = self.limits.compared
        self.fields_left = self.limits.fields
        self.bytes_left = self.limits.bytes
        self._refusal: ResponseTooLarge | None = None

    @property
    def refusal(self) -> BudgetExceeded | None:
        """The error that ended the response, or None."""
        return self._refusal or self._reads.refusal

    def allows(self, requests: int, units: float) -> bool:
        """Whether one of several groups of lists may be read so: by half of the requests that are left."""
        return requests <= self._reads.requests_left / 2 and units <= self._reads.units_left

    def left(self, *, compared: bool) -> int:
        """The nodes that may still be returned, or sorted and filtered."""
        return self.compared_left if compared else self.nodes_left

    def spend_nodes(self, nodes: int, what: str = "This field", *, compared: bool = False) -> None:
        """Take nodes that are returned, or sorted and filtered; raises BudgetExceeded, taking none, where fewer are
        left.
        """
        left = self.left(compared=compared)
        if nodes > left:
            raise TooManyNodes(what, nodes, left, compared=compared)
        if compared:
            self.compared_left -= nodes
        else:
            self.nodes_left -= nodes

    def spend_fields(self, fields: int) -> None:
        """Take fields of objects that are about to be written; raises ResponseTooLarge where fewer are left."""
        self.fields_left -= fields
        if self.fields_left < 0:
            self._end(
                f"The response has more than {self.limits.fields:,} fields; one that leads to nodes counts as "
                f"{RELATION_FIELDS}. Ask for fewer nodes, or for fewer fields of each."
            )

    def spend_bytes(self, size: int) -> None:
        """Take bytes that were written; raises ResponseTooLarge where fewer are left."""
        self.bytes_left -= size
        if self.bytes_left < 0:
            self.check_size(self.limits.bytes + 1)

    def check_size(self, size: int) -> None:
        """Raise ResponseTooLarge for a response of so many bytes that is longer than allowed."""
        if size > self.limits.bytes:
            self._end(
                f"The response has more than {self.limits.bytes:,} bytes. Ask for fewer nodes, or for fewer fields of "
                "each, or raise CLADE_MAX_RESPONSE_BYTES."
            )

    def _end(self, message: str) -> None:
        self._refusal = self._refusal or ResponseTooLarge(message)
        raise ResponseTooLarge(message)


async def gather_outcomes(calls: Sequence[Awaitable[T]]) -> list[T | Exception]:
    """Await calls side by side; an Exception is returned in its place.

    Raises what is no Exception, such as CancelledError after the reads of the request were discarded.
    """
    if len(calls) == 1:  # needs no task
        try:
            return [await calls[0]]
        except Exception as error:
            return [error]
    outcomes: list[T | Exception] = []
    for outcome in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(outcome, BaseException) and not isinstance(outcome, Exception):
            raise outcome
        outcomes.append(outcome)
    return outcomes


def raise_first_error(outcomes: Iterable[object]) -> None:
    """Raise the first Exception among outcomes, if there is one."""
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
