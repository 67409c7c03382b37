"""Mutations behind Apollo's gateway and server with their defaults: every fault of an input arrives."""

from collections.abc import Iterator

import pytest

from tests.federation.conftest import HERE, Served, clade_over, needs_npm, running
from tests.federation.places import place
from tests.model import literal

pytestmark = [needs_npm, pytest.mark.thorough]

PLACES = [place("category", "Electronics", "CATEGORY")]
GIVEN = {
    "parent": {"path": "US/none"}, "key": "", "name": "", "attributes": {"city": {"timezone": "x" * 17_000}},
}  # fmt: skip
FAULTS = [
    ("BAD_USER_INPUT", ["name"], "empty"), ("BAD_USER_INPUT", ["attributes", "city", "timezone"], "maxLength"),
    ("BAD_PATH", ["key"], "empty"), ("NOT_FOUND", ["parent"], "missing"),
]  # fmt: skip
CREATE = "createLocation(input: %s) { node { id } userErrors { code message field rule edit } }"


@pytest.fixture(scope="module")
def clade(store_url: str) -> Iterator[Served]:
    with clade_over(store_url, PLACES, WRITES="on", FEDERATION_EXPOSE="mutations") as served:
        yield served


@pytest.fixture(scope="module")
def gateway(clade: Served) -> Iterator[Served]:
    with running(["node", str(HERE / "apollo.mjs"), clade.url]) as printed:
        yield Served(printed["url"], clade.recorder)


def test_every_fault_of_an_input_comes_through_as_clade_tells_it(clade, gateway):
    by_variable = f"mutation($input: CreateLocationInput!) {{ {CREATE % '$input'} }}"
    told = clade.ask(by_variable, input=GIVEN)["data"]
    faults = told["createLocation"]["userErrors"]
    assert [(one["code"], one["field"], one["rule"]) for one in faults] == FAULTS
    assert gateway.ask(by_variable, input=GIVEN) == {"data": told}
    assert gateway.ask(f"mutation {{ {CREATE % literal(GIVEN)} }}") == {"data": told}
    assert len(gateway.recorder.operations) == 1


def test_an_error_of_the_response_keeps_its_message_and_its_code(clade, gateway):
    query = '{ category(path: "Electronics") { name } city(path: "US//NE") { name } }'
    told, passed = clade.ask(query), gateway.ask(query)
    assert passed["data"] == told["data"] == {"category": {"name": "Electronics"}, "city": None}
    (error,), (expected,) = passed["errors"], told["errors"]
    assert (error["message"], error["path"]) == (expected["message"], ["city"])
    assert (error["extensions"]["code"], error["extensions"]["serviceName"]) == ("BAD_PATH", "clade")
