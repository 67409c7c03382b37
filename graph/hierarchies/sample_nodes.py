"""Sample nodes: some paths that the store holds, for example queries that find something."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from graph.hierarchies.example_queries import Sample
from graph.hierarchies.node import Node
from resolvers.planner import list_request
from resolvers.planning.connection_arguments import ConnectionArguments
from resolvers.planning.relations import NoSelection, Relation, RelationKind
from resolvers.restricted_lists import read_pages, read_roots
from resolvers.session.request import Request
from store.engine.protocol import Store
from store.errors import CladeError
from store.model.paths import format_path
from store.model.records import Record

SAMPLE_SECONDS = 2.0  # at most; without samples the examples have made-up paths
_ONE = ConnectionArguments(first=1)
_FIRST_CHILD = Relation(RelationKind.CHILDREN, _ONE, NoSelection())


async def read_samples(store: Store, classes: Sequence[type[Node]]) -> dict[str, Sample]:
    """A sample of each hierarchy by its name, by two requests to the store each; none where it is empty or fails."""
    request = Request(store, {cls.name: cls.definition() for cls in classes})
    found = {}
    with suppress(CladeError, TimeoutError):
        async with asyncio.timeout(SAMPLE_SECONDS):
            for cls in classes:
                page = await read_roots(request, cls.name, _ONE, nodes=True, total=False)
                for root in page.records:
                    found[cls.name] = await _sample(request, cls, root)
    return {name: sample for name, sample in found.items() if sample is not None}


async def _sample(request: Request, cls: type[Node], root: Record) -> Sample | None:
    """The first child of a root, or the root itself; None where its level is one that the classes have not."""
    (children,) = await read_pages(request, [list_request(root, _FIRST_CHILD)])
    records = [] if isinstance(children, Exception) else children.records
    known = [record for record in (*records, root) if record.level in cls.levels]
    counts = {level: count for level, count in root.below.items() if level in cls.levels}
    below = max(counts, key=lambda level: counts[level], default="")
    if not known:
        return None
    return Sample(format_path(root.path), format_path(known[0].path), known[0].level, below)
