"""Unique values in mutations: nodes named by them, values that are taken, and what callers with grants learn."""

from collections.abc import Sequence
from typing import Any

import pytest

from clade import Node, attribute
from resolvers.access.callers import Caller
from store.engine import ReadUsage, Store
from store.metadata.moves import MoveTiming
from store.model.keys import Key
from store.model.records import Item
from tests.rights.asking import Server, caller
from tests.stores import ReadRecorder, StoreProxy

pytestmark = pytest.mark.both_stores


class Shop(Node, hierarchy="shop"):
    """Something in a shop."""


class Department(Shop, under=[None, "self"]):
    """A department."""


class Product(Shop, under=[Department]):
    """A product."""

    stock_code: str | None = attribute("Its code.", unique=True)
    number: int | None = attribute("Its number.", unique="disclosed")
    price: int | None = attribute("Its price.")


class Variant(Shop, under=[Product]):
    """A variant."""

    stock_code: str | None = attribute("Its code.", unique=True)


ALL = caller("write:shop", "read:shop")
EDITOR = caller("write:shop/East", "read:shop/East")


@pytest.fixture
async def server(store: Store) -> Server:
    made = Server(store, Shop)
    for path, attributes in [
        ("East", "department: {}"), ("West", "department: {}"),
        ("East/P", 'product: {stockCode: "A", number: 1}'), ("West/Q", 'product: {stockCode: "B", number: 2}'),
        ("East/P/V", 'variant: {stockCode: "V"}'),
    ]:  # fmt: skip
        above, _, key = path.rpartition("/")
        parent = f'parent: {{path: "{above}"}}' if above else ""
        assert (
            await edit(made, ALL, f'create: {{{parent}, key: "{key}", name: "x", attributes: {{{attributes}}}}}') == []
        )
    return made


async def edit(server: Server, who: Caller, *edits: str, nodes: str = "path") -> Any:
    """The faults of several edits, with their places, or the error of the request."""
    asked = ", ".join(f"{{{one}}}" for one in edits)
    query = (
        f"mutation {{ editShops(edits: [{asked}]) {{ nodes {{ {nodes} }} userErrors {{ code field message edit }} }} }}"
    )
    answer = await server.write(who, query)
    if answer["data"] is None or answer["data"]["editShops"] is None:
        return [one["extensions"]["code"] for one in answer["errors"]]
    told = answer["data"]["editShops"]
    return told["userErrors"] or [one["path"] for one in told["nodes"] if who is not ALL]


async def paths(server: Server) -> dict[str, Any]:
    found = await server.data(
        ALL, "{ shops { nodes { path descendants { nodes { path ... on Product { stockCode } } } } } }"
    )
    nodes = [one for root in found["shops"]["nodes"] for one in root["descendants"]["nodes"]]
    return {one["path"]: one.get("stockCode") for one in nodes}


async def test_a_unique_value_names_a_node_wherever_an_input_does(server: Server) -> None:
    assert await edit(server, ALL, 'update: {node: {stockCode: "B"}, attributes: {product: {price: 5}}}') == []
    assert await edit(server, ALL, 'move: {node: {number: 2}, to: {parent: {path: "East"}}}') == []
    assert (
        await edit(server, ALL, 'create: {parent: {stockCode: "B"}, key: "W", name: "x", attributes: {variant: {}}}')
        == []
    )
    assert await edit(server, ALL, 'move: {node: {stockCode: "B"}, position: {before: {stockCode: "A"}}}') == []
    assert await edit(server, ALL, 'move: {node: {path: "East/Q/W"}, to: {parent: {number: 1}}}') == []
    assert await paths(server) == {"East/Q": "B", "East/P": "A", "East/P/V": None, "East/P/W": None}
    assert await edit(server, ALL, 'delete: {node: {stockCode: "V"}}') == []
    assert await edit(server, ALL, "delete: {node: {number: 1}, policy: CASCADE}") == []
    assert await paths(server) == {"East/Q": "B"}


async def test_a_value_that_is_taken_is_a_fault_at_its_field(server: Server) -> None:
    assert await edit(server, ALL, 'update: {node: {stockCode: "A"}, attributes: {product: {stockCode: "B"}}}') == [
        {
            "code": "TAKEN", "field": ["attributes", "product", "stockCode"], "edit": 0,
            "message": "B is the stockCode of West/Q; choose another.",
        }
    ]  # fmt: skip
    (fault,) = await edit(server, ALL, 'update: {node: {stockCode: "none"}, name: "x"}')
    assert (fault["code"], fault["field"]) == ("NOT_FOUND", ["node"])
    assert fault["message"] == "There is no node with the stockCode none."


