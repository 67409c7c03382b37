"""Nodes by path and by id, and what lies above a node: its parent, its root and all its ancestors."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, cast
from weakref import WeakKeyDictionary

from resolvers.access.grants import Visibility
from resolvers.access.redacted_node import RedactedNode
from resolvers.access.visibility import VisibilityFilter
from resolvers.planning.relations import Relation, RelationKind, Selection
from resolvers.redirects import redirected
from resolvers.session.request import Outcomes, Request
from store.metadata.history import current_key
from store.model.items import Item
from store.model.keys import (
    Key,
    Path,
    ancestor_keys,
    id_key,
    node_key,
)
from store.model.records import Record

MAX_FOLLOWED = 4  # times that an id is looked for where it has moved to meanwhile

Place = Key | Exception | None  # of a node, or why it is not known
Lookup = tuple[str, Path | str]  # a hierarchy with a path, or with a full id such as "location:5074472"


async def nodes(request: Request, lookups: Sequence[tuple[Lookup, Selection]]) -> list[Record | Exception | None]:
    """The nodes at these paths and of these ids, None where there is none, with what is asked above them.

    Paths cost one read for all, ids one more, where DynamoDB finds no node of an id another, and two more where a node
    moves meanwhile; paths that nodes have left what `aliases` tells. Where a read fails its error stands in the place
    of each node that needed it.
    """
    request.spend(len(lookups), "The nodes that are looked up")
    kept = _recalled(request, [_question(lookup) for lookup, _ in lookups])
    if kept is not None:
        # A plain pair finds what a Key does.
        request.known.nodes.update({(record.pk, record.sk): record for record in kept})
        return kept
    keys = await _keys(request, [lookup for lookup, _ in lookups])
    wanted: list[Key] = []
    above: list[Key] = []
    for key, (lookup, selection) in zip(keys, lookups, strict=True):
        if isinstance(key, Key):
            wanted.append(key)
            above += _asked_above(key, _everywhere(request, lookup[0], selection))
    found = await request.current_outcomes(wanted + above)
    for _ in range(MAX_FOLLOWED):
        if not (astray := _astray(request, lookups, keys, found)):
            break
        before = keys
        keys, found = await _followed(request, astray, keys, found)
        if all(keys[number] == before[number] for number in astray):
            break  # they are nowhere
    pairs = zip(lookups, keys, strict=True)
    missing = [key for (one, _), key in pairs if isinstance(key, Key) and found[key] is None and _is_path(one)]
    moved = await redirected(request, missing) if missing else {}
    results: list[Record | Exception | None] = []
    for (lookup, _), key in zip(lookups, keys, strict=True):
        result = _of_id(lookup, found[key] or moved.get(key)) if isinstance(key, Key) else key
        results.append(result)
        if isinstance(result, Record):
            _keep(request, _question(lookup), result)
    return results


def _question(lookup: Lookup) -> Hashable:
    """What the node that is looked up is kept under."""
    return "node", *lookup


def _recalled(request: Request, questions: Sequence[Hashable]) -> list[Any] | None:
    """What earlier requests that saw everything have found; None where anything of it has to be read."""
    if request.view is not None or None in (kept := [request.recall(question) for question in questions]):
        return None
    return kept


def _keep(request: Request, question: Hashable, found: object) -> None:
    """Keep what was found, whose records are kept already."""
    if request.view is None:
        request.keep(question, found, records=0)


async def _keys(request: Request, lookups: Sequence[Lookup]) -> list[Place]:
    """Where the nodes lie: a path tells itself, an id's record has to be read.

    Where an id leads out of the caller's sight, nothing more is read, and of its record nothing is kept: what is hidden
    costs the reads, and so the time, of what is not there.
    """
    ids = [id_key(target) for _, target in lookups if isinstance(target, str)]
    request.turn.expect(len(ids))
    is_granted = request.grants is not None
    places = await request.outcomes(ids, keep=not is_granted, now=is_granted)
    if request.version is None and not is_granted and (lost := [key for key in ids if _is_gone(places[key])]):
        places |= await request.outcomes(lost, now=True)  # a weak read may miss what was made a moment ago
    keys: list[Place] = []
    for hierarchy, target in lookups:
        if not isinstance(target, str):
            keys.append(node_key(hierarchy, target))
            continue
        place = places[id_key(target)]
        if isinstance(place, Exception):
            keys.append(place)
            continue
        is_gone = _is_gone(place) or place is None
        led = Key(f"{hierarchy}#{target}", "#") if is_gone else _place(place)
        is_seen = _sight(request, led) is Visibility.WHOLE  # of what is gone, too, since looking takes time
        request.met_unknown_id |= is_gone or not is_seen
        keys.append(led if is_seen and not is_gone else None)
    return keys


def _place(item: Any) -> Key:
    """Where an id's record leads."""
    return Key(cast(str, item["tree"]), cast(str, item["key"]))


