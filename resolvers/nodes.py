"""Nodes by path and by id, and what lies above a node: its parent, its root and all its ancestors."""

from collections.abc import Iterable, Sequence
from typing import cast

from resolvers.request import Request
from resolvers.selection import Kind, Relation, Selection
from store.keys import Key, Path, id_key, node_key, parent_sort_key
from store.records import Record

Lookup = tuple[str, Path | str]  # a hierarchy with a path, or with a full id such as "location:5074472"


async def nodes(request: Request, lookups: Sequence[tuple[Lookup, Selection]]) -> list[Record | None]:
    """The nodes at these paths and of these ids, None where there is none, with what is asked above them.

    Paths cost one read for all, ids one more.
    """
    request.spend(len(lookups))
    keys = await _keys(request, [lookup for lookup, _ in lookups])
    above: list[Key] = []
    for key, (lookup, selection) in zip(keys, lookups, strict=True):
        if key is not None:
            above += _asked_above(key, _everywhere(request, lookup[0], selection))
    found = await request.records([key for key in keys if key is not None] + above)
    return [_of_id(lookup, found[key]) if key else None for (lookup, _), key in zip(lookups, keys, strict=True)]


async def _keys(request: Request, lookups: Sequence[Lookup]) -> list[Key | None]:
    """Where the nodes lie: a path tells itself, an id's record has to be read."""
    ids = [target for _, target in lookups if isinstance(target, str)]
    places = await request.get(map(id_key, ids))
    keys: list[Key | None] = []
    for hierarchy, target in lookups:
        if not isinstance(target, str):
            keys.append(node_key(hierarchy, target))
            continue
        place = places[id_key(target)]
        gone = place is None or "deleted" in place
        request.met_unknown_id |= gone
        keys.append(None if place is None or gone else Key(cast(str, place["tree"]), cast(str, place["key"])))
    return keys


def _of_id(lookup: Lookup, record: Record | None) -> Record | None:
    """The record, unless another node has come to lie where the id's record pointed to."""
    target = lookup[1]
    return record if record is None or not isinstance(target, str) or record.id == target else None


def _everywhere(request: Request, hierarchy: str, selection: Selection) -> set[Kind]:
    """What is asked above a node whatever its level turns out to be."""
    levels = [
        {relation.kind for relation in selection.on(hierarchy, level)}
        for level in request.hierarchies[hierarchy].levels
    ]
    return set.intersection(*levels)


def _asked_above(key: Key, kinds: set[Kind]) -> list[Key]:
    above = ancestor_keys(key)
    if Kind.ANCESTORS in kinds:
        return above
    return above[:1] * (Kind.ROOT in kinds) + above[-1:] * (Kind.PARENT in kinds)


def ancestor_keys(key: Key) -> list[Key]:
    """The keys of all ancestors, the root first."""
    keys: list[Key] = []
    sk = key.sk
    while len(sk) > 1:
        sk = parent_sort_key(sk)
        keys.append(Key(key.pk, sk))
    return keys[::-1]


async def above(request: Request, asked: Sequence[tuple[Record, Relation]]) -> list[list[Record]]:
    """For each node its ancestors, or only its root or parent, as the relation's kind says; one read for all.

    A root's own parent is none, its root is itself.
    """
    wanted = [_asked_above(record.key, {relation.kind}) for record, relation in asked]
    request.spend(sum(map(len, wanted)))
    found = await request.records(_flat(wanted))
    results = []
    for (record, relation), keys in zip(asked, wanted, strict=True):
        records = [one for key in keys if (one := found[key]) is not None]
        results.append([record] if relation.kind is Kind.ROOT and record.is_root else records)
    return results


def _flat(keys: Iterable[Iterable[Key]]) -> list[Key]:
    return [key for some in keys for key in some]
