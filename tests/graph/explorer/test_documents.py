"""Documents of the explorer: valid for every schema, as the files beside the page have them, and typed in its code."""

import json
import os
import shutil

import pytest
from graphql import parse, validate

from clade import Node, attribute
from examples.asset import AssetNode
from examples.drive import DriveNode
from graph.hierarchies.categories import CategoryNode
from graph.hierarchies.locations import Location
from graph.operation.limits import DocumentLimits
from graph.operation.selection import core_schema
from store.connect import open_store
from tests.classes.shops import Place
from tests.clients.programs import HERE as CLIENTS
from tests.clients.programs import PROGRAMS, needs_node, run
from tests.readme import README
from tests.rights.asking import Server, caller

HERE = README.parent / "tests" / "graph" / "explorer"
ASSETS = README.parent / "graph" / "explorer" / "assets"
WRITING = """{ hierarchies { name title field listField levels { name title inputField
    attributes { name type selection values required computed } } } }"""
VERBS, OF_LEVEL, OF_HIERARCHY, OF_ALL = 7, 3, 4, 4

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


HIERARCHIES = (Location, CategoryNode, Place, Thing, DriveNode, AssetNode)


async def printed(tmp_path, *classes):
    """The documents of some hierarchies by hierarchy and name, those of their dialogs, and the schema for both."""
    async with open_store(f"sqlite:///{tmp_path / 'clade.db'}") as store:  # without nodes: documents read none
        await store.create()
        server, who = Server(store, *classes), caller(*[f"read:{cls.name}" for cls in classes])
        first = json.loads(run("node", HERE / "print_documents.mjs"))["hierarchies"]
        for name, document in (("reading", first), ("writing", WRITING)):
            found = (await server.data(who, document))["hierarchies"]
            (tmp_path / f"{name}.json").write_text(json.dumps(found))
    made = json.loads(run("node", HERE / "print_documents.mjs", tmp_path / "reading.json", tmp_path / "writing.json"))
    named = {name: {one: text for one, text in each.items() if text} for name, each in made["documents"].items()}
    return {"all": {"hierarchies": first}, **named}, made["writing"], core_schema(server.schema)


async def test_documents_are_valid_within_the_default_limits_and_those_of_the_own_hierarchies_in_files(tmp_path):
    found, writing, schema = await printed(tmp_path, *HIERARCHIES)
    for cls in HIERARCHIES:
        assert ("search" in found[cls.name]) == (cls.search is not None)
        assert ("near" in found[cls.name]) == (cls.location is not None)
        assert {"roots", "node", "children", "above"} <= found[cls.name].keys()
    levels = sum(len(cls.definition().levels) for cls in HIERARCHIES)
    assert len(writing) == OF_ALL + len(HIERARCHIES) * (OF_HIERARCHY + VERBS) + levels * OF_LEVEL
    for document in [document for each in found.values() for document in each.values()] + writing:
        DocumentLimits().parse(document)
        assert validate(schema, parse(document)) == [], document
    for name in ("all", "category", "location"):
        file, text = HERE / "documents" / f"{name}.graphql", "\n\n".join(found[name].values()) + "\n"
        if os.environ.get("CLADE_TEST_WRITE_DOCUMENTS"):
            file.write_text(text)
        assert file.read_text() == text, f"CLADE_TEST_WRITE_DOCUMENTS=1 writes {file.name}"


@pytest.mark.thorough
def test_the_code_agrees_with_the_types_of_its_answers(tmp_path):
    made = tmp_path / "assets"
    shutil.copytree(ASSETS, made)
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


EURO = {"amount": "1", "currency": "EUR"}
VALUES = [
    # type, selection, enum values, stored value, text of the form, input after a change back and forth
    ("String", None, None, "x", "x", "x"),
    ("Int", None, None, 7, "7", 7),
    ("Long", None, None, 7, "7", "7"),
    ("Long", None, None, "9007199254740993", "9007199254740993", "9007199254740993"),
    ("[Long!]", None, None, ["-9223372036854775808", 7], "-9223372036854775808\n7", ["-9223372036854775808", "7"]),
    ("Float", None, None, -1.5, "-1.5", -1.5),
    ("Decimal", None, None, "12.50", "12.50", "12.50"),
    ("Boolean", None, None, False, "false", False),
    ("Date", None, None, "2026-10-05", "2026-10-05", "2026-10-05"),
    ("Color", None, ["RED"], "RED", "RED", "RED"),
    ("[Int!]", None, None, [1, 2], "1\n2", [1, 2]),
    ("[String!]", None, None, ["a", " b "], "a\n b ", ["a", " b "]),
    ("[String!]", None, None, ["a\nb", ""], '[\n  "a\\nb",\n  ""\n]', ["a\nb", ""]),
    ("[String!]", None, None, ["[a]"], '[\n  "[a]"\n]', ["[a]"]),
    ("Money", "{ amount currency }", None, *[{"amount": "1.00", "currency": "EUR"}] * 3),
    ("[Money!]", "{ amount currency }", None, [EURO], None, [EURO]),
    ("Address", "{ street note { texts { language text } } }", None,
     {"street": "Main 1", "note": {"texts": [{"language": "de", "text": "hinten"}]}}, None,
     {"street": "Main 1", "note": [{"language": "de", "text": "hinten"}]}),
    ("Localized", "{ texts { language text } }", None, {"texts": [{"language": "de", "text": "Hallo"}]},
     [{"language": "de", "text": "Hallo"}], []),
]  # fmt: skip

