"""Searches of random trees against a look at all nodes: hits, their order, whether they are proven, and their number.

The long form: pytest --examples 300 tests/resolvers/search/test_against_model.py
"""

from collections.abc import Sequence
from itertools import product
from random import Random
from typing import Any

import pytest

from graph.hierarchies.attribute import attribute
from graph.hierarchies.node import Node
from resolvers.access.grants import Grants
from resolvers.search import finder, words
from resolvers.search.finder import Selected
from resolvers.search.words import SearchArguments, search
from resolvers.session.cache import PageCache, TreeVersionCache
from resolvers.session.request import Request
from store.engine import ReadUsage, Store
from store.errors import BadInput, CladeError
from store.kinds.words import SearchText
from store.metadata.moves import MoveTiming
from store.model.hierarchy import Hierarchy
from store.model.names import lookup
from store.model.paths import format_path
from store.model.records import Record
from store.writing.move_delete import Move
from store.writing.writer import Writer
from tests import invariants, search_model
from tests.search_model import NodeWords
from tests.selection import examples
from tests.systems.asking import plant


class Place(Node, hierarchy="place", many="places", search="hierarchy", search_weight="size"):
    """A place."""

    size: int | None = attribute("Its size.")
    note: str | None = attribute("A note.", search=True)


class Land(Place, under=[None, "self"]):
    """A land."""


class Town(Place, under=[Land, "self"]):
    """A town."""


class Box(Node, hierarchy="box", many="boxes", search="tree", search_weight="size"):
    """A box; each tree is searched by itself."""

    size: int | None = attribute("Its size.")
    note: str | None = attribute("A note.", search=True)


class Crate(Box, under=[None, "self"]):
    """A crate."""


class Item(Box, under=[Crate, "self"]):
    """An item."""


CLASSES: list[type[Node]] = [Place, Box]
NAMES = ["Omaha", "Oma", "North", "North Omaha", "NC", "New York", "York", "Coeur d'Alene", "D-Town", "Ny", "東京", "N"]
TEXTS = [
    "oma", "omaha n", "omaha nc", "n n", "new york", "york new", "york n", "coeur n", "d-alene york", "alene north ny",
    "東 n", "n 京", "dtown omaha", "ny coeur-d", "omaha omaha", "x n", "omaha n york nc", "north o",
]  # fmt: skip
"""Texts whose words are those of nodes, of their ancestors, and of both."""


class Model:
    """All nodes of a hierarchy with their words, of which a caller sees those below her `tops`."""

    def __init__(self, hierarchy: Hierarchy, items: Sequence[dict[str, Any]], tops: Sequence[tuple[str, ...]]) -> None:
        self.nodes = [(Record.of(item), NodeWords(hierarchy, item)) for item in items]
        self.nodes = [pair for pair in self.nodes if any(pair[0].path[: len(top)] == top for top in tops)]
        self._by_path = {record.path: words for record, words in self.nodes}

    def found(
        self, text: str, under: tuple[str, ...] | None, level: str | None, languages: tuple[str, ...] | None
    ) -> list[str]:
        """The paths of all hits in their order."""
        ranked = []
        for record, own in self.nodes:
            if level not in (None, record.level) or (
                under and (record.path[: len(under)] != under or record.path == under)
            ):
                continue
            names, known = _searched(own, languages)
            match = search_model.match(text, names, known)
            if match is None and self._is_met_above(text, record.path, known, languages):
                match = 3
            if match is not None:
                size = record.attributes.get("size") or 0
                ranked.append((match, -size, record.depth, own.names.get("", ""), record.id, format_path(record.path)))
        return [place[-1] for place in sorted(ranked)]

    def _is_met_above(self, text: str, path: tuple[str, ...], known: list[str], languages: Any) -> bool:
        above = [self._by_path[path[:end]] for end in range(1, len(path)) if path[:end] in self._by_path]
        each = [_searched(words, languages)[1] for words in above]
        return search_model.meets_with_ancestors(text, known, each)


def _searched(own: NodeWords, languages: tuple[str, ...] | None) -> tuple[list[str], list[str]]:
    """The names and the beginnings of words that are searched."""
    taken = set(own.names) if languages is None else {"", "#", *[lookup(own.names, [one]) for one in languages]}
    names = [name for language, name in own.names.items() if language in taken]
    return names, [found for text in (*names, *own.others) for found in search_model.beginnings(text)]


