"""docs/attributes.md: the hierarchy that is shown is served, its query answered and its message given."""

import re

import pytest

from graph.hierarchies.attribute import attribute
from graph.hierarchies.registry import served
from store.errors import BadInput
from tests.readme import DOCS, blocks
from tests.systems.asking import Client, plant

PAGE = (DOCS / "attributes.md").read_text("utf-8")
SHOP = {
    "owner": "Ann", "rent": "12.50 EUR", "address": '{"street": "Main 1", "postcode": "68118"}',
    "greeting": {"de": "Servus"},
}  # fmt: skip


def served_as_shown(tmp_path):
    (code,) = blocks("py", PAGE)
    (tmp_path / "place.py").write_text(code)
    (hierarchy,) = served(str(tmp_path / "place.py"))
    return hierarchy


async def test_the_query_of_the_page_is_answered(store, tmp_path):
    hierarchy = served_as_shown(tmp_path)
    await plant(store, hierarchy, [(["M"], "MALL"), (["M", "S"], "SHOP", "Stall", SHOP)])
    query, listing = blocks("graphql", PAGE)
    listed = await Client(store, hierarchy).ask(listing)
    assert [one["name"] for one in listed.data["hierarchies"]] == ["PLACE"]
    assert listed.requests == 0
    reply = await Client(store, hierarchy).ask(query)
    assert reply.data["shop"] == {
        "label": "Stall (Ann)", "rent": {"amount": "12.50", "currency": "EUR"}, "address": {"street": "Main 1"},
        "greeting": {"text": "Servus", "texts": [{"language": "de", "text": "Servus"}]},
    }  # fmt: skip


def test_the_message_of_the_page_is_given(tmp_path):
    floor = served_as_shown(tmp_path).definition().levels["SHOP"].attributes["floor"]
    with pytest.raises(BadInput) as refused:
        floor.parse(12)
    assert f"`{str(refused.value).rstrip('.')}`" in PAGE


def test_every_option_is_on_the_page():
    rows = re.findall(r"^\| (`\w+=.*?) \|", PAGE, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)=", row)} == set(attribute.__kwdefaults__)
