"""Ids and keys of files: ids before the paths of a taxonomy, or numbers that belong to its keys; ids that are unique
within a level only; the names of nodes that are renamed under their ids; keys that look alike.
"""

import json
import random
from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from store.engine import ReadUsage
from store.errors import BadInput, Unavailable
from store.writing.edit import Edit
from store.writing.edit_request import EditOptions, EditResult
from store.writing.writer import Writer
from tests.cli import app_of

Clade = Callable[..., Result]


@pytest.fixture
def clade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clade:
    """Runs a command in a directory of its own; the first import makes the store, clade.db by default."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object, store: str = "clade") -> Result:
        environment = {"CLADE_STORE": f"sqlite:///{tmp_path}/{store}.db"}
        return CliRunner().invoke(app_of(words[:1]), [*map(str, words)], env=environment)

    return run


def stored(clade: Clade, hierarchy: str = "category", store: str = "clade") -> dict[str, dict[str, Any]]:
    """The nodes by their paths."""
    nodes = [json.loads(line) for line in clade("export", hierarchy, store=store).stdout.splitlines()]
    return {"/".join(node["path"]): node for node in nodes}


def ids(clade: Clade) -> dict[str, str]:
    return {path: node["id"] for path, node in stored(clade).items()}


# -- taxonomies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [" - ", " : ", "\t", " | ", "   -  ", " \t "])
@pytest.mark.parametrize("numbers", ["3237 1", "aa-1-2 aa-1", "07.1 07"])
def test_an_id_on_each_line_of_a_taxonomy_is_that_of_its_node(
    clade: Clade, tmp_path: Path, sign: str, numbers: str
) -> None:
    below, above = numbers.split()
    (tmp_path / "a.txt").write_text(f"# ids\n\n{below}{sign}Pets > 3 - 5 kg\n{above}{sign}Pets\n")
    done = clade("import", "category", "a.txt", "--format", "taxonomy")
    assert (done.exit_code, ids(clade)) == (0, {"Pets": above, "Pets/3 - 5 kg": below}), done.output


@pytest.mark.parametrize(
    "lines",
    [
        "01 - Bakery|01 - Bakery > 01.1 - Bread|02 - Dairy|02 - Dairy > 02.1 - Milk",
        "01 - Bakery > 01.1 - Bread|02 - Dairy > 02.1 - Milk",
        "1 : Bakery|1 : Bakery > Bread|1 : Bakery > Rolls",
        "No. 1 - Bakery|No. 1 - Bakery > Bread",
    ],
)
def test_numbers_of_keys_stay_in_them(clade: Clade, tmp_path: Path, lines: str) -> None:
    (tmp_path / "a.txt").write_text(lines.replace("|", "\n"))
    done = clade("import", "category", "a.txt")
    expected = {"/".join(line.split(" > ")[:depth]) for line in lines.split("|") for depth in (1, 2)}
    assert (done.exit_code, {*stored(clade)}) == (0, expected), done.output


DOUBTS = {
    "some lines without an id": (
        "3 - Pets > Cats\n1 - Pets\nFood > Tea\n", 'but not row 3, "Food > Tea". Give each line an id',
        {"3 - Pets", "3 - Pets/Cats", "1 - Pets", "Food", "Food/Tea"},
    ),
    "an id of two nodes": (
        "1 - Pets\n2 - Pets > Cats\n2 - Pets > Dogs\n", "The id 2 is in rows 2 and 3 of a.txt. Give each line an id",
        {"1 - Pets", "2 - Pets", "2 - Pets/Cats", "2 - Pets/Dogs"},
    ),
    "ids that cannot be stored": (
        "gid://example/t   : Pets\ngid://example/t-1 : Pets > Cats\n",
        'Row 1 of a.txt: The id "gid://example/t" has a blank, a control character, # or :; leave it out. '
        "Write others, such as the last part; now ids would be made from the paths.",
        {"Pets", "Pets/Cats"},
    ),
    "an outline": ("# pets\nPets\n\n  Cats\n\tDogs\nFood\n", "is an outline: row 4 is indented",
                   {"Pets", "Cats", "Dogs", "Food"}),
    "an outline with ids": ("1 - Pets\n\t2 - Cats\n", "is an outline: row 2 is indented", {"Pets", "Cats"}),
}  # fmt: skip


@pytest.mark.parametrize("what", DOUBTS)
def test_a_taxonomy_whose_ids_or_levels_are_unclear_is_imported_only_with_yes(
    clade: Clade, tmp_path: Path, what: str
) -> None:
    lines, reason, paths = DOUBTS[what]
    (tmp_path / "a.txt").write_text(lines)
    for more in ([], ["--dry-run"], *([] if "outline" in what else [["--describe"]])):
        refused = clade("import", "category", "a.txt", *more)
        assert (refused.exit_code, (tmp_path / "clade.db").exists()) == (1, False), refused.output
        assert reason in str(refused.exception)
        assert str(refused.exception).endswith("--yes imports it as it is.")
    done = clade("import", "category", "a.txt", "--yes")
    assert (done.exit_code, {*stored(clade)}) == (0, paths), done.output


def test_a_rejected_line_of_a_taxonomy_can_be_corrected(clade: Clade, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1 - Pets\n2 - Pets >  > Cats\n1 - Pets\n")
    assert "row 2: The path has an empty key" in clade("import", "category", "a.txt").stderr
    rejected = tmp_path / "a.rejected.txt"
    rejected.write_text(rejected.read_text().replace(">  >", ">"))
    assert clade("import", "category", rejected).exit_code == 0
    assert ids(clade) == {"Pets": "1", "Pets/Cats": "2"}


# -- nodes under other keys --------------------------------------------------------------------------------------------


def json_line(path: str, node_id: str | None = None, **fields: object) -> str:
    return json.dumps({"path": path, "level": "CATEGORY"} | ({"id": node_id} if node_id else {}) | fields)


RENAMES: dict[str, tuple[str, list[str], list[str]]] = {
    "renamed": ("a.txt", ["12 - Tools", "34 - Tools > Saws"], ["12 - Tools", "34 - Tools > Hand Saws"]),
    "a root renamed, and what is below it": (
        "a.txt", ["1 - A", "2 - A > B", "3 - A > B > C"], ["1 - X", "2 - X > B", "3 - X > B > Z"],
    ),
    "renamed and moved": ("a.txt", ["1 - A", "2 - B", "3 - A > C"], ["1 - A", "2 - B", "3 - B > D"]),
    "a chain": ("a.txt", ["1 - A", "2 - B", "3 - C"], ["1 - B", "2 - C", "3 - D"]),
    "given a name": (
        "a.jsonl", [json_line("a", "1"), json_line("b", "2")],
        [json_line("x", "1", name="X-ray"), json_line("y", "2", names={"de": "Ypsilon"})],
    ),
    "a table": (
        "a.csv", ["Category,Product,Category Id,Product Id", "A,,1,", "A,P,1,2"],
        ["Category,Product,Category Id,Product Id", "A,,1,", "A,Q,1,2"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", RENAMES)
def test_a_node_moved_to_another_key_has_the_name_that_a_new_import_gives_it(
    clade: Clade, tmp_path: Path, what: str
) -> None:
    name, before, after = RENAMES[what]
    (tmp_path / name).write_text("\n".join(before))
    assert clade("import", "category", name).exit_code == 0
    (tmp_path / name).write_text("\n".join(after))
    planned = clade("import", "category", name, "--moves", "--dry-run")
    done = clade("import", "category", name, "--moves")
    assert (done.exit_code, planned.exit_code) == (0, 0), done.output
    told = [[line for line in one.stdout.splitlines()[1:] if line[0] != " "] for one in (planned, done)]
    assert [line.removeprefix("would be ") for line in told[0]] == told[1]
    assert clade("import", "category", name, store="other").exit_code == 0
    assert stored(clade) == stored(clade, store="other")
    assert "Nothing changed." in clade("import", "category", name, "--moves").stdout


def test_a_name_that_somebody_gave_stays_with_another_key(clade: Clade, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json_line("a", "1", name="Apples"))
    clade("import", "category", "a.jsonl")
    (tmp_path / "a.jsonl").write_text(json_line("b", "1"))
    assert clade("import", "category", "a.jsonl", "--moves").exit_code == 0
    assert {path: node["name"] for path, node in stored(clade).items()} == {"b": "Apples"}


def test_a_node_that_cannot_be_moved_keeps_its_name_and_nodes_that_swap_get_their_keys(
    clade: Clade, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("1 - A\n2 - B\n")
    clade("import", "category", "a.txt")
    (tmp_path / "a.txt").write_text("1 - B\n")
    before = stored(clade)
    assert clade("import", "category", "a.txt", "--moves").exit_code == 1
    assert stored(clade) == before
    (tmp_path / "a.txt").write_text("1 - B\n2 - A\n")
    assert clade("import", "category", "a.txt", "--moves").exit_code == 0
    lines = [json.loads(line) for line in clade("export", "category").stdout.splitlines()]
    assert [(line["path"], line["id"], line["name"]) for line in lines] == [(["A"], "2", "A"), (["B"], "1", "B")]


def test_nodes_that_swap_their_keys_swap_the_names_that_are_keys(clade: Clade, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1 - A\n2 - B\n3 - C\n")
    clade("import", "category", "a.txt")
    (tmp_path / "a.txt").write_text("1 - B\n2 - C\n3 - A\n")
    done = clade("import", "category", "a.txt", "--moves")
    assert done.exit_code == 0
    assert "aside" not in done.output
    assert {path: (node["name"], node["id"]) for path, node in stored(clade).items()} == {
        "A": ("A", "3"), "B": ("B", "1"), "C": ("C", "2"),
    }  # fmt: skip


CHAIN = [("S", ""), ("S/Saws", "a"), ("S/Axes", "b"), ("S/Tools", "z"), ("S/Tools/Own", "o")]


def imported_lines(clade: Clade, lines: Sequence[tuple[str, str]], *options: str) -> Result:
    rows = [{"path": path, "level": "CATEGORY", **({"id": one} if one else {})} for path, one in lines]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return clade("import", "category", "a.jsonl", *options)


@pytest.mark.parametrize("keys", list(permutations(("Saws", "Axes", "Tools"))))
def test_a_chain_whose_end_is_held_stays_whole_and_goes_where_the_file_lacks_its_end(
    clade: Clade, keys: tuple[str, str, str]
) -> None:
    a, b, z = (f"S/{key}" for key in keys)
    imported_lines(clade, [("S", ""), (a, "a"), (b, "b"), (z, "z"), (f"{z}/Own", "o")])
    before = stored(clade)
    wanted = [("S", ""), (z, "a"), (a, "b")]
    refused = imported_lines(clade, wanted, "--moves")
    assert refused.exit_code == 1
    assert "rejected: 2 rows" in refused.stderr
    assert stored(clade) == before
    done = imported_lines(clade, wanted, "--moves", "--prune")
    assert done.exit_code == 0
    assert "moved: 2 (2 CATEGORY)" in done.stdout
    assert "removed: 2 (2 CATEGORY)" in done.stdout
    assert {path: node["id"] for path, node in stored(clade).items() if path != "S"} == {z: "a", a: "b"}
    assert "Nothing changed." in imported_lines(clade, wanted, "--moves", "--prune").stdout


def test_a_node_that_a_stopped_import_has_put_aside_is_found_and_goes_to_its_place(
    clade: Clade, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported_lines(clade, CHAIN)
    swapped = [("S", ""), ("S/Axes", "a"), ("S/Saws", "b")]
    write, left = Writer.write, 2

    async def failing(writer: Writer, edit: Edit, reads: ReadUsage, options: EditOptions = EditOptions()) -> EditResult:
        nonlocal left
        left -= not options.dry_run
        if left < 0:
            raise Unavailable("The store does not respond.")
        return await write(writer, edit, reads, options)

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "write", failing)
        assert isinstance(imported_lines(clade, swapped, "--moves").exception, Unavailable)
    for command in ("check", "repair"):
        found = clade(command, "category")
        assert found.exit_code == 1
        assert "an import that was stopped has put the node aside; import the file again" in found.output
    assert imported_lines(clade, swapped, "--moves").exit_code == 0
    assert clade("check", "category").exit_code == 0
    assert {path: node["id"] for path, node in stored(clade).items() if path in ("S/Axes", "S/Saws")} == {
        "S/Axes": "a", "S/Saws": "b",
    }  # fmt: skip


def test_an_import_that_was_stopped_before_a_move_gives_the_name_when_it_continues(
    clade: Clade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("1 - A\n2 - A > B\n")
    clade("import", "category", "a.txt")
    (tmp_path / "a.txt").write_text("1 - X\n2 - X > B\n")
    left = 0
    write = Writer.write

    async def failing(writer: Writer, edit: Edit, reads: ReadUsage, options: EditOptions = EditOptions()) -> EditResult:
        nonlocal left
        left -= not options.dry_run
        if left < 0:
            raise Unavailable("The store does not respond.")
        return await write(writer, edit, reads, options)

    for possible in (0, 1):
        left = possible
        with monkeypatch.context() as patch:
            patch.setattr(Writer, "write", failing)
            assert isinstance(clade("import", "category", "a.txt", "--moves").exception, Unavailable)
    assert clade("import", "category", "a.txt", "--moves").exit_code == 0
    assert {path: (node["name"], node["id"]) for path, node in stored(clade).items()} == {
        "X": ("X", "1"), "X/B": ("B", "2"),
    }  # fmt: skip


def test_a_translation_of_all_keys_is_not_advised_to_be_moved(clade: Clade, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("12 - Tools\n34 - Tools > Saws\n56 - Software\n57 - Toys\n58 - Toys > Cars\n")
    clade("import", "category", "a.txt")
    german = "12 - Werkzeug\n34 - Werkzeug > Sägen\n56 - Software\n57 - Spielzeug\n58 - Spielzeug > Autos\n"
    (tmp_path / "a.txt").write_text(german)
    refused = clade("import", "category", "a.txt")
    assert refused.exit_code == 1
    assert "The id 12 belongs to Tools; the file has the ids of stored nodes under other keys" in refused.stderr
    assert ("--names-only de, adds" in refused.stderr, "--moves" in refused.stderr) == (True, False)
    assert clade("import", "category", "a.txt", "--moves").exit_code == 0
    assert {*stored(clade)} == {"Werkzeug", "Werkzeug/Sägen", "Software", "Spielzeug", "Spielzeug/Autos"}


def test_single_nodes_and_a_whole_branch_are_advised_to_be_moved(clade: Clade, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1 - A\n2 - A > B\n3 - A > C\n4 - D\n")
    clade("import", "category", "a.txt")
    for changed in ("1 - A\n2 - A > X\n3 - A > C\n4 - D\n", "1 - X\n2 - X > B\n3 - X > C\n", "2 - A > X\n"):
        (tmp_path / "a.txt").write_text(changed)
        assert "; use --moves to move it." in clade("import", "category", "a.txt").stderr


# -- ids that are unique within a level only ---------------------------------------------------------------------------

WORLD = """Country Id,Country,State Id,State,City Id,City
30,Greece,30,Attica,30,Athens
30,Greece,30,Attica,31,Piraeus
31,Spain,7,Madrid,32,Madrid
31,Spain,7,Madrid,30x,Getafe
"""


def test_ids_that_several_levels_share_stop_an_import_unless_they_get_their_level(clade: Clade, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(WORLD)
    refused = clade("import", "location", "a.csv")
    assert (refused.exit_code, (tmp_path / "clade.db").exists(), refused.stdout) == (1, False, "")
    assert isinstance(refused.exception, BadInput)
    assert str(refused.exception) == (
        "The id 30 is that of a COUNTRY and of a STATE, and 2 of 4 rows would be rejected. If ids are unique within a "
        "level only, add --level-ids, which puts the level before each, such as state-30."
    )
    done = clade("import", "location", "a.csv", "--level-ids")
    assert done.exit_code == 0, done.output
    assert {path: node["id"] for path, node in stored(clade, "location").items()} == {
        "Greece": "country-30", "Greece/Attica": "state-30", "Greece/Attica/Athens": "city-30",
        "Greece/Attica/Piraeus": "city-31", "Spain": "country-31", "Spain/Madrid": "state-7",
        "Spain/Madrid/Madrid": "city-32", "Spain/Madrid/Getafe": "city-30x",
    }  # fmt: skip
    assert "Nothing changed." in clade("import", "location", "a.csv", "--level-ids").stdout
    (tmp_path / "a.csv").write_text(WORLD.replace("32,Madrid", "31,Madrid"))
    repeated = clade("import", "location", "a.csv", "--level-ids")
    assert 'row 4: Column "City Id": The id city-31 is that of another node already, in row 3.' in repeated.stderr
    (tmp_path / "a.csv").write_text(WORLD.partition("30,Greece")[0] + "30,Greece,6,Attica,30,Athens\n5,Spain,,,,\n")
    assert "rejected: 1 row" in clade("import", "location", "a.csv", store="other").stderr


# -- keys that look alike ----------------------------------------------------------------------------------------------


def test_what_nobody_sees_in_keys_is_left_out_and_counted(clade: Clade, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "Country,City,City Name\nUS,Omaha,\nUS,\u200bOma\u00adha,\u200bOma\u00adha\nUS,Om\u200baha\ufeff,\n"
        "US,Saint\u00a0 Paul,\nUS,\u202aSaint Paul\u202c,The City\n"
        "US,\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645,\nUS,\u2060,\n"
    )
    done = clade("import", "location", "a.csv", "--level", "country=Country", "--level", "city=City",
                 "--name", "city=City Name")  # fmt: skip
    assert "5 keys had invisible characters or blanks, which were removed." in done.stdout
    assert "rejected: 1 row" in done.stderr
    assert {path: node["name"] for path, node in stored(clade, "location").items()} == {
        "US": "US", "US/Omaha": "Omaha", "US/Saint Paul": "The City",
        "US/\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645": "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    }  # fmt: skip


def test_keys_that_ignore_case_are_compared_without_what_nobody_sees(clade: Clade, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Country,City\nUS,\u200bOmaha\nUS,OMAHA\nUS,o\u00admaha\n")
    assert clade("import", "location", "a.csv", "--fold-case", "city").exit_code == 0
    assert {*stored(clade, "location")} == {"US", "US/Omaha"}


ODD = ["US\u200b", "US", "Om\u200baha", "Omaha", "Saint  Paul", " x ", "\u2060", "a\u00a0b"]


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_stored_keys_that_look_alike_stay_in_exports_and_imports(clade: Clade, tmp_path: Path, ending: str) -> None:
    fields = [(["US\u200b"], "a"), (["US"], "b"), (["\u2060"], "z")]
    fields += [([root, key], f"{root}-{key}".encode().hex()) for root in ("US\u200b", "US") for key in ODD[2:]]
    nodes = [{"path": path, "level": "CATEGORY", "name": path[-1], "id": node_id} for path, node_id in fields]
    (tmp_path / "own.jsonl").write_text("\n".join(map(json.dumps, nodes)))
    first = clade("import", "category", "own.jsonl")
    assert (first.exit_code, len(stored(clade))) == (0, len(nodes)), first.output
    clade("export", "category", "--output", f"out.{ending}")
    again, other = (
        clade("import", "category", f"out.{ending}"),
        clade("import", "category", f"out.{ending}", store="other"),
    )
    assert ("Nothing changed." in again.stdout, other.exit_code) == (True, 0), other.output
    assert stored(clade, store="other") == stored(clade)
    lines = [json_line("/".join(str(key) for key in path), name="New") for path, _ in fields]
    (tmp_path / "found.jsonl").write_text("\n".join(lines))
    found = clade("import", "category", "found.jsonl")
    assert (found.exit_code, f"changed: {len(nodes)} " in found.stdout) == (0, True), found.output
    assert {path: node["id"] for path, node in stored(clade).items()} == {"/".join(path): one for path, one in fields}
    (tmp_path / "new.jsonl").write_text(json_line("US\u200b/Om\u200baha/N\u200bew"))
    new = clade("import", "category", "new.jsonl")
    assert "added: 1" in new.stdout
    assert "1 key had invisible characters" in new.stdout
    assert "US\u200b/Om\u200baha/New" in stored(clade)


# -- any taxonomy ------------------------------------------------------------------------------------------------------

SIGNS = (" - ", " : ", "\t", " | ")
DIRT = ("\u200b", "\u00ad", "\ufeff", "\u00a0", "  ", "\u2003", " \u200e ")


class Taxonomy:
    """A random tree of nodes by id, each with its parent's id and its key."""

    def __init__(self, random_: random.Random) -> None:
        self.random = random_
        self.nodes: dict[str, tuple[str, str]] = {}
        self.keys = (
            f"{first} {second}" for second in "abcdefghij" for first in ("Saws", "Toys", "Ähren", "Tea", "東京")
        )
        for number in range(random_.randint(2, 9)):
            self.add(f"{number}{random_.choice(('', '-7', '.1x'))}")

    def add(self, node_id: str) -> None:
        self.nodes[node_id] = (self.random.choice(["", *self.nodes]), next(self.keys))

    def path(self, node_id: str) -> list[str]:
        parent, key = self.nodes[node_id]
        return [*(self.path(parent) if parent else []), key]

    def change(self) -> None:
        """Move and rename some nodes, and add one."""
        for node_id in [*self.nodes]:
            others = [one for one in self.nodes if self.path(node_id) != self.path(one)[: len(self.path(node_id))]]
            parent, key = self.nodes[node_id]
            if self.random.random() < 0.4:
                parent = self.random.choice(["", *others])
            self.nodes[node_id] = parent, next(self.keys) if self.random.random() < 0.4 else key
        self.add("n1")

    def lines(self, before: Callable[[str], str]) -> list[str]:
        lines = [f"{before(node_id)}{' > '.join(map(self.dirty, self.path(node_id)))}" for node_id in self.nodes]
        self.random.shuffle(lines)
        return [*lines, "# end"]

    def dirty(self, key: str) -> str:
        return key.replace(" ", self.random.choice(DIRT) + " ") if self.random.random() < 0.3 else key

    def tree(self) -> dict[str, str]:
        """The names by path."""
        return {"/".join(self.path(node_id)): self.nodes[node_id][1] for node_id in self.nodes}