async def test_several_edits_pass_values_on_and_name_nodes_by_those_that_they_have_then(server: Server) -> None:
    assert await edit(
        server, ALL,
        'update: {node: {stockCode: "A"}, attributes: {product: {stockCode: "B"}}}',
        'update: {node: {path: "West/Q"}, attributes: {product: {stockCode: "A"}}}',
        'update: {node: {stockCode: "A"}, name: "once B"}',
        'create: {parent: {path: "East"}, key: "N", name: "x", attributes: {product: {stockCode: "N"}}}',
        'move: {node: {stockCode: "N"}, to: {parent: {path: "West"}}}',
    ) == []  # fmt: skip
    assert await paths(server) == {"East/P": "B", "East/P/V": None, "West/Q": "A", "West/N": "N"}
    made = 'create: {parent: {path: "gone"}, key: "M", name: "x", attributes: {product: {stockCode: "M"}}}'
    faults = await edit(server, ALL, made, 'update: {node: {stockCode: "M"}, name: "y"}')
    assert [(one["edit"], one["code"]) for one in faults] == [(0, "NOT_FOUND")]


async def test_who_may_write_a_part_sets_no_value_that_would_tell_of_the_rest(server: Server) -> None:
    node = 'node: {path: "East/P"}'
    for given in ("A", "B", "C"):
        assert await edit(server, EDITOR, f'update: {{{node}, attributes: {{product: {{stockCode: "{given}"}}}}}}') == [
            "FORBIDDEN"
        ]
    (fault,) = await edit(server, EDITOR, f"update: {{{node}, attributes: {{product: {{number: 2}}}}}}")
    assert (fault["code"], fault["message"]) == ("TAKEN", "2 is the number of another node; choose another.")
    assert await edit(
        server, EDITOR, f"update: {{{node}, attributes: {{product: {{number: 3, stockCode: null}}}}}}"
    ) == ["East/P"]


async def test_a_hidden_node_and_none_are_named_alike(server: Server, store: Store) -> None:
    found = []
    for value in ('stockCode: "B"', 'stockCode: "X"', "number: 2", "number: 77"):
        asked: Any = ReadRecorder(store)
        (fault,) = await edit(Server(asked, Shop), EDITOR, f'update: {{node: {{{value}}}, name: "x"}}')
        shown = fault["message"].replace(value.split()[1].strip('"'), "?")
        found.append((fault["code"], shown.replace("number", "stockCode"), len(asked.keys)))
    assert len(set(found)) == 1, found
    mine = await edit(server, EDITOR, 'update: {node: {stockCode: "A"}, name: "x"}')
    assert mine == ["East/P"]


class Counting(StoreProxy):
    """Store that counts the requests for items."""

    requests = 0

    async def get(self, keys: Sequence[Key], reads: ReadUsage, *, strong: bool = False) -> list[Item | None]:
        self.requests += 1
        return await self._store.get(keys, reads, strong=strong)


async def test_edits_that_name_nodes_by_values_cost_few_reads_whether_these_are_found_or_not(server: Server) -> None:
    for value, requests in (('stockCode: "A"', 4), ('stockCode: "X"', 4), ('id: "shop:X"', 3)):
        edits = [f'update: {{node: {{{value}}}, name: "{n}"}}' for n in range(20)]
        asked: Any = Counting(server.store)
        await edit(Server(asked, Shop), ALL, *edits)
        assert asked.requests == requests, value


async def test_a_value_does_not_say_whose_revision_is_expected(server: Server) -> None:
    query = 'mutation { updateShop(input: { node: { %s }, name: "y", expectedRevision: 1 }) { node { path } } }'
    code, text = await server.refusal(ALL, query % 'stockCode: "A"')
    assert (code, text) == ("CONFLICT", "Another node may have had this value at revision 1; name the node by its id.")
    assert "errors" not in await server.write(ALL, query % 'path: "East/P"')


async def test_all_values_that_are_taken_are_told_in_one_order(server: Server) -> None:
    taken = 'attributes: {product: {stockCode: "B", number: 2}}'
    faults = await edit(server, ALL, f'update: {{node: {{path: "East/P"}}, {taken}}}')
    assert [one["field"][-1] for one in faults] == ["number", "stockCode"]


