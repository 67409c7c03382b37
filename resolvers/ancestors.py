"""Ancestors: from a node to the nodes above it.

| field | index | key condition | requests for 1 node | for N nodes |
| --- | --- | --- | --- | --- |
| `parent` | table | key `("location#US", "#NE#")` of `"#NE#Omaha#"` | 1 | 1 |
| `ancestors` | table | keys of all prefixes of the sort key | 1 | 1 |

Each request is a BatchGetItem of up to 100 keys. The keys of all ancestors follow from the key of the node, so they are
read for a whole response level at once, and in the same request as a node that is looked up by its path (`lookup.py`).
For a caller who may read a part they begin at her grant root.

Batched for a whole response level.
"""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from resolvers.access.grants import may_read
from resolvers.lists.arguments import Asked, RelationKind, Selection
from resolvers.session.request import Request
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, ancestor_keys
from store.model.records import Record

_WHAT = "The ancestors of the nodes"


async def read_ancestors(request: Request, asked: Sequence[Asked]) -> list[list[Record] | Exception]:
    """For each node its ancestors, the root first, or only its parent, as the relation selects.

    The error of a failed read is in place of each result that needs it.
    """
    state = request.state
    pairs = [(record, relation.kind) for relation, owners in asked for record in owners]
    cache_keys = [(kind, record.pk, record.sk) for record, kind in pairs]
    cached = state.pages.lookups([(record.pk, key) for (record, _), key in zip(pairs, cache_keys, strict=True)])
    if cached is not None:
        request.budget.spend_nodes(sum(map(len, cached)), _WHAT)
        return cached
    wanted = [selected_keys(record.key, {kind}) for record, kind in pairs]
    if (grants := request.grants) is not None:
        wanted = [[key for key in keys if may_read(grants, key)] for keys in wanted]
    request.budget.spend_nodes(sum(map(len, wanted)), _WHAT)
    found = await state.nodes([key for keys in wanted for key in keys])
    results: list[list[Record] | Exception] = []
    for (record, _), cache_key, keys in zip(pairs, cache_keys, wanted, strict=True):
        outcomes = [found[key] for key in keys]
        error = next((outcome for outcome in outcomes if isinstance(outcome, Exception)), None)
        records = [outcome for outcome in outcomes if isinstance(outcome, Record)]
        results.append(error or records)
        if keys and len(records) == len(keys):
            state.pages.put_lookup(record.pk, cache_key, records)
    return results


def selected_keys(key: Key, kinds: set[RelationKind]) -> list[Key]:
    """The keys of the ancestors of a node that relations of these kinds lead to."""
    above = ancestor_keys(key)
    if RelationKind.ANCESTORS in kinds:
        return above
    return above[-1:] if RelationKind.PARENT in kinds else []


# The selections of a compiled query last as long as the query, so this is computed once for all requests.
_kinds: WeakKeyDictionary[Selection, dict[str, set[RelationKind]]] = WeakKeyDictionary()


def kinds_for_all_levels(selection: Selection, hierarchy: Hierarchy) -> set[RelationKind]:
    """The kinds of relations that are selected for nodes of every level, so that the node's level need not be known."""
    cached = _kinds.setdefault(selection, {})
    if hierarchy.name not in cached:
        selected = [{relation.kind for relation in selection.on(hierarchy.name, level)} for level in hierarchy.levels]
        cached[hierarchy.name] = set.intersection(*selected)
    return cached[hierarchy.name]
