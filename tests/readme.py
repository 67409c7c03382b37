"""Markdown pages as the tests read them: sections, blocks of code by their language, and tables."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
ROOT = README.parent
DOCS = ROOT / "docs"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\| (.*) \|$", re.MULTILINE)


def section(title: str, page: Path = README) -> str:
    """The text under a heading of the second rank, up to the next one."""
    _, found, rest = page.read_text("utf-8").partition(f"\n## {title}\n")
    assert found, f'{page.name} has no section "{title}".'
    return rest.partition("\n## ")[0]


def blocks(language: str, text: str | None = None) -> list[str]:
    """The blocks of code in a language, of the whole README or of a text."""
    text = README.read_text("utf-8") if text is None else text
    return [code for found, code in _BLOCK.findall(text) if found == language]


def table(text: str) -> list[tuple[str, ...]]:
    """The rows of the tables in a text, without the head of the first one."""
    _, _, *rows = (tuple(cell.strip() for cell in row.split(" | ")) for row in _ROW.findall(text))
    return rows
