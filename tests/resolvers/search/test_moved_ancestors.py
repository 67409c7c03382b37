"""Words of ancestors in a search, after nodes were moved to where their former place seems to be."""

import pytest

from store.engine import Store
from tests.systems.writing import Clients

pytestmark = pytest.mark.both_stores

CREATE = """mutation($parent: CategoryNodeBy, $key: String!, $name: String!) {
  createCategoryNode(input: {parent: $parent, key: $key, name: $name, attributes: {category: {}}}) { node { id } }
}"""
MOVE = """mutation($node: CategoryNodeBy!, $to: CategoryNodeDestination, $key: String) {
  moveCategoryNode(input: {node: $node, to: $to, key: $key}) { node { id } }
}"""


async def plant(clients: Clients, **names: str) -> None:
    for path, name in names.items():
        *above, key = path.split("_")
        parent = {"path": "/".join(above)} if above else None
        await clients.ask(CREATE, parent=parent, key=key, name=name)


async def found(clients: Clients, text: str) -> list[str]:
    data = await clients.ask("query($text: String!) { searchCategories(text: $text) { nodes { path } } }", text=text)
    return [node["path"] for node in data["searchCategories"]["nodes"]]


async def test_a_node_below_its_former_sibling_leads_nobody_below_the_root_itself(store: Store) -> None:
    clients = Clients(store)
    await plant(clients, r="Tiger", r_x="Old", r_x_z="Lion", r_y="New", r_y_w="Wolf")
    await clients.ask(MOVE, node={"path": "r/x"}, to={"parent": {"path": "r/y"}})
    for _ in range(2):
        assert await found(clients, "lion") == ["r/y/x/z"]
        assert await found(clients, "tiger zebra") == []
        assert await found(clients, "lion tiger") == ["r/y/x/z"]
        assert await found(clients, "wolf tiger") == ["r/y/w"]
        assert await found(clients, "new tiger") == ["r/y"]


async def test_new_nodes_at_the_place_of_moved_ones_are_found_by_words_of_their_ancestors(store: Store) -> None:
    clients = Clients(store)
    await plant(clients, r="Tiger", r_x="Old", r_x_z="Lion", r_x_y="Lynx", s="Bear")
    await clients.ask(MOVE, node={"path": "r"}, to={"parent": {"path": "s"}})
    assert await found(clients, "lion tiger") == ["s/r/x/z"]
    await plant(clients, r="Eagle", r_x="Nest", r_x_z="Owl", r_x_y="Crow")
    for _ in range(2):
        assert await found(clients, "lynx") == ["s/r/x/y"]
        assert await found(clients, "owl eagle") == ["r/x/z"]
        assert await found(clients, "crow nest") == ["r/x/y"]
        assert await found(clients, "eagle zebra") == []
        assert await found(clients, "lion tiger") == ["s/r/x/z"]
