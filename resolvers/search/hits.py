"""Hits of a search: the nodes of its candidates, read and checked, or all nodes of a small scope."""

from collections.abc import Sequence
from typing import NamedTuple

from resolvers.access.redacted_node import RedactedNode
from resolvers.ancestors import kinds_for_all_levels, selected_keys
from resolvers.lookup import find_nodes
from resolvers.planning.relations import Selection
from resolvers.search.candidates import Candidate, Matching, Place
from resolvers.search.former_keys import learn, present_key
from resolvers.search.scope import NOTHING, Scope
from resolvers.session.outcomes import gather_outcomes, raise_first_error
from resolvers.session.records_read import Read
from resolvers.session.request import Request
from store.concurrency import in_chunks
from store.model.hierarchy import Hierarchy
from store.model.keys import Key
from store.model.ranges import subtree
from store.model.records import Record
from store.search.word_items import Words

ATTEMPTS = 3  # to replace candidates that do not match any more


class Hit(NamedTuple):
    place: Place
    record: Record


async def find_hits(
    request: Request,
    hierarchy: Hierarchy,
    scope: Scope,
    matching: Matching,
    found: Sequence[Candidate],
    size: int,
    selection: Selection | None,
) -> tuple[list[Hit], bool]:
    """The nodes of the first candidates, in order: one BatchGetItem with the ancestors that are selected.

    Nodes that do not match any more are replaced by the next candidates; the second value is False where that did not
    end. A node that is not at the key in its item is looked up by its id.
    """
    weight = hierarchy.search.weight if hierarchy.search else None
    hits: list[Hit] = []
    ahead = list(found)
    for _ in range(ATTEMPTS):
        some, ahead = ahead[: size - len(hits)], ahead[size - len(hits) :]
        if not some:
            return hits, True
        for record in await _read(request, hierarchy, some, selection):
            if record is not None and scope.holds(record):
                place = matching.place(record, Words.of(hierarchy, record), weight)
                hits += [Hit(place, record)] if place is not None else []
        hits.sort(key=lambda hit: hit.place)
    return hits, len(hits) == size or not ahead


async def _read(
    request: Request, hierarchy: Hierarchy, some: Sequence[Candidate], selection: Selection | None
) -> list[Record | None]:
    """The nodes of these candidates as they are now, None for those that are gone or hidden."""
    keys = [present_key(request, one.item.key) for one in some]
    kinds = kinds_for_all_levels(selection, hierarchy) if selection is not None else set()
    above: list[Key] = [one for key in keys for one in selected_keys(key, kinds)] if kinds else []
    nodes = await request.state.current_nodes([*keys, *above])
    raise_first_error(nodes[key] for key in keys)
    found: list[Record | None] = []
    for key, one in zip(keys, some, strict=True):
        record = nodes[key]
        is_it = isinstance(record, Record) and not isinstance(record, RedactedNode) and record.id == one.item.id
        found.append(record if is_it and isinstance(record, Record) else None)
    missing = [index for index, record in enumerate(found) if record is None]
    if missing:
        lookups = [((hierarchy.name, some[index].item.id), NOTHING) for index in missing]
        elsewhere = await find_nodes(request, lookups)
        raise_first_error(elsewhere)
        for index, record in zip(missing, elsewhere, strict=True):
            if isinstance(record, Record):
                found[index] = record
                learn(request, some[index].item.key, record.key)
    return found


async def matching_below(
    request: Request, hierarchy: Hierarchy, scope: Scope, matching: Matching, size: int
) -> list[Hit]:
    """The first matching nodes of a small scope, all of whose nodes are read: one Query for each top."""
    state = request.state
    reads = [Read(subtree(*top.record.key), None, False) for top in scope.tops or ()]
    outcomes = await gather_outcomes([state.range(read) for read in reads])
    raise_first_error(outcomes)
    weight = hierarchy.search.weight if hierarchy.search else None
    hits: list[Hit] = []
    for read in reads:
        records = state.records_read.in_range(read.span, None, reverse=False) or []
        async for chunk in in_chunks(records):
            for record in chunk:
                if scope.holds(record) and not isinstance(record, RedactedNode):
                    place = matching.place(record, Words.of(hierarchy, record), weight)
                    hits += [Hit(place, record)] if place is not None else []
    return sorted(hits, key=lambda hit: hit.place)[:size]
