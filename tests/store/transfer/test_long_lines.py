"""Lines that are too long: each is rejected with its number, and all others are accepted."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from store.errors import BadInput
from store.transfer.formats.columns import LevelColumns, read_csv
from store.transfer.formats.lines import MAX_LINE_BYTES, read_jsonl, read_taxonomy
from store.transfer.rows import Rejection

LONG = "x" * (MAX_LINE_BYTES + 1)
CSV = partial(read_csv, [LevelColumns("COUNTRY", "Country")])
TOO_LONG = f"The line is longer than {MAX_LINE_BYTES:,} bytes."
FILES: dict[str, tuple[Any, str]] = {
    "json lines": (read_jsonl, f'{{"path": "a"}}\n{{"path": "{LONG}"}}\n{{"path": "b"}}\n'),
    "a line that does not end": (read_jsonl, f'{{"path": "a"}}\n{LONG}{LONG}'),
    "a taxonomy": (partial(read_taxonomy, "CATEGORY"), f"a\nb > {LONG}\nb\n"),
    "csv": (CSV, f"Country\n{LONG}{LONG}\nb\n"),
}


@pytest.mark.parametrize("what", FILES)
def test_a_line_that_is_too_long_is_rejected_with_its_number(tmp_path: Path, what: str) -> None:
    kind, content = FILES[what]
    file = tmp_path / "nodes.txt"
    file.write_text(content)
    rows = list(kind(file))
    rejections = [row for _, row in rows if isinstance(row, Rejection)]
    assert rejections[0].number == 2
    assert rejections[0].reason == TOO_LONG
    texts = {row.number: text for text, row in rows}
    assert max(len(text) for text in texts.values()) <= MAX_LINE_BYTES
    assert texts[2]


@pytest.mark.parametrize("what", ["json lines", "a taxonomy", "csv"])
def test_the_lines_after_it_keep_their_numbers(tmp_path: Path, what: str) -> None:
    kind, content = FILES[what]
    file = tmp_path / "nodes.txt"
    file.write_text(content)
    assert [(row.number, isinstance(row, Rejection)) for _, row in kind(file)][1 - (what == "csv") :] == [
        (2, True), (3, False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [
        'Country\n"' + f"{LONG[:1000]}\n" * 2_000 + '"\nb\n',
        "Country\n" + f'"{LONG[:10_000]}\n",' * 1_000 + "c\nb\n",
        'Country\n"a\nb\nc\n',
        'Country,X\n"a,1\nb,"2"\nc,3\n',
    ],
    ids=["a cell of many lines", "a row of many cells of many lines", "to the end", "up to the next quote"],
)
def test_a_quote_that_is_not_closed_stops_with_its_line(tmp_path: Path, content: str) -> None:
    file = tmp_path / "nodes.csv"
    file.write_text(content)
    with pytest.raises(
        BadInput, match=r"nodes\.csv, line 2: a quote in this row is not closed; close it, or double it"
    ):
        list(CSV(file))
