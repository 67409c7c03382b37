"""Search list: the nodes of a list that match a text, by the items of its first word instead of the whole list.

The items are those with `pk = "words/location#o" AND begins_with(sk, "oma")`. All nodes that match have one of these,
also those whose ancestors have the other words (`by_ancestors.py`).
"""

from collections.abc import Hashable, Sequence

from resolvers.lists.ancestor_words import MAX_ANCESTORS
from resolvers.lists.list_request import ListRequest
from resolvers.search.by_ancestors import ByAncestors
from resolvers.search.finder import Scope
from resolvers.search.item_lists import ItemList
from resolvers.session.request import Request
from resolvers.sorting.search_comparison import BY_ANCESTORS, SearchComparison
from store.concurrency import in_chunks
from store.kinds.words import WordItem, WordKind, by_text
from store.model.keys import KeyRange
from store.model.records import Item


class SearchList(ItemList[WordItem]):
    """One list, whose nodes match a text that has a word."""

    kind = WordKind.name
    way_out = "write a longer word, or search below a node with fewer below it"

    def __init__(self, request: Request, requested: ListRequest, search: SearchComparison) -> None:
        super().__init__(request, requested)
        self._search = search
        self._above = ByAncestors(request, self.hierarchy, search, MAX_ANCESTORS)

    @property
    def identity(self) -> Hashable:
        return self._search.identity

    @property
    def fact(self) -> str:
        return f'that may have the word "{self._search.text.words[0]}"'

    def ranges(self, base: str) -> Sequence[KeyRange]:
        return [by_text(base, one) for one in self._search.text.first_pair]

    async def matching(self, read: Sequence[Sequence[Item]]) -> list[WordItem]:
        found: dict[str, WordItem] = {}
        for items in read:
            async for chunk in in_chunks(items):
                for one in [WordItem.of(self.hierarchy.name, item) for item in chunk]:
                    words = self._above.words(one)
                    if words is not None and self._search.match(words) is not None:
                        found[one.id] = one
        return list(found.values())

    async def hits(self, items: Sequence[WordItem], scope: Scope, *, is_strong: bool) -> list[WordItem] | None:
        has_level, hits, partly = self.requested.relation.arguments.has_level, list[WordItem](), list[WordItem]()
        async for chunk in in_chunks(items):
            for one in chunk:
                if has_level(one.level) and scope.may_hold(one.line) and (words := self._above.words(one)) is not None:
                    (partly if self._search.match(words) == BY_ANCESTORS else hits).append(one)
        found = await self._above.found(scope, partly, is_strong=is_strong)
        return None if found is None else hits + found
