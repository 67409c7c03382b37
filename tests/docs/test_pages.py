"""All pages: the files that they link or name exist."""

import re
from pathlib import Path

import pytest

from tests.readme import DOCS, ROOT

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    *DOCS.rglob("*.md"),
]
NAMED = re.compile(
    r"`((?:clade|commands|deploy|graph|resolvers|store|scripts|docs|bench|tests|\.ci|\.github)/[\w./-]*)`"
)
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_file_that_a_page_links_or_names_exists(page):
    text = page.read_text("utf-8")
    linked = [link for link in LINK.findall(text) if "://" not in link]
    assert [link for link in linked if not (page.parent / link).exists()] == []
    assert [name for name in NAMED.findall(text) if not (ROOT / name).exists()] == []