@pytest.mark.parametrize("seed", range(5))
def test_any_taxonomy_and_its_changes_are_imported_as_they_are_or_not_at_all(
    clade: Clade, tmp_path: Path, seed: int
) -> None:
    random_ = random.Random(seed)  # noqa: S311 - no secret
    found, sign, file = Taxonomy(random_), random_.choice(SIGNS), tmp_path / "a.txt"
    kind = ("ids", "none", "some", "twice")[seed % 4]

    def before(node_id: str) -> str:
        return "" if kind == "none" else f"{node_id}{sign}"

    if kind in ("some", "twice"):
        lines = found.lines(before)
        _, _, path = lines[0].partition(sign)
        lines[0] = path if kind == "some" else f"{lines[1].partition(sign)[0]}{sign}Another key"
        file.write_text("\n".join(lines))
        refused = clade("import", "category", file, "--format", "taxonomy")
        assert (refused.exit_code, (tmp_path / "clade.db").exists()) == (1, False), refused.output
        return
    for _ in range(1 if kind == "none" else 2):
        file.write_text("\n".join(found.lines(before)))
        done = clade("import", "category", file, "--format", "taxonomy", "--moves", "--prune")
        assert done.exit_code == 0, done.output
        nodes = stored(clade)
        assert {path: node["name"] for path, node in nodes.items()} == found.tree()
        if kind == "ids":
            assert {node["id"]: path for path, node in nodes.items()} == {
                node_id: "/".join(found.path(node_id)) for node_id in found.nodes
            }
        store = f"empty{len(nodes)}-{random_.random()}"
        assert clade("import", "category", file, "--format", "taxonomy", store=store).exit_code == 0
        assert stored(clade, store=store) == nodes
        found.nodes.pop("n1", None)
        found.change()