TYPED = [
    # type, selection, what somebody types, what is sent of it, or a sentence before anything is sent
    ("Int", None, "", None),
    ("Int", None, " 7 ", 7),
    ("Int", None, "12x", "“12x” is no whole number."),
    ("Int", None, "1.5", "“1.5” is no whole number."),
    ("Int", None, "2147483648", "“2147483648” is not between -2147483648 and 2147483647."),
    ("Float", None, "-1.5e3", -1500),
    *(("Float", None, text, f"“{text}” is no number; write one such as 12.5.") for text in ("12,50", "0x10", " ", "∞")),
    ("Float", None, "1e999", "“1e999” is too large for a number of this kind."),
    ("Float", None, "1e-999", "“1e-999” is too small for a number of this kind."),
    *((kind, None, text, text) for kind in ("Decimal", "Long", "String") for text in ("12,50", " 1 ", "1e999")),
    ("[Boolean!]", None, "true\nyes", "“yes” is neither true nor false."),
    ("[Decimal!]", None, "12,50\n\n 1 ", ["12,50", "1"]),
    ("[String!]", None, "[a", 'This is no JSON; write a list such as ["a", "b"].'),
    ("Part", "{ a }", '{"a": [0.1, 9007199254740993, 1.2345678901234567890, 1e999, 0.30000000000000004]}',
     {"a": [0.1, "9007199254740993", "1.2345678901234567890", "1e999", 0.30000000000000004]}),
]  # fmt: skip


def test_values_become_forms_and_inputs(tmp_path):
    program = tmp_path / "values.mjs"
    program.write_text(
        f"""import {{ toForm, toInput, changedTexts, mergedTexts }} from "{ASSETS}/fields.js";
        import {{ labelOf }} from "{ASSETS}/words.js";
        const rows = JSON.parse(process.argv[2]).map(([type, selection, values, value]) => {{
          const one = {{ name: "x", type, selection, values }};
          const form = toForm(one, value);
          const empty = toForm(one, null);
          return [form, toInput(one, form, form), toInput(one, empty, empty)];
        }});
        const texts = (...all) => all.map(([language, text]) => ({{ language, text }}));
        const typed = JSON.parse(process.argv[3]).map(([type, selection, text]) => {{
          try {{ return toInput({{ type, selection }}, text, ""); }} catch (error) {{ return error.message; }}
        }});
        const old = texts(["de", "A"], ["fr", "B"]);
        const labels = [["ean", "EAN of it."], ["iso3", "ISO code."], ["vatId", "For VAT."], ["squareFeet", "Feet."]];
        console.log(JSON.stringify({{ rows, typed,
          incomplete: changedTexts(old, texts(["de", "A"], ["de", "C"],
            ["fr", ""], ["it", ""], ["", "D"], ["", ""])),
          labels: labels.map(([name, description]) => labelOf({{ name, description }})),
          changed: changedTexts(old, texts(["de", "A"], ["en", "C"])),
          merged: mergedTexts(old, texts(["de", "X"]), texts(["de", "Y"], ["fr", "B"], ["it", "Z"])) }}));"""
    )
    found = json.loads(
        run("node", "--no-warnings", program, json.dumps(VALUES), json.dumps([one[:3] for one in TYPED]))
    )
    for (kind, _, _, _, form, given), (made, sent, empty) in zip(VALUES, found["rows"], strict=True):
        assert form is None or made == form, kind
        assert sent == given, kind
        assert empty == ([] if kind == "Localized" else None), kind
    assert found["typed"] == [one[3] for one in TYPED]
    assert found["labels"] == ["EAN", "ISO3", "VAT id", "Square feet"]
    assert [(one["language"], one["text"]) for one in found["incomplete"]] == [
        ("de", "A"), ("de", "C"), ("it", ""), ("", "D"), ("fr", None)
    ]  # fmt: skip
    assert found["changed"] == [{"language": "en", "text": "C"}, {"language": "fr", "text": None}]
    assert found["merged"] == [{"language": "it", "text": "Z"}, {"language": "de", "text": "X"}]
