"""Documents of the explorer's panels, and the values of its forms, against the schemas that they are sent to."""

import json

import pytest
from graphql import parse, validate

from clade import Node
from graph.hierarchies.registry import served
from graph.operation.document_limits import DocumentLimits
from graph.operation.graphql_core import core_schema
from store.connect import open_store
from tests.clients.programs import needs_node, run
from tests.graph.explorer.panels.app import ASSETS, HERE
from tests.rights.asking import Server, caller

HIERARCHIES = """{ hierarchies { name title field listField levels { name title inputField
    attributes { name type selection values required computed } } } }"""
VERBS, OF_LEVEL, OF_HIERARCHY, OF_ALL = 6, 2, 3, 2


class Note(Node, hierarchy="note"):
    """A note, whose levels have no attributes."""


class Page(Note, under=[None, "self"]):
    """A page."""


@needs_node
@pytest.mark.parametrize(
    "names", ["graph.hierarchies.locations,graph.hierarchies.categories", "tests.classes.shops", ""]
)
async def test_documents_of_each_hierarchy_and_level_are_valid_and_within_the_default_limits(names, tmp_path):
    classes = served(names) if names else [Note]
    async with open_store(f"sqlite:///{tmp_path / 'clade.db'}") as store:
        await store.create()
        server = Server(store, *classes)
        found = (await server.data(caller(*[f"read:{one.name}" for one in classes]), HIERARCHIES))["hierarchies"]
    (tmp_path / "hierarchies.json").write_text(json.dumps(found))
    made = json.loads(run("node", "--no-warnings", HERE / "documents.mjs", tmp_path / "hierarchies.json"))
    levels = sum(len(one["levels"]) for one in found)
    assert len(made) == OF_ALL + len(found) * (OF_HIERARCHY + VERBS) + levels * OF_LEVEL
    for document in made:
        DocumentLimits().parse(document)
        assert validate(core_schema(server.schema), parse(document)) == [], document


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
    ("Money", "{ amount currency }", None, *[{"amount": "1.00", "currency": "EUR"}] * 3),
    ("[Money!]", "{ amount currency }", None, [EURO], None, [EURO]),
    ("Address", "{ street note { texts { language text } } }", None,
     {"street": "Main 1", "note": {"texts": [{"language": "de", "text": "hinten"}]}}, None,
     {"street": "Main 1", "note": [{"language": "de", "text": "hinten"}]}),
    ("Localized", "{ texts { language text } }", None, {"texts": [{"language": "de", "text": "Hallo"}]},
     [{"language": "de", "text": "Hallo"}], []),
]  # fmt: skip


@needs_node
def test_values_become_forms_and_inputs(tmp_path):
    program = tmp_path / "values.mjs"
    program.write_text(
        f"""import {{ toForm, toInput, changedTexts, mergedTexts }} from "{ASSETS}/values.js";
        const rows = JSON.parse(process.argv[2]).map(([type, selection, values, value]) => {{
          const one = {{ name: "x", type, selection, values }};
          const form = toForm(one, value);
          const empty = toForm(one, null);
          return [form, toInput(one, form, form), toInput(one, empty, empty)];
        }});
        const texts = (...all) => all.map(([language, text]) => ({{ language, text }}));
        const wrong = ["12x", "1.5", ""].map((text) => {{
          try {{ return toInput({{ type: "Int" }}, text, ""); }} catch (error) {{ return error.message; }}
        }});
        const old = texts(["de", "A"], ["fr", "B"]);
        console.log(JSON.stringify({{ rows, wrong,
          changed: changedTexts(old, texts(["de", "A"], ["en", "C"])),
          merged: mergedTexts(old, texts(["de", "X"]), texts(["de", "Y"], ["fr", "B"], ["it", "Z"])) }}));"""
    )
    found = json.loads(run("node", "--no-warnings", program, json.dumps(VALUES)))
    for (kind, _, _, _, form, given), (made, sent, empty) in zip(VALUES, found["rows"], strict=True):
        assert form is None or made == form, kind
        assert sent == given, kind
        assert empty == ([] if kind == "Localized" else None), kind
    assert found["wrong"] == ["“12x” is no whole number.", "“1.5” is no whole number.", None]
    assert found["changed"] == [{"language": "en", "text": "C"}, {"language": "fr", "text": None}]
    assert found["merged"] == [{"language": "it", "text": "Z"}, {"language": "de", "text": "X"}]


@needs_node
def test_an_update_checks_the_fields_that_it_changes(tmp_path):
    program = tmp_path / "checked.mjs"
    program.write_text(
        f"""import {{ WriteSession }} from "{ASSETS}/write_session.js";
        const attributes = ["size", "owner"].map((name) => ({{ name, type: "Int", values: null, selection: null }}));
        const hierarchy = {{ name: "BOX", levels: [{{ name: "BOX", attributes }}] }};
        const session = (verb) => Object.assign(new WriteSession({{ verb, hierarchy }}, () => {{}}, () => {{}}), {{
          node: {{ level: "BOX", name: "A", names: [], size: -1, owner: null }},
          draft: {{ level: "BOX", name: "B", names: [], values: {{ size: "-1", owner: "2" }} }},
        }});
        const checked = (verb) => ["name", "size", "owner"].filter((field) => session(verb).isChecked(field));
        console.log(JSON.stringify([checked("update"), checked("create")]));"""
    )
    found = json.loads(run("node", "--no-warnings", program))
    assert found == [["name", "owner"], ["name", "size", "owner"]]