def _sight(request: Request, key: Key) -> Visibility:
    """What the caller's grants let see of a key, whatever lies there."""
    return Visibility.WHOLE if request.grants is None else VisibilityFilter(request.grants).sight(key)


def _is_gone(place: Item | Exception | None) -> bool:
    """Whether an id's record, or that there is none, tells that no node has it."""
    return place is None or (not isinstance(place, Exception) and "deleted" in place)


def _astray(
    request: Request, lookups: Sequence[tuple[Lookup, Selection]], keys: Sequence[Place], found: Outcomes
) -> dict[int, Key]:
    """The records of those ids whose nodes, which may be seen, are not where these told: they move meanwhile."""
    view = request.view
    return {
        number: id_key(target)
        for number, (((_, target), _), key) in enumerate(zip(lookups, keys, strict=True))
        if isinstance(target, str) and isinstance(key, Key)
        if _of_id(("", target), found[key]) is None and (view is None or view.sight(key) is Visibility.WHOLE)
    }


async def _followed(
    request: Request, astray: Mapping[int, Key], keys: Sequence[Place], found: Outcomes
) -> tuple[list[Place], Outcomes]:
    """The same keys and outcomes, with those to which these records of ids lead as of now."""
    request.met_unknown_id = True  # where one leads to nowhere, no stamp tells when it comes back
    items = await request.read_now(list(dict.fromkeys(astray.values())))
    led = {number: place for number, key in astray.items() if (place := current_key(items[key])) is not None}
    await request.look_again(led.values())
    there = await request.current_outcomes(led.values())
    return [led.get(number, key) for number, key in enumerate(keys)], found | there


def _is_path(lookup: Lookup) -> bool:
    return not isinstance(lookup[1], str)


def _of_id(lookup: Lookup, record: Record | Exception | None) -> Record | Exception | None:
    """The record, unless another node has come to lie where the id's record pointed to, or its id is withheld."""
    target = lookup[1]
    if not isinstance(target, str) or not isinstance(record, Record):
        return record
    return record if not isinstance(record, RedactedNode) and record.id == target else None


# A plan's selections last as long as the plan, so that this is found once for all requests.
_kinds: WeakKeyDictionary[Selection, dict[str, set[RelationKind]]] = WeakKeyDictionary()


def _everywhere(request: Request, hierarchy: str, selection: Selection) -> set[RelationKind]:
    """What is asked above a node whatever its level turns out to be."""
    known = _kinds.setdefault(selection, {})
    if hierarchy not in known:
        levels = request.hierarchies[hierarchy].levels
        asked = [{relation.kind for relation in selection.on(hierarchy, level)} for level in levels]
        known[hierarchy] = set.intersection(*asked)
    return known[hierarchy]


def _asked_above(key: Key, kinds: set[RelationKind]) -> list[Key]:
    above = ancestor_keys(key)
    if RelationKind.ANCESTORS in kinds:
        return above
    return above[:1] * (RelationKind.ROOT in kinds) + above[-1:] * (RelationKind.PARENT in kinds)


async def above(request: Request, asked: Sequence[tuple[Record, Relation]]) -> list[list[Record] | Exception]:
    """For each node its ancestors, or only its root or parent, as the relation's kind says; one read for all.

    A root's own parent is none, its root is itself. Where a read fails its error stands in the place of each result
    that needed it.
    """
    what = "The nodes above those that were found"
    questions = [(relation.kind, record.pk, record.sk) for record, relation in asked]
    kept = _recalled(request, questions)
    if kept is not None:
        request.spend(sum(map(len, kept)), what)
        return kept
    wanted = [_asked_above(record.key, {relation.kind}) for record, relation in asked]
    own = [relation.kind is RelationKind.ROOT and record.is_root for record, relation in asked]
    request.spend(sum(map(len, wanted)) + sum(own), what)
    found = await request.record_outcomes(_flat(wanted))
    results: list[list[Record] | Exception] = []
    for (record, _), question, keys, is_own in zip(asked, questions, wanted, own, strict=True):
        outcomes = [found[key] for key in keys]
        error = next((one for one in outcomes if isinstance(one, Exception)), None)
        records = [one for one in outcomes if isinstance(one, Record)]
        results.append(error or ([record] if is_own else records))
        if keys and len(records) == len(keys):
            _keep(request, question, records)
    return results


def _flat(keys: Iterable[Iterable[Key]]) -> list[Key]:
    return [key for some in keys for key in some]
