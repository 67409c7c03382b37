"""`clade schema` prints, writes and checks the schema, whole or as a subgraph."""

import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from commands.schema import schema
from graph.hierarchies.registry import served
from graph.schema import build_schema, schema_changes
from graph.settings import exposed
from store.errors import BadInput
from tests.schemas import shared_schema

app = typer.Typer()
app.command()(schema)
ROOT = Path(__file__).parents[2]
OWN = (ROOT / "schema.graphql").read_text("utf-8")


@pytest.fixture(autouse=True)
def _plain_settings(monkeypatch):
    monkeypatch.delenv("CLADE_HIERARCHIES", raising=False)
    monkeypatch.delenv("CLADE_FEDERATION_EXPOSE", raising=False)
    monkeypatch.setattr("graph.schema.build_schema", shared_schema)


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_the_schema_in_the_repository_is_the_served_one_which_is_printed_or_written(tmp_path):
    assert run("--check", ROOT / "schema.graphql").exit_code == 0
    printed = run()
    assert printed.exit_code == 0
    assert printed.output == OWN
    assert run(tmp_path / "new.graphql").output == ""
    assert (tmp_path / "new.graphql").read_text("utf-8") == OWN


@pytest.mark.parametrize(
    "hierarchies", [pytest.param("graph.hierarchies.locations", marks=pytest.mark.thorough), "tests.classes.shops"]
)
@pytest.mark.parametrize("expose", ["", "node,history"])
async def test_the_subgraph_is_the_sdl_that_gateways_get(monkeypatch, hierarchies, expose):
    monkeypatch.setenv("CLADE_HIERARCHIES", hierarchies)
    monkeypatch.setenv("CLADE_FEDERATION_EXPOSE", expose)
    built, _ = build_schema(served(hierarchies), expose=exposed(expose))
    result = await built.execute("{ _service { sdl } }")
    assert run("--federation").output == result.data["_service"]["sdl"]


def test_a_check_of_a_different_or_missing_file_fails_with_one_line_and_writes_nothing(tmp_path):
    old = tmp_path / "old.graphql"
    old.write_text("type Query { old: Int }")
    for file in (old, tmp_path / "missing.graphql", tmp_path):
        refused = run("--check", file)
        assert refused.exit_code == 1
        assert (
            str(refused.exception)
            == f"{file} differs from the served schema; run the command without --check to update it."
        )
    assert old.read_text() == "type Query { old: Int }"
    assert list(tmp_path.iterdir()) == [old]


def test_a_check_needs_a_file():
    refused = run("--check")
    assert refused.exit_code == 2
    assert "missing with --check" in refused.output


# -- comparison with an older schema -----------------------------------------------------------------------------------


def compared(tmp_path, text, *options):
    old = tmp_path / "old.graphql"
    old.write_text(text, "utf-8")
    return run("--compare", old, *options)


def nothing(tmp_path):
    return f"Nothing has changed since {tmp_path / 'old.graphql'} that breaks clients.\n"


def test_breaking_changes_are_lines_with_exit_status_one_and_others_with_zero(tmp_path):
    older = OWN.replace("type Query {", "type Query {\n  old: Int\n  older(a: Int): Int\n", 1)
    found = compared(tmp_path, older)
    assert found.exit_code == 1
    assert found.output == "Breaking: Field Query.old was removed.\nBreaking: Field Query.older was removed.\n"
    older = re.sub(r"(?<=enum DeletePolicy \{\n)(?s:.*?)  CASCADE\n", "  REFUSE\n", OWN)
    listed = "Dangerous: Enum value DeletePolicy.CASCADE was added.\n"
    without_a_field = re.sub(r'\n  """[^"]*"""\n  _service: _Service!\n', "\n", OWN)
    assert "_service" not in without_a_field
    for text, expected in ((without_a_field, ""), (older, listed)):
        found = compared(tmp_path, text)
        assert (found.exit_code, found.output) == (0, expected + nothing(tmp_path))


def test_a_subgraph_is_compared_with_an_older_subgraph(tmp_path):
    present = run("--federation").output
    older = present.replace("type Query {", 'type Query {\n  old: Int @tag(name: "x")', 1)
    assert compared(tmp_path, older, "--federation").output == "Breaking: Field Query.old was removed.\n"


def test_an_input_that_becomes_one_of_is_a_breaking_change():
    sdl = "type Query {{ a(by: By): Int }} input By {} {{ id: ID path: String }}"
    assert schema_changes(sdl.format(""), sdl.format("@oneOf")).breaking == ["Input By has become @oneOf."]
    assert schema_changes(sdl.format("@oneOf"), sdl.format("")).breaking == []


@pytest.mark.parametrize(
    ("content", "fact"),
    [
        (b"{ a }", "is not a GraphQL schema in SDL: it has no type Query"),
        (b"type Query { a: Missing }", "is not a GraphQL schema in SDL: Unknown type 'Missing'."),
        (b"", "is not a GraphQL schema in SDL: Syntax Error: Unexpected <EOF>."),
        (b"\xff\xfe", "is not a text in UTF-8"),
    ],
)
def test_a_comparison_with_an_invalid_file_is_an_error_of_one_sentence(tmp_path, content, fact):
    old = tmp_path / "old.graphql"
    old.write_bytes(content)
    error = run("--compare", old).exception
    assert isinstance(error, BadInput)
    assert str(error) == f"{old} {fact.rstrip('.')}; name a file that clade schema wrote."


@pytest.mark.parametrize("other", [["new.graphql"], ["--check"]])
def test_a_comparison_writes_and_checks_nothing_else(tmp_path, other):
    refused = compared(tmp_path, OWN, *other)
    assert refused.exit_code == 2
    assert "leave FILE and --check out" in refused.output
