"""Known faults: each fails here strictly, so that a repair is noticed and its line in `known.py` goes."""

from collections.abc import Iterator

import pytest

from tests.outside.known import KNOWN
from tests.outside.processes import Server, place


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with place("sqlite") as found:
        yield found.server(max_nodes="6")


class Fault(Exception):
    """The fault itself; an assertion on the way to it is another failure."""


def held(promise: bool) -> None:
    if not promise:
        raise Fault


def known(name: str) -> pytest.MarkDecorator:
    return pytest.mark.xfail(strict=True, raises=Fault, reason=KNOWN[name])


def create(server: Server, key: str, *, name: str | None = None, parent: str | None = None) -> None:
    text = (
        "mutation($parent: Path, $key: String!, $name: String!) "
        "{ createThing(parent: $parent, key: $key, name: $name, attributes: {box: {}}) { node { id } } }"
    )
    assert server.ask(text, {"parent": parent, "key": key, "name": name or key}).data


@known("letters with a stroke sort after z, but are found without it")
def test_letters_with_a_stroke_sort_as_they_are_found(server: Server) -> None:
    create(server, "strokes")
    for name in ("Łódź", "Zebra"):
        create(server, name, parent="strokes")
    listed = '{ thing(path: "strokes") { children(orderBy: [{field: NAME}]) { nodes { name } } } }'
    nodes = server.ask(listed).data["thing"]["children"]["nodes"]
    held([node["name"] for node in nodes] == ["Łódź", "Zebra"])


@known("lists of more than 10,000 nodes cannot be sorted")
def test_lists_longer_than_a_response_can_be_sorted(server: Server) -> None:
    create(server, "long")
    for number in range(7):
        create(server, f"{number}", parent="long")
    got = server.ask('{ thing(path: "long") { children(first: 1, orderBy: [{field: NAME}]) { nodes { name } } } }')
    held(not got.codes)
