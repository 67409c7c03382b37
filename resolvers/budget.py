"""How a request that asks for more nodes than it may have is refused."""

from store.errors import BudgetExceeded
from store.quantity import quantity


def refusal(what: str, nodes: int, left: int) -> BudgetExceeded:
    """The error for something (`The children of US`) that is so many nodes where fewer are left."""
    return BudgetExceeded(
        f"{what} would be {quantity(nodes, 'node')}, and this request may return {left:,} more. "
        "Ask for fewer with first: and go on with after: in the next request, or raise CLADE_MAX_NODES."
    )
