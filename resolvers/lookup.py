"""Lookup: nodes by path, also a former one, and by id.

| field | index | key condition | requests for 1 node | for N nodes |
| --- | --- | --- | --- | --- |
| `location(path: "US/NE")` | table | key `("location#US", "#NE#")` | 1 | 1 |
| `location(id: …)`, `node`, `nodes` | table | key `("id#<id>", "v0")`, then that of the node | 2 | 2 |
| a former path: redirects | table | keys of those of the path and all its prefixes | 1 more a move | 1 more a move |
| a former path: node | table | key that the path has after the move | 1 more a move | 1 more a move |

Each request is a BatchGetItem of up to 100 keys; the ancestors that are selected are read by the request of the nodes.
A node that moves between the read of its id record and its own read is followed, by two more reads.

A redirect leads from a former path to the node that left it last, or with a node above it. Where the node is not there,
or came there otherwise, the path that it had is followed by the next move, and so on in the order of time. Trees whose
version counts no redirects cost nothing.

Batched by the dataloader `Loaders.node`, for a whole response level.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from resolvers.access.grants import may_read
from resolvers.ancestors import kinds_for_all_levels, selected_keys
from resolvers.first_round import first_round
from resolvers.outcomes import Outcome, gather_outcomes, is_error, raise_first_error, then
from resolvers.planning.relations import Selection
from resolvers.session.read_state import Nodes
from resolvers.session.reads import Items
from resolvers.session.request import Request
from store.metadata.history import current_key
from store.metadata.redirects import Departure, departures, path_keys, redirect_key
from store.model.keys import MAX_SORT_KEY_BYTES, Key, Path, id_key, node_key
from store.model.records import Record

MAX_MOVES = 32  # that are followed from one path, as many as a node has tokens of
MAX_STARTS = 32  # moves away from a path or a prefix of it, the last ones, that are followed

_Moves = list[tuple[Key, Departure]]  # away from prefixes of a key


@dataclass
class _Trail:
    """A path that is followed to `key` by `moves`; `node` is what came there by them, or the error of a failed read."""

    key: Key
    moves: list[Departure]
    node: Outcome[Record | None] = None

    def next(self, away: _Moves) -> "_Trail | None":
        """The trail after the next of these moves, None where there is none, or no node can have come with it."""
        later = [(move.left, prefix, move) for prefix, move in away if move.left > self.moves[-1].arrived]
        return _after(self.key, *min(later)[1:], self.moves) if later else None

    def see(self, node: Outcome[Record | None]) -> None:
        """Take the node at the key if it came there by the moves that were followed."""
        tokens = "".join([move.tokens for move in self.moves])
        if is_error(node) or (node is not None and node.came_by.endswith(tokens)):
            self.node = node


def _after(key: Key, prefix: Key, move: Departure, moves: Sequence[Departure] = ()) -> _Trail | None:
    """The trail to a key after a move of a prefix of it; None where the new key would be none."""
    moved = key.moved(prefix, move.target)
    return _Trail(moved, [*moves, move]) if len(moved.sk.encode()) <= MAX_SORT_KEY_BYTES else None


async def follow_redirects(request: Request, missing: Iterable[Key]) -> Nodes:
    """The nodes that redirects lead to from keys without a node, and the errors of failed reads; by the old key.

    The moves away from a path are followed side by side. The node that left it last is taken, if it still exists.
    """
    state = request.state
    origins = [key for key in missing if _may_have_redirects(request, key)]
    found: Nodes = {}
    trails: dict[Key, list[_Trail]] = {}  # by the old key, the one by the last move first
    for key, away in (await _moves_away(request, origins)).items():
        if is_error(away):
            found[key] = away
        else:
            starts = sorted(away, key=lambda start: start[1].left, reverse=True)[:MAX_STARTS]
            trails[key] = [trail for start in starts if (trail := _after(key, *start)) is not None]
    for _ in range(MAX_MOVES):
        open_trails = [trail for some in trails.values() for trail in some if trail.node is None]
        if not open_trails:
            break
        keys = list(dict.fromkeys([trail.key for trail in open_trails]))
        state.read_again(keys)
        nodes = await state.current_nodes(keys)
        for trail in open_trails:
            trail.see(nodes[trail.key])
        trails = {origin: _until_found(some) for origin, some in trails.items()}
        await _go_on(request, trails)
    return found | {origin: some[0].node for origin, some in trails.items() if some and some[0].node is not None}


def _until_found(trails: Sequence[_Trail]) -> list[_Trail]:
    """The trails up to the first one that has found its node: those after it are of nodes that left before."""
    last = next((number for number, trail in enumerate(trails, 1) if trail.node is not None), None)
    return list(trails[:last])


async def _go_on(request: Request, trails: dict[Key, list[_Trail]]) -> None:
    """Replace each trail without its node by the one after the next move, or leave it out."""
    away = await _moves_away(request, [one.key for some in trails.values() for one in some if one.node is None])
    for origin, some in trails.items():
        following: list[_Trail] = []
        for trail in some:
            moves = [] if trail.node is not None else away[trail.key]
            if is_error(moves):
                trail.node = moves
            if trail.node is not None:
                following.append(trail)
            elif not is_error(moves) and (after := trail.next(moves)) is not None:
                following.append(after)
        trails[origin] = following


async def _moves_away(request: Request, keys: Iterable[Key]) -> dict[Key, Outcome[_Moves]]:
    """The moves away from these keys and their prefixes as of now, or the error of a failed read."""
    prefixes = {key: path_keys(key) for key in keys}
    items = list(dict.fromkeys([redirect_key(prefix) for some in prefixes.values() for prefix in some]))
    if not items:
        return {}
    request.state.read_again(items)
    redirects = await request.state.items(items, current=True)
    found: dict[Key, Outcome[_Moves]] = {}
    for key, some in prefixes.items():
        moves: _Moves = []
        found[key] = moves
        for prefix in some:
            item = redirects[redirect_key(prefix)]
            away = then(item, departures)
            if is_error(away):
                found[key] = away
                break
            moves += [(prefix, move) for move in away]
    return found


def _may_have_redirects(request: Request, key: Key) -> bool:
    if not may_read(request.grants, Key(key.pk, "#")):
        return True  # or the reads would disclose whether there is such a tree, and whether it has redirects
    version = request.state.tree_versions.get(key.pk)
    return version is not None and version.aliases > 0


MAX_MOVES_FOLLOWED = 4  # of one node, while it is looked up by its id

NodeKey = Outcome[Key] | None  # of a node, None where no node has the id, or the error of a failed read
Lookup = tuple[str, Path | str]  # a hierarchy with a path, or with a full id such as "location:5074472"


async def find_nodes(request: Request, lookups: Sequence[tuple[Lookup, Selection]]) -> list[Outcome[Record | None]]:
    """The nodes of these lookups, None where there is none; the ancestors that are selected for them are read as well.

    The error of a failed read is in place of each node that needs it.
    """
    request.budget.spend_nodes(len(lookups), "The nodes that are looked up")
    if len(lookups) != 1 or not request.state.is_remote:
        return await _find(request, lookups)
    (((hierarchy, path), selection),) = lookups
    key = None if isinstance(path, str) else node_key(hierarchy, path)
    reads = [] if key is None else first_round(request, key, request.hierarchies[hierarchy], selection)
    if key is None or not reads:
        return await _find(request, lookups)
    found = asyncio.ensure_future(_find(request, lookups))  # first, so that it reads the version of the tree
    lists = [request.state.range_beside(read, key.pk) for read in reads]
    outcomes = await gather_outcomes(cast(list[Awaitable[object]], [found, *lists]))
    raise_first_error(outcomes[:1])  # a list that fails is reported where it is used
    return found.result()


async def _find(request: Request, lookups: Sequence[tuple[Lookup, Selection]]) -> list[Outcome[Record | None]]:
    state = request.state
    cached = await state.cached_nodes([("node", *lookup) for lookup, _ in lookups])
    if cached is not None:
        nodes: Any = state.records_read.nodes
        for record in cached:
            state.partitions_read.add(record.pk)
            nodes[record.pk, record.sk] = record  # a tuple is equal to a Key
        return cached
    keys = await _node_keys(request, [lookup for lookup, _ in lookups])
    found = await state.current_nodes(_keys_to_read(request, lookups, keys))
    keys, found = await _follow_moves(request, lookups, keys, found)
    missing = [
        key
        for (lookup, _), key in zip(lookups, keys, strict=True)
        if isinstance(key, Key) and found[key] is None and _is_path(lookup)
    ]
    redirected = await follow_redirects(request, missing) if missing else {}
    results: list[Outcome[Record | None]] = []
    for (lookup, _), key in zip(lookups, keys, strict=True):
        result = _checked(lookup, found[key] or redirected.get(key)) if isinstance(key, Key) else key
        results.append(result)
        # A path that redirects depends on the trees of all its redirects.
        if isinstance(result, Record) and (result.key == key or state.partitions_read == {result.pk}):
            state.pages.put_lookup(result.pk, ("node", *lookup), result)
    return results


async def _node_keys(request: Request, lookups: Sequence[Lookup]) -> list[NodeKey]:
    """The keys of the nodes: of a path by computation, of an id by its record.

    Where an id leads to a hidden node, nothing more is read and nothing is cached, so that a hidden node costs the same
    reads and time as a missing one.
    """
    state, grants = request.state, request.grants
    ids = [id_key(target) for _, target in lookups if isinstance(target, str)]
    request.scheduler.expect(len(ids))
    found = _places(await state.items(ids, current=grants is not None))
    if state.is_remote and grants is None and (missing := [key for key in ids if found[key] is None]):
        found |= _places(await state.items(missing, current=True))  # a weak read may miss a node that was just created
    keys: list[NodeKey] = []
    for hierarchy, target in lookups:
        if not isinstance(target, str):
            keys.append(node_key(hierarchy, target))
            continue
        key = found[id_key(target)]
        if is_error(key):
            keys.append(key)
            continue
        # Checked for a missing node as well, since the check takes time.
        is_readable = may_read(grants, key or Key(f"{hierarchy}#{target}", "#"))
        keys.append(key if is_readable else None)
        state.is_cacheable &= keys[-1] is not None
    return keys


def _places(records: Items) -> dict[Key, NodeKey]:
    """The keys of nodes by those of their id records, None where there is no node."""
    return {record: then(item, current_key) for record, item in records.items()}


def _keys_to_read(request: Request, lookups: Sequence[tuple[Lookup, Selection]], keys: Sequence[NodeKey]) -> list[Key]:
    """The keys of the nodes, and of the ancestors that are selected for them whatever their level is."""
    nodes: list[Key] = []
    ancestors: list[Key] = []
    for ((hierarchy, _), selection), key in zip(lookups, keys, strict=True):
        if isinstance(key, Key):
            nodes.append(key)
            ancestors += selected_keys(key, kinds_for_all_levels(selection, request.hierarchies[hierarchy]))
    return nodes + ancestors


async def _follow_moves(
    request: Request, lookups: Sequence[tuple[Lookup, Selection]], keys: list[NodeKey], found: Nodes
) -> tuple[list[NodeKey], Nodes]:
    """The same keys and nodes, with those that moved after their id records were read."""
    for _ in range(MAX_MOVES_FOLLOWED):
        moved = _moved(request, lookups, keys, found)
        if not moved:
            break
        before = keys
        keys, found = await _read_moved(request, moved, keys, found)
        if all(keys[index] == before[index] for index in moved):
            break  # there is no such node
    return keys, found


def _moved(
    request: Request, lookups: Sequence[tuple[Lookup, Selection]], keys: Sequence[NodeKey], found: Nodes
) -> dict[int, Key]:
    """The id records, by index, of readable nodes that are not where these records point to."""
    visible = request.state.filter
    return {
        index: id_key(target)
        for index, (((_, target), _), key) in enumerate(zip(lookups, keys, strict=True))
        if isinstance(target, str) and isinstance(key, Key)
        if _checked(("", target), found[key]) is None and (visible is None or visible.shows(key))
    }


async def _read_moved(
    request: Request, moved: Mapping[int, Key], keys: Sequence[NodeKey], found: Nodes
) -> tuple[list[NodeKey], Nodes]:
    """The same keys and nodes, with those to which these id records point as of now."""
    state = request.state
    state.is_cacheable = False  # if there is no node, no tree version proves that there is none later
    items = await state.strong_items(list(dict.fromkeys(moved.values())))
    new_keys = {index: key for index, record in moved.items() if (key := current_key(items[record])) is not None}
    await state.reread_nodes(new_keys.values())
    nodes = await state.current_nodes(new_keys.values())
    return [new_keys.get(index, key) for index, key in enumerate(keys)], found | nodes


def _is_path(lookup: Lookup) -> bool:
    return not isinstance(lookup[1], str)


def _checked(lookup: Lookup, record: Outcome[Record | None]) -> Outcome[Record | None]:
    """The record; None where another node has taken the key of an id's node."""
    target = lookup[1]
    if not isinstance(target, str) or not isinstance(record, Record):
        return record
    return record if record.id == target else None
