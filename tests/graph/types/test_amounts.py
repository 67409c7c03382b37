"""Amounts that mutations add to numbers: what is written, what is a fault, and what the schema has of it."""

import asyncio
from typing import Any

import pytest

from clade import Decimal, Long, Node, attribute
from store.engine import Store
from store.model.records import Put, key_of
from tests import invariants
from tests.model import Ground, Word, literal
from tests.rights.asking import Server, caller
from tests.schemas import schema_of

pytestmark = pytest.mark.both_stores

ALL = caller("write:good")


class Good(Node, hierarchy="good", many="goods"):
    """A good."""

    weight: int | None = attribute("Weight in grams.", default=3)


class Box(Good, under=[None]):
    """A box, whose size is another kind of number than a pack's."""

    unit_size: Long | None = attribute("Size.")
    ratio: float | None = attribute("Ratio.")
    sizes: list[int] | None = attribute("Sizes.")


class Pack(Good, under=[Box]):
    """A pack."""

    unit_size: Decimal | None = attribute("Size.", maximum=1000)
    stock: int | None = attribute("Stock.", minimum=0, required=True)


@pytest.fixture
async def server(store: Store) -> Server:
    made = Server(store, Good)
    for path, level in (("B", {"box": {}}), ("B/P", {"pack": {"stock": 2, "unitSize": "0.50"}})):
        parent, _, key = path.rpartition("/")
        given = {"key": key, "name": key, "attributes": level} | ({"parent": {"path": parent}} if parent else {})
        assert "errors" not in await made.write(
            ALL, f"mutation {{ createGood(input: {literal(given)}) {{ plan {{ nodes }} }} }}"
        )
    return made


SELECTED = """{ node { revision ... on Box { weight size: unitSize } ... on Pack { weight stock unitSize } }
    plan { nodes } userErrors { message field rule code } }"""


async def add(server: Server, adds: Any, path: str = "B/P", terms: str = "", **more: Any) -> Any:
    """The payload of an update."""
    given = literal({"node": {"path": path}, "add": adds} | more)
    answer = await server.write(ALL, f"mutation {{ updateGood(input: {given}{terms}) {SELECTED} }}")
    return answer["data"]["updateGood"]


def by(field: str, amount: Any) -> dict[str, Any]:
    return {"field": Word(field), "amount": amount}


async def test_amounts_are_added_to_numbers_of_the_nodes_level_which_count_as_0_without_a_value(server: Server) -> None:
    adds = [by("STOCK", "-2"), by("UNIT_SIZE", "0.25"), by("WEIGHT", 4)]
    assert (await add(server, adds, name="New"))["node"] == {
        "revision": 2, "weight": 7, "stock": 0, "unitSize": "0.75",
    }  # fmt: skip
    for amount, size in (("9007199254740993", "9007199254740993"), (Word("-9007199254740992.0"), "1")):
        node = (await add(server, [by("UNIT_SIZE", amount)], path="B"))["node"]
        assert str(node["size"]) == size
    for nothing in ([by("STOCK", 0), by("UNIT_SIZE", "-0.000")], [], None):
        assert (await add(server, nothing))["node"]["revision"] == 2


INT, TWICE = "is out of range; write -2147483648 to 2147483647.", "is added to twice; give the sum."
MANY, TEN = "9" * 38, f"1{'0' * 37}"
# What is sent, and the place that is at fault, the rule and the sentence.
FAULTS = [
    ([by("STOCK", -3)], "0.amount", "minimum", "stock would be -1, below the minimum 0; add another amount."),
    ([by("WEIGHT", 1), by("UNIT_SIZE", "999.51")], "1.amount", "maximum",
     "unitSize would be 1000.01, above the maximum 1000; add another amount."),
    ([by("STOCK", "1.5")], "0.amount", "type", 'stock: "1.5" is not a whole number; write one like 12.'),
    ([by("STOCK", 2**31 - 2)], "0.amount", "type", f"stock plus 2147483646 {INT}"),
    ([by("STOCK", MANY)], "0.amount", "type", f"stock plus {MANY} {INT}"),
    ([by("UNIT_SIZE", TEN)], "0.amount", "type", f"unitSize plus {TEN} is out of range; write at most 38 digits."),
    ([by("STOCK", "1e400")], "0.amount", "type", 'amount: "1e400" is out of range; write at most 38 digits.'),
    ([by("STOCK", "one")], "0.amount", "type", 'amount: "one" is not a number; write one like 12.50.'),
    ([by("STOCK", 1), by("WEIGHT", 1), by("STOCK", 1)], "2.field", "duplicate", f"stock {TWICE}"),
]  # fmt: skip


