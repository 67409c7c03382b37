"""Expected responses, computed from the data alone and not by the code that is measured."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bench.places import Place
from bench.queries import BREADCRUMB, DESCENDANTS, FIRST_CITIES, MENU_LEVELS, Query, written

BREADCRUMBS = 512  # different ones, in turn

Identify = Callable[[Place], str]


class Tree:
    """Places with their children, in the order of a tree as `places.in_order` makes it."""

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        self._at = {place.path: number for number, place in enumerate(places)}
        self._children: dict[tuple[str, ...], list[Place]] = defaultdict(list)
        for place in places:
            self._children[place.path[:-1]].append(place)
        for children in self._children.values():
            children.sort(key=lambda place: (place.level, place.path))

    def places_of(self, query: Query, country: str) -> list[Place]:
        """The places that a query is sent for, in turn."""
        if query is not BREADCRUMB:
            return [self._places[self._at[(country,)]]]
        cities = [place for place in self._places if place.level == "CITY"]
        return random.Random(7).sample(cities, min(BREADCRUMBS, len(cities)))

    def expected(self, query: Query, place: Place, identify: Identify) -> Any:
        """The expected `location`, with plain lists; `identify` returns the id of a place."""
        match query.name:
            case "Q1":
                above = [self._places[self._at[place.path[:depth]]] for depth in range(1, len(place.path))]
                names, field, listed = "name level population", "ancestors", _objects(above, "name level", identify)
            case "Q2":
                names, field = "name", "children"
                listed = _objects(self._children[place.path], "name population", identify)
            case "Q3":
                names, field = "name population", "children"
                listed = _objects(self._children[place.path], names, identify)
                for region, one in zip(self._children[place.path], listed, strict=True):
                    one["children"] = _objects(self._children[region.path][:FIRST_CITIES], names, identify)
            case _:
                names, field = "", "descendants"
                listed = _objects(self._below(place), "name level population code", identify)
        return _objects([place], names, identify)[0] | {field: listed}

    def _below(self, place: Place) -> list[Place]:
        start = self._at[place.path] + 1
        following = self._places[start : start + DESCENDANTS]
        return [one for one in following if one.path[: len(place.path)] == place.path]


def _objects(places: Iterable[Place], names: str, identify: Identify) -> list[dict[str, Any]]:
    return [{"id": identify(one), **{name: getattr(one, name) for name in names.split()}} for one in places]


def menu(taxonomy: str) -> list[dict[str, Any]]:
    """The expected `categories`, from the lines of a taxonomy such as `A > B > C`."""
    lines = [line for line in taxonomy.splitlines() if line and not line.startswith("#")]
    return _menu_below((), sorted(tuple(line.split(" > ")) for line in lines), MENU_LEVELS)


def _menu_below(path: tuple[str, ...], paths: Iterable[tuple[str, ...]], levels: int) -> list[dict[str, Any]]:
    below: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for one in paths:
        if len(one) > len(path):
            below[one[len(path)]].append(one)
    listed = []
    for name, some in below.items():
        here = (*path, name)
        node: dict[str, Any] = {"name": name, "path": written(here)}
        listed.append(node | ({"children": _menu_below(here, some, levels - 1)} if levels > 1 else {}))
    return listed
