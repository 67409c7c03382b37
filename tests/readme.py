"""The README as the tests read it: its blocks of code by their language, and its tables."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\| (.*) \|$", re.MULTILINE)


def section(title: str) -> str:
    """The text under a heading, up to the next one of the same rank."""
    _, found, rest = README.read_text("utf-8").partition(f"\n## {title}\n")
    assert found, f'The README has no section "{title}".'
    return rest.partition("\n## ")[0]


def blocks(language: str, text: str | None = None) -> list[str]:
    """The code in this language, of all the README or of a part of it."""
    text = README.read_text("utf-8") if text is None else text
    return [code for found, code in _BLOCK.findall(text) if found == language]


def table(title: str) -> list[tuple[str, ...]]:
    """The rows of the table in a section, without its head."""
    _, _, *rows = (tuple(cell.strip() for cell in row.split(" | ")) for row in _ROW.findall(section(title)))
    return rows
