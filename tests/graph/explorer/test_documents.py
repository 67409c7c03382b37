"""Documents of the explorer: valid for every schema, as the files beside the page have them, and typed in its code."""

import json
import os
import shutil

import pytest
from graphql import build_schema, parse, validate

from clade import Node, attribute
from examples.asset import AssetNode
from examples.drive import DriveNode
from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from graph.operation.document_limits import DocumentLimits
from graph.operation.graphql_core import core_schema
from store.connect import open_store
from tests.classes.land_after import Land
from tests.classes.shops import Place
from tests.clients.programs import HERE as CLIENTS
from tests.clients.programs import PROGRAMS, needs_node, run
from tests.readme import README
from tests.rights.asking import Server, caller

HERE = README.parent / "tests" / "graph" / "explorer"
EXPLORER = README.parent / "graph" / "explorer"

pytestmark = needs_node


class Thing(Node, hierarchy="thing", search="tree"):
    """A hierarchy whose levels have attributes of one name and of different types."""


class Box(Thing, under=[None, "self"]):
    """A box."""

    size: int | None = attribute("Size in litres.")
    owner: str | None = attribute("Owner.")


class Ball(Thing, under=[Box]):
    """A ball."""

    size: float | None = attribute("Diameter in metres.")
    owner: str | None = attribute("Owner.")


async def documents(store, file, *classes):
    """The documents of some hierarchies, by hierarchy and name, with the schema that they are for."""
    server = Server(store, *classes)
    first = json.loads(run("node", HERE / "print_documents.mjs"))["hierarchies"]
    found = await server.data(caller(*[f"read:{cls.name}" for cls in classes]), first)
    file.write_text(json.dumps(found["hierarchies"]))
    printed = json.loads(run("node", HERE / "print_documents.mjs", file))["documents"]
    named = {name: {one: text for one, text in each.items() if text} for name, each in printed.items()}
    return {"all": {"hierarchies": first}, **named}, core_schema(server.schema)


@pytest.fixture
async def store(tmp_path):
    """A store without nodes, since documents read none."""
    async with open_store(f"sqlite:///{tmp_path / 'clade.db'}") as opened:
        await opened.create()
        yield opened


@pytest.mark.parametrize(
    "classes",
    [
        pytest.param((Location, CategoryNode), marks=pytest.mark.thorough),
        (Place,),
        (Land, Thing),
        pytest.param((DriveNode, AssetNode), marks=pytest.mark.thorough),
    ],
)
async def test_documents_are_valid_and_within_the_default_limits(store, tmp_path, classes):
    found, schema = await documents(store, tmp_path / "hierarchies.json", *classes)
    assert len(found) == 1 + len(classes)
    for name, each in found.items():
        for document in each.values():
            DocumentLimits().parse(document)
            assert validate(schema, parse(document)) == [], name
    for cls in classes:
        assert ("search" in found[cls.name]) == (cls.search is not None)
        assert ("near" in found[cls.name]) == (cls.location is not None)
        assert {"roots", "node", "children", "stub", "stubRoots", "known"} <= found[cls.name].keys()


async def test_files_have_the_documents_of_the_hierarchies_that_come_with_clade(store, tmp_path):
    found, _ = await documents(store, tmp_path / "hierarchies.json", Location, CategoryNode)
    schema = build_schema((README.parent / "schema.graphql").read_text())
    for name, each in found.items():
        file, text = HERE / "documents" / f"{name}.graphql", "\n\n".join(each.values()) + "\n"
        if os.environ.get("CLADE_TEST_WRITE_DOCUMENTS"):
            file.write_text(text)
        assert file.read_text() == text, f"CLADE_TEST_WRITE_DOCUMENTS=1 writes {file.name}"
        assert validate(schema, parse(text)) == []


@pytest.mark.thorough
def test_the_code_agrees_with_the_types_of_its_answers(tmp_path):
    made = tmp_path / "assets"
    shutil.copytree(EXPLORER / "assets", made)
    operations = "".join((HERE / "documents" / f"{name}.graphql").read_text() for name in ("all", "location"))
    (tmp_path / "operations.graphql").write_text(operations)
    config = {"scalars": {"DateTime": "string", "Decimal": "string", "Path": "string"}, "defaultScalarType": "unknown"}
    types = {"plugins": ["typescript-operations"], "config": config}
    codegen = {
        "schema": str(README.parent / "schema.graphql"),
        "documents": str(tmp_path / "operations.graphql"),
        "generates": {str(made / "types.d.ts"): types},
    }
    (tmp_path / "codegen.json").write_text(json.dumps(codegen))
    run("node", CLIENTS / "types.mjs", tmp_path / "codegen.json")
    shutil.copy(HERE / "preact.d.ts", made / "vendor" / "preact.d.ts")
    options = "--noEmit --strict --checkJs --allowJs --target esnext --module esnext --moduleResolution bundler"
    run(PROGRAMS / "tsc", *options.split(), "--lib", "esnext,dom,dom.iterable", made / "main.js")
