"""Known faults: each fails here strictly, so that a repair is noticed and its line in `known.py` goes."""

import pytest

from tests.outside.known import KNOWN
from tests.outside.processes import Server, place


@pytest.fixture(scope="module")
def server():
    with place("sqlite") as found:
        yield found.server(max_nodes="6")


def known(name: str) -> pytest.MarkDecorator:
    return pytest.mark.xfail(strict=True, raises=AssertionError, reason=KNOWN[name])


def create(server: Server, key: str, *, name: str | None = None, parent: str | None = None) -> None:
    text = (
        "mutation($parent: Path, $key: String!, $name: String!) "
        "{ createThing(parent: $parent, key: $key, name: $name, attributes: {box: {}}) { node { id } } }"
    )
    assert server.ask(text, {"parent": parent, "key": key, "name": name or key}).data


@known("a former path is lost when a node above was renamed later")
def test_a_former_path_leads_to_its_node_after_nodes_above_were_renamed(server: Server) -> None:
    create(server, "shop")
    create(server, "tv", parent="shop")
    create(server, "archive", parent="shop")
    change = "mutation($path: Path!, $key: String!) { renameThing(path: $path, key: $key) { node { id } } }"
    assert server.ask(change, {"path": "shop", "key": "store"}).data
    assert server.ask('mutation { moveThing(path: "store/tv", to: "store/archive") { node { id } } }').data
    assert server.ask(change, {"path": "store", "key": "market"}).data
    found = server.ask('{ thing(path: "shop/tv") { path } }').data["thing"]
    assert found == {"path": "market/archive/tv"}


@known("hasPreviousPage is false for last with after")
def test_last_with_after_says_that_there_are_items_before(server: Server) -> None:
    create(server, "pages")
    for number in range(3):
        create(server, f"{number}", parent="pages")
    listed = "edges { cursor } pageInfo { hasPreviousPage }"
    first = server.ask(f'{{ thing(path: "pages") {{ children(first: 1) {{ {listed} }} }} }}').data["thing"]["children"]
    after = first["edges"][0]["cursor"]
    rest = server.ask(f'{{ thing(path: "pages") {{ children(after: "{after}", last: 5) {{ {listed} }} }} }}').data
    assert rest["thing"]["children"]["pageInfo"]["hasPreviousPage"]


@known("letters with a stroke sort after z, but are found without it")
def test_letters_with_a_stroke_sort_as_they_are_found(server: Server) -> None:
    create(server, "strokes")
    for name in ("Łódź", "Zebra"):
        create(server, name, parent="strokes")
    listed = '{ thing(path: "strokes") { children(orderBy: [{field: NAME}]) { nodes { name } } } }'
    nodes = server.ask(listed).data["thing"]["children"]["nodes"]
    assert [node["name"] for node in nodes] == ["Łódź", "Zebra"]


@known("lists of more than 10,000 nodes cannot be sorted")
def test_lists_longer_than_a_response_can_be_sorted(server: Server) -> None:
    create(server, "long")
    for number in range(7):
        create(server, f"{number}", parent="long")
    got = server.ask('{ thing(path: "long") { children(first: 1, orderBy: [{field: NAME}]) { nodes { name } } } }')
    assert not got.codes
