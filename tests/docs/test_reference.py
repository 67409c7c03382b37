"""docs/reference: every setting, error code and command, and none that does not exist."""

import re

import typer
from typer.main import get_command

from commands.main import app_of
from graph import errors as graph_errors
from graph.settings import Settings
from store.errors import CladeError
from tests.readme import DOCS

SETTINGS, ERRORS, COMMANDS = (
    (DOCS / "reference" / f"{name}.md").read_text() for name in ("settings", "errors", "commands")
)


def test_every_setting_is_listed_with_its_default_and_description():
    rows = {row.partition(" | ")[0]: row for row in re.findall(r"^\| (`CLADE_\w+`.*) \|$", SETTINGS, re.MULTILINE)}
    assert rows.keys() == {f"`CLADE_{name.upper()}`" for name in Settings.model_fields}
    for name, field in Settings.model_fields.items():
        row = rows[f"`CLADE_{name.upper()}`"]
        assert field.description in row
        assert field.default == "" or f"`{field.default}`" in row


def test_every_error_code_is_listed():
    codes = {value for name, value in vars(graph_errors).items() if name.isupper() and is_code(value)}
    kinds = [CladeError]
    for kind in kinds:
        kinds += kind.__subclasses__()
        codes.add(kind.code)
    assert set(re.findall(r"^\| `([A-Z_]+)` \|", ERRORS, re.MULTILINE)) == codes


def is_code(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[A-Z_]+", value) is not None


def test_every_command_is_listed():
    assert [name for name in names(get_command(app_of())) if f"clade {name}" not in COMMANDS] == []


def names(group: typer.core.TyperGroup) -> list[str]:
    """The commands of a group; those of a group within it with its name before them."""
    found = []
    for name, command in group.commands.items():
        inner = names(command) if hasattr(command, "commands") else []
        found += [f"{name} {one}" for one in inner] or [name]
    return found
