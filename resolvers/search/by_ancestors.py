"""By ancestors: of the nodes that have the first word of a text, those whose ancestors have the words that they lack.

| read | index | key condition | requests |
| --- | --- | --- | --- |
| ancestors | table | their keys, by those in the items of the nodes | one for up to 100 |
| where they are elsewhere | table | keys of a node below each parent, of their ids, of the nodes | three |
| and then | table | keys of the ancestors | one for up to 100 |

Items have the ids of the ancestors as well, so what is found at these keys is known to be them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from resolvers.search.finder import Nodes, Scope
from resolvers.search.pointers import pointed_nodes, present_key
from resolvers.session.budget import raise_first_error
from resolvers.session.request import Request
from resolvers.sorting.search_comparison import Met, SearchComparison
from store.concurrency import in_chunks
from store.kinds.lineage import id_hash, steps
from store.kinds.registry import KINDS
from store.kinds.words import WordItem, WordKind, Words
from store.model.hierarchy import Hierarchy
from store.model.keys import Key, ancestor_keys, parent_sort_key
from store.model.records import Record

MAX_LOST = 100  # parents whose place is looked up


class ByAncestors:
    """The words of a text that ancestors have, of those that were read; `where` is the condition by them."""

    def __init__(self, request: Request, hierarchy: Hierarchy, where: SearchComparison, most: int) -> None:
        """At most `most` ancestors are read for items."""
        self._request, self._hierarchy, self._most = request, hierarchy, most
        self._searched = {
            name: KINDS[WordKind.name].asked(hierarchy, name).attributes or () for name in hierarchy.levels
        }
        self._met: dict[Key, Met] = {}
        self._ids: dict[Key, str] = {}  # of these ancestors, as lineages have them
        self.where = replace(where, above=self._met)

    def words(self, item: WordItem) -> Words | None:
        """The words of an item that the class searches; None of a level that it does not define."""
        searched = self._searched.get(item.level)
        return None if searched is None else item.words(searched)

    async def found(self, scope: Scope, items: Sequence[WordItem], *, is_strong: bool) -> list[WordItem] | None:
        """The items, in their order, of nodes whose ancestors have the words that they lack, or were not found; None
        where these are more than are read.
        """
        if (found := await self._found(scope, items, is_strong=is_strong)) is None:
            return None
        kept, lost = found
        if lost:
            # Where one of them is now shows where the others below the same parent are.
            below = {parent_sort_key(item.at) if item.at.count("#") > 1 else item.at: item for item in lost}
            some = list(below.values())[:MAX_LOST]
            await pointed_nodes(self._request, self._hierarchy.name, some, set(), is_strong=is_strong)
            kept, _ = await self._found(scope, items, is_strong=is_strong) or (kept, lost)
        return kept

    async def _found(
        self, scope: Scope, items: Sequence[WordItem], *, is_strong: bool
    ) -> tuple[list[WordItem], list[WordItem]] | None:
        """The same as far as keys are known, and those of them whose ancestors were not found."""
        cache, ahead, above = self._request.state.pages.cache, list[tuple[WordItem, list[Key]]](), dict[Key, None]()
        async for chunk in in_chunks(items):
            for item in chunk:
                ahead.append((item, ancestor_keys(present_key(cache, item.key))))
                above.update(dict.fromkeys(ahead[-1][1]))
            if len(above) > self._most:
                return None
        await self.read(above, {}, is_strong=is_strong)
        kept: list[WordItem] = []
        lost: list[WordItem] = []
        async for some in in_chunks(ahead):
            for item, keys in some:
                line, words = item.line if scope.moves is None else scope.moves.present(item.line), self.words(item)
                is_lost = [self._ids[key] for key in keys] != steps(line)[:-1]
                if is_lost or (words is not None and self.where.are_above(self.where.unmet(words), keys)):
                    kept.append(item)
                lost += [item] if is_lost else []
        return kept, lost

    async def read(self, keys: Iterable[Key], own: Nodes, *, is_strong: bool) -> None:
        """Note which words the nodes at these keys have, of those that the caller may see; `own` were read."""
        state = self._request.state
        missing = dict.fromkeys([key for key in keys if key not in self._met])
        nodes = {key: own[key] for key in missing if key in own}
        if unread := [key for key in missing if key not in own]:
            nodes |= await (state.current_nodes if is_strong else state.weak_nodes)(unread)
        raise_first_error(nodes.values())
        for key, node in nodes.items():
            record = node if isinstance(node, Record) else None
            for one in (key, key if record is None else record.key):  # another one where a move has taken it away
                self._met[one], self._ids[one] = self.where.met(record), "" if record is None else id_hash(record.id)
