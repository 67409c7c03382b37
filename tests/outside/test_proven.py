"""What the suite quotes stands in the docs, and the page that a run writes names all of it."""

from collections import Counter
from pathlib import Path

import pytest

from tests.outside.parts import Part, all_parts
from tests.outside.proven import DOCS, GUARANTEES, Run, page, plain, sections

QUOTES = sorted({promise for part in all_parts() for promise in part.promises})


@pytest.mark.parametrize("name", sorted({name for name, _ in QUOTES}))
def test_every_quoted_sentence_is_in_its_page(name: str) -> None:
    text = plain((DOCS / name).read_text())
    assert [sentence for page, sentence in QUOTES if page == name and plain(sentence) not in text] == []


def test_the_page_has_counts_seeds_promises_and_what_was_not_tried(tmp_path: Path) -> None:
    tried = Part("tried", lambda *_: Counter(), (("rights.md", "`totalCount` counts the grant roots that exist"),))
    left = Part("left", lambda *_: Counter(), (("writing.md", "never shown"),))
    run, other = Run(), Run()
    run.add("tried", "sqlite", 7, 90, Counter({"lists compared": 1200}))
    run.add("tried", "sqlite", 8, 30, Counter({"lists compared": 34}))
    other.add("tried", "dynamodb", 7, 60, Counter({"lists compared": 5}))
    other.save(tmp_path / "other.json")
    run.take(tmp_path / "other.json")
    written = page(run, [tried, left])
    assert "2 minutes on SQLite, 1 minutes on DynamoDB (dynoxide)" in written
    assert "| `tried` | lists compared | 1,234 | 5 |" in written
    assert "| `tried` | 7 to 8 | 7 |" in written
    assert "| `totalCount` counts the grant roots that exist | `tried` |" in written
    assert "never shown" not in written
    assert all(f"- [{name}]({name}): " in written for name in GUARANTEES)


def test_sections_are_those_of_the_page() -> None:
    assert dict(sections("consistency.md"))


def test_the_page_names_every_part_of_the_suite() -> None:
    written = (DOCS / "proven.md").read_text()
    assert [part.name for part in all_parts() if f"`{part.name}`" not in written] == []
