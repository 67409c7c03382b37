"""Files of the page about imports: each is imported by its command, and makes the tree that is shown."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from commands.main import app_of
from graph.hierarchies.registry import OWN_MODULES
from tests.readme import DOCS, section

PAGE = DOCS / "importing.md"
FILES = re.findall(
    r"^### (.+?)\n\n```\w+\n(.*?)^```\n\n```sh\n(.*?)^```\n\n```text\n(.*?)^```",
    section("Your file has", PAGE), re.MULTILINE | re.DOTALL,
)  # fmt: skip
DESCRIBED = re.findall(
    r"^```csv\n(.*?)^```\n\n```sh\n(.*? --describe)\n```\n\n```text\n(.*?)^```",
    section("A file that would become another tree", PAGE), re.MULTILINE | re.DOTALL,
)  # fmt: skip
STORED = {
    "deutsch.txt": ("stored.txt", "12 - Tools\n34 - Tools > Saws\n"),
    "stock.csv": (
        "stored.csv",
        "path,level,id,price\nM,CATEGORY,m,\nM/M,PRODUCT,p,5\nM/M/red,VARIANT,red,\nM/M/blue,VARIANT,blue,9\n",
    ),
    "night.csv": (
        "stored.csv",
        "path,level,sku,qty\nTV,DEPARTMENT,,\nTV/48,PRODUCT,TV-48,3\nTV/65,PRODUCT,TV-65,4\nTV/77,PRODUCT,,5\n",
    ),
}  # what is imported before
SHOP = '''"""A shop."""

from clade import Node, attribute


class Shop(Node, hierarchy="shop"):
    """Something in a shop."""


class Department(Shop, under=None):
    """A department."""


class Product(Shop, under=[Department]):
    """A product."""

    sku: str | None = attribute("Its code in the warehouse.", unique=True)
    qty: int | None = attribute("Pieces in stock.")
'''


@pytest.mark.parametrize(
    ("title", "content", "commands", "shown"), [*FILES, *(("described", *one) for one in DESCRIBED)]
)
def test_a_file_makes_the_tree_that_is_shown(
    title: str, content: str, commands: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(SHOP)
    classes = "shop.py" if " shop " in commands else ",".join(OWN_MODULES)
    environment = {"CLADE_STORE": f"sqlite:///{tmp_path}/clade.db", "COLUMNS": "200", "CLADE_HIERARCHIES": classes}

    def run(*words: str) -> str:
        result = CliRunner().invoke(app_of(words[:1]), words, env=environment)
        assert result.exit_code == 0, result.output + repr(result.exception)
        return result.stdout

    command, *others = commands.replace("\\\n", "").splitlines()
    _, *words = shlex.split(command)
    if before := STORED.get(words[2]):
        name, text = before
        (tmp_path / name).write_text(text, encoding="utf-8")
        run("import", words[1], name)
    (tmp_path / words[2]).write_text(content, encoding="utf-8")
    if "--describe" in words:
        assert run(*words) == shown
        return
    run(*words)
    if not others:
        assert run("tree", words[1], "--depth", "9") == shown
        return
    _, pattern = others[0].split("grep -o ")
    assert [*re.findall(shlex.split(pattern)[0], run("export", words[1]))] == shown.splitlines()


def test_all_files_of_the_page_are_here() -> None:
    assert len(FILES) == section("Your file has", PAGE).count("```sh") == 14
    assert len(DESCRIBED) == 1
