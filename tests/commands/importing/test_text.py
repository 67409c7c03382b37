"""Random tables of text in any encoding: each becomes the tree that a person sees in it, or the import stops."""

import csv
import random
from io import StringIO
from pathlib import Path

import pytest

from tests.commands.importing.files import Clade, clade, stored

__all__ = ["clade"]  # a fixture


WORDS = {
    "cp1250": "Česko Plzeň Žďár Łódź", "cp1251": "Сербия Ниш Нови Београд", "cp932": "日本 東京都 表参道 ソウル",
    "mac_roman": "Zürich Genève Köln Ñuñoa",
}  # fmt: skip


def a_file(choice: random.Random) -> tuple[bytes, set[str], list[str]]:
    """A file with a column for each level, the paths of its nodes, and some of the options that tell what it is."""
    encoding = choice.choice(["utf-8", "utf-8-sig", "utf-16", *WORDS])
    words = [*WORDS.get(encoding, " ".join(WORDS.values())).split(), "Omaha", "Ames", "Ulm", "St. Louis"]
    delimiter = choice.choice(",;\t|")
    is_quoted = choice.random() < 0.5
    signs = ['"', "", "", "'"] if choice.random() < 0.5 else [""]
    notes = ["", "x", "5 m", "a, b" if is_quoted or delimiter != "," else "a b", *(["two\nlines"] if is_quoted else [])]

    def cell(text: str) -> str:
        return choice.choice([f"{sign}{text}" for sign in signs] + [f"{text}{sign}" for sign in signs])

    rows: list[list[str]] = []
    for _ in range(choice.randint(1, 9)):
        path = [cell(choice.choice(words)), choice.choice(["", cell(choice.choice(words))]), cell(choice.choice(words))]
        rows.append([*path, cell(choice.choice(notes))])
    header = ["Country", "State", "City", "Note"]
    titles = choice.choice([0, 0, 1, 2])
    output = StringIO(newline="")
    if is_quoted:
        csv.writer(output, delimiter=delimiter).writerows([["Report"]] * titles + [header, *rows])
    else:
        lines = [delimiter.join(row) for row in [*[["Report"]] * titles, header, *rows]]
        output.write("".join(f"{line}\n" for line in lines))
    nodes: set[str] = set()
    for *path, _ in rows:
        path = [key for key in path if key]
        nodes |= {"/".join(path[:count]) for count in range(1, len(path) + 1)}
    told = [("--encoding", encoding), ("--quote", '"' if is_quoted else "none"), ("--header-row", str(titles + 1))]
    options = [word for pair in told if choice.random() < 0.6 for word in pair]
    return output.getvalue().encode(encoding), nodes, options


@pytest.mark.parametrize("seed", range(8))
def test_any_file_becomes_its_tree_or_is_refused(clade: Clade, tmp_path: Path, seed: int) -> None:
    content, nodes, options = a_file(random.Random(seed))  # noqa: S311
    (tmp_path / "a.csv").write_bytes(content)
    done = clade("import", "location", "a.csv", *options)
    found = {*stored(clade, "location")} if (tmp_path / "clade.db").exists() else set()
    if done.exit_code == 0:
        assert found == nodes, (content, options)
    else:
        assert found < nodes or not found, (content, options, done.output)
