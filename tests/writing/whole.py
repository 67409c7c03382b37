"""What must be true of a table after a kill."""

from store.stores import open_store
from tests import invariants
from tests.wandering import Subtree


async def assert_whole(url: str, subtree: Subtree, place: str | None) -> None:
    """Fail unless `clade check` and the tests' own invariants find nothing, and the subtree lies at that place."""
    async with open_store(url) as store:
        await invariants.check(store)
        nodes = await invariants.nodes(store, "category")
    paths = sorted(
        (item["pk"].removeprefix("category#") + item["sk"]).strip("#").replace("#", "/") for item in nodes.values()
    )
    assert paths == ["r", *subtree.below_root(place)]
