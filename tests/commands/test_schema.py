"""`clade schema` prints, writes and checks the schema, whole or as a subgraph."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from commands.schema import schema
from graph.federation_exposure import exposed
from graph.hierarchies.registry import served
from graph.schema import build_schema
from graph.settings import Settings
from store.errors import BadInput

app = typer.Typer()
app.command()(schema)
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _plain_settings(monkeypatch):
    monkeypatch.delenv("CLADE_HIERARCHIES", raising=False)
    monkeypatch.delenv("CLADE_FEDERATION_EXPOSE", raising=False)


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_the_schema_in_the_repository_is_the_served_schema():
    assert run("--check", ROOT / "schema.graphql").exit_code == 0


def test_the_whole_schema_is_printed_or_written(tmp_path):
    printed = run()
    assert printed.exit_code == 0
    assert printed.output == (ROOT / "schema.graphql").read_text("utf-8")
    assert run(tmp_path / "new.graphql").output == ""
    assert (tmp_path / "new.graphql").read_text("utf-8") == printed.output


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


def test_the_schema_has_the_served_hierarchies(monkeypatch):
    monkeypatch.setenv("CLADE_HIERARCHIES", "graph.hierarchies.categories")
    output = run().output
    assert "type Category " in output
    assert "type City " not in output


def test_a_check_of_a_different_or_missing_file_fails_with_one_line_and_writes_nothing(tmp_path):
    old = tmp_path / "old.graphql"
    old.write_text("type Query { old: Int }")
    for file in (old, tmp_path / "missing.graphql", tmp_path):
        refused = run("--check", file)
        assert refused.exit_code == 1
        assert (
            refused.output
            == f"clade: {file} differs from the served schema; run the command without --check to update it.\n"
        )
    assert old.read_text() == "type Query { old: Int }"
    assert list(tmp_path.iterdir()) == [old]


def test_an_unknown_word_in_federation_expose_is_an_error(monkeypatch):
    monkeypatch.setenv("CLADE_FEDERATION_EXPOSE", "secrets")
    assert str(run().exception).startswith("CLADE_FEDERATION_EXPOSE has unknown words: secrets;")
    with pytest.raises(BadInput):
        Settings()


def test_a_check_needs_a_file():
    refused = run("--check")
    assert refused.exit_code == 2
    assert "missing with --check" in refused.output