async def test_each_fault_of_an_amount_has_its_place_its_rule_and_a_way_out(server: Server) -> None:
    before = sorted(await invariants.all_items(server.store), key=key_of)
    for adds, place, rule, text in FAULTS:
        (fault,) = (await add(server, adds))["userErrors"]
        assert (".".join(fault["field"]), fault["rule"], fault["message"]) == (f"add.{place}", rule, text)
    many = (await add(server, [by("WEIGHT", 1)] * 150))["userErrors"]
    assert [one["field"][1] for one in many] == ["1", "2", "3"], "of more than there are numbers one is there twice"
    wrong = (await add(server, [by("STOCK", 1), by("WEIGHT", 1)], path="B"))["userErrors"]
    text = "BOX has no stock that takes an amount; leave it out."
    assert wrong == [{"message": text, "field": ["add", "0", "field"], "rule": "level", "code": "WRONG_LEVEL"}]
    for value in (7, None):
        both = await add(server, [by("UNIT_SIZE", 1)], attributes={"pack": {"unitSize": value}})
        (fault,) = both["userErrors"]
        assert (fault["field"], fault["rule"]) == (["add", "0", "field"], "duplicate")
    found = await add(server, [by("STOCK", "-3"), by("UNIT_SIZE", 1_000)], expectedRevision=7, attributes={"box": {}})
    assert [one["rule"] for one in found["userErrors"]] == ["conflict", "minimum", "maximum", "level"]
    assert sorted(await invariants.all_items(server.store), key=key_of) == before


async def test_several_edits_add_up_or_none_does_and_each_fault_has_its_edit(server: Server) -> None:
    def edits(*amounts: Any) -> str:
        given = [{"update": {"node": {"path": "B/P"}, "add": [by("STOCK", amount)]}} for amount in amounts]
        answer = "{ nodes { revision } userErrors { edit message } }"
        return f"mutation {{ editGoods(edits: {literal(given)}) {answer} }}"

    wrong = (await server.write(ALL, edits(1, -4, 5)))["data"]["editGoods"]
    text = "stock would be -1, below the minimum 0; add another amount."
    assert wrong == {"nodes": None, "userErrors": [{"edit": 1, "message": text}]}
    assert (await server.write(ALL, edits(2, -4, 5)))["data"]["editGoods"]["nodes"] == [{"revision": 4}] * 3
    assert (await add(server, []))["node"]["stock"] == 5


async def test_who_may_not_update_a_node_adds_nothing_and_learns_nothing_of_its_sum(server: Server) -> None:
    given = literal({"node": {"path": "B/P"}, "add": [by("STOCK", -9)]})
    found = []
    for who in ("read:good", "write:good/C", "write:good/B"):
        found.append((await server.refusal(caller(who), f"mutation {{ updateGood(input: {given}) {SELECTED} }}"))[0])
    assert found == ["FORBIDDEN", "NOT_FOUND", "BAD_USER_INPUT"]


async def test_a_value_of_another_type_takes_no_amount(server: Server) -> None:
    (found,) = [one for one in await invariants.all_items(server.store) if one.get("stock") == 2]
    await server.store.commit([Put({**found, "stock": "two"})])
    (fault,) = (await add(server, [by("STOCK", 1)]))["userErrors"]
    assert fault["message"] == 'stock is "two", which takes no amount; set it instead.'


async def test_repeated_once_forecast_and_told_of_as_any_update(server: Server) -> None:
    adds = [by("STOCK", -1)]
    assert (await add(server, adds, terms=", dryRun: true"))["plan"] == {"nodes": 1}
    assert (await add(server, [by("STOCK", 0)], terms=", dryRun: true"))["plan"] == {"nodes": 0}
    made = await asyncio.gather(*[add(server, adds, terms=', idempotencyKey: "k"') for _ in range(3)])
    assert [one["node"] for one in made] == [{"revision": 2, "weight": 3, "stock": 1, "unitSize": "0.50"}] * 3
    for other in ("-1.0", -1):  # an amount is the number that it is written as
        (again,) = (await add(server, [by("STOCK", other)], terms=', idempotencyKey: "k"'))["userErrors"] or [None]
        assert (again and again["rule"]) == ("taken" if other == "-1.0" else None)
    told = await server.data(
        ALL,
        """{ good(path: "B/P") { history { nodes { revision stock } } }
        changes(hierarchy: GOOD, tree: "B", under: "B/P") { changes { event path revision } } }""",
    )
    assert told == {
        "good": {"history": {"nodes": [{"revision": 2, "stock": 1}, {"revision": 1, "stock": 2}]}},
        "changes": {"changes": [
            {"event": "CREATED", "path": "B/P", "revision": 1}, {"event": "UPDATED", "path": "B/P", "revision": 2},
        ]},
    }  # fmt: skip


def test_only_hierarchies_with_exact_numbers_have_amounts() -> None:
    schema, without = [schema_of(one)[0]._schema for one in (Good, Ground)]
    assert [*schema.type_map["GoodNumberField"].values] == ["WEIGHT", "UNIT_SIZE", "STOCK"]
    assert "add" not in without.type_map["UpdateGroundInput"].fields
    assert not {"GroundAddition", "GroundNumberField"} & without.type_map.keys()
