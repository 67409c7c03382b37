"""Stability: the Python face, and what clients keep while the classes of a hierarchy change.

The other faces are compared with what documents them: `schema.graphql` by tests/commands/test_schema.py, settings,
commands, error codes and metrics by tests/docs/test_reference.py, the layout of the table by
tests/store/model/test_keys.py and tests/store/metadata/test_layout_version.py. What a release wrote is kept from the
first release on.
"""

import inspect
import re
from typing import Any

import pytest

import clade
from graph.hierarchies.node import NodeValues
from tests.classes import land_after, land_before
from tests.readme import DOCS, ROOT, section, table
from tests.rights.asking import Server, caller
from tests.systems.asking import plant

ALL = caller("write:land")
ROWS = [
    (["AT"], "COUNTRY"),
    (["DE"], "COUNTRY"),
    (["DE", "Bonn"], "TOWN", "Bonn", {"people": 7, "mayor": "Ann"}),
    (["DE", "Bonn", "Hof"], "FARM"),
    (["DE", "Ulm"], "TOWN", "Ulm", {"people": 5}),
]
LISTS = [
    "lands(%s)", 'land(path: "DE") { children(%s)', 'land(path: "DE") { descendants(%s)',
    'land(path: "DE") { descendants(orderBy: {field: PATH, direction: DESC}, %s)',
    'land(path: "DE") { descendants(orderBy: {field: NAME, direction: DESC}, %s)',
    'land(path: "DE/Bonn") { history(%s)',
]  # fmt: skip
UPDATE = 'mutation { updateLand(input: {node: {path: "DE/Bonn"}, attributes: {%s}}) { node { id } } }'
CHANGES = '{ changes(hierarchy: LAND, tree: "DE"%s) { cursor changes { event path level } } }'


# -- Python ------------------------------------------------------------------------------------------------------------


def test_clade_exports_what_the_pages_list():
    (face,) = [what for part, what, *_ in table(section("What is stable", DOCS / "stability.md")) if part == "Python"]
    types = [kind for kind, *_ in table(section("Types", DOCS / "attributes.md"))]
    listed = {name for text in [face, *types] for name in re.findall(r"`(\w+)`", text)}
    assert listed - {"bool", "clade", "float", "int", "lifespan", "str", "Enum"} == set(clade.__all__)
    assert [name for name in clade.__all__ if not hasattr(clade, name)] == []


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (
            clade.attribute,
            "(description, *, required=False, default=None, minimum=None, maximum=None, max_length=16384, "
            "pattern=None, search=False, sortable=True, unique=False, deprecated=None, was=(), tags=(), "
            "shareable=False, inaccessible=False, federation_key=False)",
        ),
        (clade.computed, "(description, *, deprecated='')"),
        (clade.create_app, "(settings=None)"),
    ],
)
def test_options_keep_their_names_defaults_and_positions(function: Any, parameters: str):
    signature = inspect.signature(function)
    bare = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    assert str(signature.replace(parameters=bare, return_annotation=signature.empty)) == parameters


def test_methods_of_classes_see_the_key_and_the_name():
    assert {name for name in vars(NodeValues) if not name.startswith("_")} == {"key", "name"}


# -- clients and data --------------------------------------------------------------------------------------------------


async def asked(server: Server, text: str, arguments: str) -> tuple[list[Any], list[str]]:
    """The nodes of a list, by id and revision, and their cursors."""
    inner = f"{text % arguments} {{ edges {{ cursor node {{ id revision }} }} }}"
    query = f"{{ {inner} {'}' * (1 + text.count('{ '))}"
    found = await server.data(ALL, query)
    while "edges" not in found:
        (found,) = found.values()
    return [one["node"] for one in found["edges"]], [one["cursor"] for one in found["edges"]]


@pytest.mark.both_stores
async def test_ids_and_cursors_of_lists_outlive_renamed_levels_and_attributes(store):
    await plant(store, land_before.Land, ROWS)
    before, after = Server(store, land_before.Land), Server(store, land_after.Land)
    for people in (8, 9):
        await before.write(ALL, UPDATE % f"town: {{people: {people}}}")
    for text in LISTS:
        nodes, cursors = await asked(before, text, "first: 9")
        assert len(nodes) > 1
        assert (await asked(after, text, "first: 9"))[0] == nodes
        for place, cursor in enumerate(cursors):
            assert (await asked(after, text, f'first: 9, after: "{cursor}"'))[0] == nodes[place + 1 :]
            if "history" not in text:
                assert (await asked(after, text, f'last: 9, before: "{cursor}"'))[0] == nodes[:place]


@pytest.mark.both_stores
async def test_a_cursor_of_changes_outlives_a_renamed_level(store):
    await plant(store, land_before.Land, ROWS)
    seen = (await Server(store, land_before.Land).data(ALL, CHANGES % ""))["changes"]
    after = Server(store, land_after.Land)
    made = await after.write(ALL, UPDATE % "city: {population: 8}")
    assert "errors" not in made
    new = (await after.data(ALL, CHANGES % f', after: "{seen["cursor"]}"'))["changes"]["changes"]
    assert new == [{"event": "UPDATED", "path": "DE/Bonn", "level": "CITY"}]


# -- releases ----------------------------------------------------------------------------------------------------------


def test_every_release_has_left_data_that_later_ones_read():
    """CONTRIBUTING.md says what belongs into the folder."""
    headings = re.findall(r"^## (\d\S*)(.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert headings
    released = [version for version, rest in headings if "unreleased" not in rest]
    assert [version for version in released if not (ROOT / "tests" / "golden" / version).is_dir()] == []
