"""What the suite quotes stands in the docs, and the page that a run writes names all of it."""

import pytest

from tests.outside.parts import all_parts
from tests.outside.proven import DOCS, plain

QUOTES = sorted({promise for part in all_parts() for promise in part.promises})


@pytest.mark.parametrize("name", sorted({name for name, _ in QUOTES}))
def test_every_quoted_sentence_is_in_its_page(name: str) -> None:
    text = plain((DOCS / name).read_text())
    assert [sentence for page, sentence in QUOTES if page == name and plain(sentence) not in text] == []


def test_the_page_names_every_part_of_the_suite() -> None:
    written = (DOCS / "proven.md").read_text()
    assert [part.name for part in all_parts() if f"`{part.name}`" not in written] == []