RESTORE = "mutation { restoreShop(input: {id: %s}) { node { path } userErrors { code field message } } }"


async def restored(server: Server, who: Caller, path: str, to: str = "") -> Any:
    """The path of a deleted node that comes back, or the faults or the error of the request."""
    feed = await server.data(
        ALL, 'query { deleted: changes(hierarchy: SHOP, tree: "East") { changes { path nodeId } } }'
    )
    ids = {one["path"]: one["nodeId"] for one in feed["deleted"]["changes"]}
    answer = await server.write(who, RESTORE % f'"{ids[path]}" {to}')
    if answer["data"] is None:
        return [one["extensions"]["code"] for one in answer["errors"]]
    told = answer["data"]["restoreShop"]
    return told["userErrors"] or told["node"]["path"]


async def test_values_that_would_tell_of_the_rest_come_back_by_who_may_write_all_of_it(server: Server) -> None:
    assert await edit(server, ALL, 'create: {parent: {path: "East"}, key: "N", name: "x", attributes: '
                      '{product: {number: 7}}}') == []  # fmt: skip
    assert await edit(server, EDITOR, 'delete: {node: {path: "East/N"}}', 'delete: {node: {path: "East/P/V"}}') == [
        "East/N", "East/P/V",
    ]  # fmt: skip
    assert await edit(server, EDITOR, 'delete: {node: {path: "East/P"}}') == ["East/P"]
    assert await restored(server, EDITOR, "East/N") == "East/N"
    assert await restored(server, EDITOR, "East/P") == ["FORBIDDEN"]
    assert await edit(server, ALL, 'update: {node: {path: "West/Q"}, attributes: {product: {stockCode: "A"}}}') == []
    assert await restored(server, EDITOR, "East/P") == ["FORBIDDEN"], "whether the value is taken or not"
    assert await restored(server, ALL, "East/P") == [
        {
            "code": "TAKEN",
            "field": ["id"],
            "message": "East/P: A is the stockCode of West/Q; change or delete that first.",
        }
    ]
    assert await edit(server, ALL, 'update: {node: {path: "West/Q"}, attributes: {product: {stockCode: "B"}}}') == []
    assert await restored(server, ALL, "East/P") == "East/P"
    for value in ('stockCode: "none"', 'stockCode: "B"'):
        (fault,) = await restored(server, EDITOR, "East/P/V", f"to: {{parent: {{{value}}}}}")
        assert (fault["code"], fault["field"]) == ("NOT_FOUND", ["to"]), "whether there is a hidden one or none"
    assert await restored(server, ALL, "East/P/V", 'to: {parent: {stockCode: "A"}}, key: "W"') == "East/P/W"
    assert await paths(server) == {"East/P": "A", "East/P/W": None, "East/N": None, "West/Q": "B"}


async def test_a_disclosed_value_that_is_taken_names_no_hidden_node(server: Server, store: Store) -> None:
    assert await edit(server, ALL, 'update: {node: {path: "East/P"}, attributes: {product: {stockCode: null}}}') == []
    assert await edit(server, ALL, 'update: {node: {path: "East/P/V"}, attributes: {variant: {stockCode: null}}}') == []
    assert await edit(server, ALL, 'delete: {node: {path: "East/P"}, policy: CASCADE}') == []
    assert await edit(server, ALL, 'update: {node: {path: "West/Q"}, attributes: {product: {number: 1}}}') == []
    told = "East/P: 1 is the number of another node; change or delete that first."
    assert await restored(server, EDITOR, "East/P") == [{"code": "TAKEN", "field": ["id"], "message": told}]
    store.max_commit_changes = 10  # so that it is a job, which may have to take any value
    assert await restored(server, EDITOR, "East/P") == ["FORBIDDEN"]
    large = Server(store, Shop, timing=MoveTiming(0.0, 0.0, 5.0, 5.0))
    (fault,) = await restored(large, ALL, "East/P")
    assert (fault["code"], fault["field"]) == ("TAKEN", ["id"])
    assert "West" not in fault["message"], "this is the reason of the move, for all who see its places"
    await large.writer.move_worker.finished()
    query = "{ moves(hierarchy: SHOP) { state reason from to } }"
    assert (await large.data(ALL, query))["moves"] == [
        {"state": "UNDONE", "reason": fault["message"], "from": "East/P", "to": "East/P"}
    ]
