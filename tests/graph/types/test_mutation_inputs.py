"""Inputs of mutations that are invalid: their faults have places, and nothing invalid reaches the store or others."""

import asyncio
from typing import Any

import pytest

from graph.hierarchies.locations import Location
from store.engine import Store
from tests.rights.asking import Server, caller
from tests.systems.writing import Clients, plant

pytestmark = pytest.mark.both_stores

CREATE = """mutation($key: String!, $name: String = "n", $id: ID) { createLocation(input: {parent: {path: "US/NE"},
    key: $key, name: $name, id: $id, attributes: {city: {}}}) { node { key } } }"""
CREATE_CATEGORY = """mutation($parent: CategoryNodeBy, $key: String!) { createCategoryNode(input: {parent: $parent,
    key: $key, name: "n", attributes: {category: {}}}) { node { id } } }"""


async def places(clients: Clients, mutation: str, **variables: Any) -> list[tuple[str, list[str]]]:
    """The codes and fields of the user errors of a mutation."""
    return [(one["code"], one["field"]) for one in await clients.faults(mutation, **variables)]


async def test_an_invalid_id_is_not_looked_up_so_the_writes_beside_it_are_made(store: Store) -> None:
    clients = Clients(store)
    await plant(clients)
    given = [("a", "a"), ("b", "b" * 3_000), ("c", "c")]
    found = await asyncio.gather(*[places(clients, CREATE, key=key, id=node_id) for key, node_id in given])
    assert found == [[], [("BAD_USER_INPUT", ["id"])], []]


async def test_a_name_that_is_too_long_is_no_fault_of_the_attributes(store: Store) -> None:
    clients = Clients(store)
    await plant(clients)
    for name in ("", "x" * 500_000):
        assert await places(clients, CREATE, key="a", name=name) == [("BAD_USER_INPUT", ["name"])]


async def test_a_node_below_that_does_not_fit_is_a_fault_of_what_makes_the_new_path(store: Store) -> None:
    clients, long = Clients(store), "k" * 400
    for parent, key in [(None, "A"), ("A", "m"), ("A/m", long), (f"A/m/{long}", long), ("A", long)]:
        await clients.ask(CREATE_CATEGORY, parent=parent and {"path": parent}, key=key)
    for field, given in (("to", f'to: {{parent: {{path: "A/{long}"}}}}'), ("key", f'key: "{long[1:]}"')):
        move = f'mutation {{ moveCategoryNode(input: {{node: {{path: "A/m"}}, {given}}}) {{ node {{ id }} }} }}'
        assert await places(clients, move) == [("BAD_PATH", [field])]


async def test_an_invalid_key_is_a_fault_whichever_keys_the_caller_may_write(store: Store) -> None:
    await plant(Clients(store))
    server, who = Server(store, Location), caller("read:location/US", "write:location/US/NE/New")
    assert await server.refusal(who, CREATE, key="") == ("BAD_PATH", "The key is empty; give one.")
    assert (await server.refusal(who, CREATE, key="Old"))[0] == "FORBIDDEN"


async def test_a_node_that_does_not_fit_has_no_fault_of_its_position_as_well(store: Store) -> None:
    clients = Clients(store)
    for parent, key in [(None, "A"), ("A", "m"), (None, "B")]:
        await clients.ask(CREATE_CATEGORY, parent=parent and {"path": parent}, key=key)
    move = f"""mutation {{ moveCategoryNode(input: {{node: {{path: "B"}}, key: "{"k" * 1_020}",
        position: {{after: {{path: "A/m"}}}}}}) {{ node {{ id }} }} }}"""
    assert await places(clients, move) == [("BAD_PATH", ["position"])]