async def grow(store: Store, cls: type[Node], random: Random) -> list[tuple[str, ...]]:
    """A random tree or two, in which subtrees were moved; the paths of all nodes."""
    outer, inner = cls.levels
    rows: list[Any] = []
    for number in range(random.choice([5, 20, 60])):
        lands = [row for row in rows if row[1] == outer]
        parent = random.choice(rows)[0:2] if rows and random.random() < 0.9 else ((), outer)
        path, above = parent
        level = inner if above == inner or (lands and path and random.random() < 0.5) else outer
        if len(path) > 6:
            continue
        values: dict[str, Any] = {"size": random.choice([None, 1, 5])}
        if random.random() < 0.3:
            values |= {"note": random.choice(NAMES), "names": {"de": random.choice(NAMES)}}
        key = random.choice([f"k{number}", f"NC{number}", f"n {number}"])
        rows.append(((*path, key), level, random.choice(NAMES), {k: v for k, v in values.items() if v is not None}))
    await plant(store, cls, rows)
    writer, definition = Writer(store, MoveTiming(0.0, 0.0)), cls.definition()
    for number in range(random.choice([0, 1, 3])):
        paths = [Record.of(item).path for item in (await invariants.nodes(store, cls.name)).values()]
        source, target = random.choice(paths), random.choice([*paths, ()])
        try:
            await writer.write(Move(definition, source, (*target, f"moved{number}")), ReadUsage())
            await writer.move_worker.finished()
        except CladeError:  # into itself, or of a level that may not be there
            continue
    return [Record.of(item).path for item in (await invariants.nodes(store, cls.name)).values()]


async def compare(store: Store, cls: type[Node], random: Random, limits: str) -> None:
    hierarchy, paths = cls.definition(), await grow(store, cls, random)
    items = list((await invariants.nodes(store, cls.name)).values())
    tops = random.choice([[()], [()], random.sample(paths, min(2, len(paths))), [random.choice(paths)[:1]]])
    grants = None if tops == [()] else Grants.parse([f"read:{cls.name}/{format_path(top)}" for top in tops])
    model, cache = Model(hierarchy, items, tops), PageCache(1_000_000, TreeVersionCache(0.0))
    visible = [record.path for record, _ in model.nodes]
    for text, first in product(random.sample(TEXTS, 6), (0, 1, 3, 100)):
        below, level = random.choice([None, random.choice(visible)]), random.choice([None, None, *cls.levels])
        if hierarchy.search and cls is Box and below is None:
            below = random.choice(visible)
        languages, total = random.choice([None, None, ("fr",), ("de-AT",)]), random.random() < 0.7
        asked = SearchArguments(
            text=SearchText.of(text), languages=languages, first=first, under=below, levels=level and frozenset([level])
        )
        request = Request(store, {cls.name: hierarchy}, page_cache=cache, grants=grants)
        try:
            page = await search(request, hierarchy, asked, Selected(total=total))
        except BadInput:  # the part of the caller is larger than a search reads
            if grants is None:
                raise
            continue
        found, expected = [format_path(one.path) for one in page.records], model.found(text, below, level, languages)
        described = (text, below, level, languages, first, tops, found, expected)
        if page.complete:
            assert found == expected[:first], described
        assert [path for path in expected if path in found] == found, described
        if total and page.total is not None:
            assert page.total == len(expected), described
        if limits == "limits":
            assert page.complete, described
            assert not total or page.total is not None, described


LIMITS = {"limits": (1_750, 100, 2_000, 200), "few": (30, 5, 0, 8), "small parts": (30, 5, 2_000, 8)}
"""Items and ancestors that are read, nodes that are searched themselves, and hits that are counted."""


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.both_stores), *range(1, examples(2, 30))])
async def test_hits_are_those_of_a_look_at_all_nodes(store, monkeypatch, cls, limits, seed):
    places = [(words, "MAX_ITEMS"), (words, "MAX_ANCESTORS"), (finder, "MAX_SEARCHED_NODES"), (finder, "MAX_COUNTED")]
    for (module, name), value in zip(places, LIMITS[limits], strict=True):
        monkeypatch.setattr(module, name, value)
    await compare(store, cls, Random(f"{cls.name} {limits} {seed}"), limits)  # noqa: S311
