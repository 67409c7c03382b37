"""Mutations behind Apollo's gateway and server with their defaults: every fault of an input arrives, on both stores."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from store.connect import open_store
from store.model.records import Item, key_of
from tests import invariants
from tests.clients.programs import run
from tests.docs.test_recipes import ADDRESS, FILES
from tests.federation.conftest import HERE, Served, clade_over, needs_npm, running
from tests.federation.places import place
from tests.model import literal

pytestmark = needs_npm

PLACES = [
    place("location", "US", "COUNTRY"),
    place("location", "US/NE", "STATE"),
    place("location", "US/NE/Omaha", "CITY"),
    place("category", "Electronics", "CATEGORY"),
    place("category", "Electronics/Televisions", "CATEGORY"),
]
INPUT = "BAD_USER_INPUT"
FAULTY = [
    (
        "createLocation",
        {"parent": {"path": "US/none"}, "key": "", "name": "", "attributes": {"city": {"timezone": "x" * 17_000}}},
        [(INPUT, ["name"], "empty"), (INPUT, ["attributes", "city", "timezone"], "maxLength"),
         ("BAD_PATH", ["key"], "empty"), ("NOT_FOUND", ["parent"], "missing")],
    ),
    (
        "createCategoryNode",
        {"key": "TV", "name": "x", "attributes": {"product": {"price": "12,50"}}},
        [(INPUT, ["attributes", "product", "price"], "type"), ("MISPLACED", ["parent"], "misplaced")],
    ),
    (
        "updateLocation",
        {"node": {"path": "US"}, "name": "", "expectedRevision": 3, "attributes": {"city": {"timezone": None}}},
        [(INPUT, ["name"], "empty"), ("CONFLICT", ["expectedRevision"], "conflict"),
         ("WRONG_LEVEL", ["attributes"], "level")],
    ),
    (
        "moveLocation",
        {"node": {"path": "US//NE"}, "to": {"root": False}, "key": "", "position": {"first": False}},
        [("BAD_PATH", ["node"], "path"), (INPUT, ["to"], "required"), (INPUT, ["position"], "required"),
         ("BAD_PATH", ["key"], "empty")],
    ),
    (
        "deleteLocation",
        {"node": {"path": "US/NE"}, "expectedRevision": 2},
        [("CONFLICT", ["expectedRevision"], "conflict"), ("NOT_EMPTY", ["policy"], "notEmpty")],
    ),
]  # fmt: skip
PAYLOAD = "{ node { id } userErrors { code message field rule edit } }"


@pytest.fixture(scope="module")
def clade(store_url: str) -> Iterator[Served]:
    with clade_over(store_url, PLACES, WRITES="on", FEDERATION_EXPOSE="mutations") as served:
        yield served


@pytest.fixture(scope="module")
def gateway(clade: Served) -> Iterator[Served]:
    with running(["node", str(HERE / "apollo.mjs"), clade.url]) as printed:
        yield Served(printed["url"], clade.recorder)


def stored(store_url: str) -> list[Item]:
    """Everything in the table."""

    async def read() -> list[Item]:
        async with open_store(store_url) as store:
            return sorted(await invariants.all_items(store), key=key_of)

    return asyncio.run(read())


def test_every_fault_of_an_input_comes_through_as_clade_tells_it_and_nothing_is_written(store_url, clade, gateway):
    before = stored(store_url)
    for mutation, given, expected in FAULTY:
        kind = f"{mutation[0].upper()}{mutation[1:]}Input!"
        by_variable = f"mutation($input: {kind}) {{ {mutation}(input: $input) {PAYLOAD} }}"
        by_literal = f"mutation {{ {mutation}(input: {literal(given)}) {PAYLOAD} }}"
        told = clade.ask(by_variable, input=given)["data"]
        faults = told[mutation]["userErrors"]
        assert [(one["code"], one["field"], one["rule"]) for one in faults] == expected
        assert gateway.ask(by_variable, input=given) == {"data": told}
        assert gateway.ask(by_literal) == {"data": told}
        assert len(gateway.recorder.operations) == 1
    assert stored(store_url) == before


def test_an_error_of_the_response_keeps_its_message_and_its_code(clade, gateway):
    query = '{ category(path: "Electronics") { name } city(path: "US//NE") { name } }'
    told, passed = clade.ask(query), gateway.ask(query)
    assert passed["data"] == told["data"] == {"category": {"name": "Electronics"}, "city": None}
    (error,), (expected,) = passed["errors"], told["errors"]
    assert (error["message"], error["path"]) == (expected["message"], ["city"])
    assert (error["extensions"]["code"], error["extensions"]["serviceName"]) == ("BAD_PATH", "clade")


def test_the_form_of_the_recipes_shows_every_fault_beside_its_field(gateway, tmp_path: Path):
    for name in ("clade.mjs", "form.mjs", "sentences.mjs"):
        (tmp_path / name).write_text(FILES[name].replace(f"{ADDRESS}/graphql", gateway.url))

    def form(**values: str) -> str:
        return run("node", "form.mjs", urlencode({"parent": "Electronics/Televisions", **values}), cwd=tmp_path)

    number, name, brand, price = form(key=" ", name="", price="12,50", brand="b" * 17_000).splitlines()
    for row, label, message in (
        (number, "Number", "one that is seen"),
        (name, "Name", "The name is empty"),
        (brand, "Brand", "brand has 17,000 characters"),
        (price, "Price", "price: &#34;12,50&#34; is not a number"),
    ):
        assert (label in row, row.count('role="alert"'), message in row) == (True, 1, True), row
    assert form(key="P-1", name="One", price="12.50") == "Made Electronics/Televisions/P-1.\n"
    query = '{ product(path: "Electronics/Televisions/P-1") { name price } }'
    assert gateway.ask(query) == {"data": {"product": {"name": "One", "price": "12.50"}}}
