"""Misuse of the command line: each mistake gets one clear message, and no data is lost."""

import asyncio
import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands.main import run
from graph.hierarchies.node import Node
from store.connect import open_store
from store.engine.usage import ReadUsage
from store.errors import NoTable
from store.metadata.tree_version import TreeVersion
from store.model.keys import stamp_key
from tests.conftest import CLADE

RUN_SECONDS = 120


@pytest.fixture
def clade(tmp_path, monkeypatch, capsys):
    """Run a command in an empty directory; its status and its output."""
    for name in [name for name in os.environ if name.startswith("CLADE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def clade(*arguments: str, **settings: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["clade", *arguments])
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            run()
        printed = "".join(capsys.readouterr())
        match ended.value.code:
            case str(message):
                return 1, f"{printed}{message}\n"
            case code:
                return int(code or 0), printed

    return clade


# -- a file with mistakes ----------------------------------------------------------------------------------------------

MISTAKES = {
    '{"path": "US/NE/Lincoln", "level": "VILLAGE"}': 'location has no level "VILLAGE"; it has COUNTRY,',
    '{"path": "US/NE/Omaha/CA", "level": "STATE"}': "STATE may not stand under CITY, only under",
    '{"path": "US/NE/Kearney", "level": "CITY", "population": "many"}': "population: 'many' is no Int",
    '{"path": "US/NE/Norfolk", "level": "CITY", "poulation": 24000}': 'CITY has no attribute "poulation"; it has code,',
    '{"path": "US/XX/Nowhere", "level": "CITY"}': "Its parent US/XX is neither in the file nor in the table.",
    '{"path": "US//Empty", "level": "CITY"}': "A path has an empty segment; write it like US/NE/Omaha",
    '{"level": "CITY", "name": "Pathless"}': 'The line has no path; write "path": ["US", "NE"]',
    '{"path": "US/NE/Hastings", "level": "CITY"': "The line is no JSON: ",
    '["US", "NE", "Columbus"]': "The line is no JSON object: ",
    '{"path": "US/NE/Omaha", "level": "CITY", "name": "Not Omaha"}': "US/NE/Omaha has the name Omaha in row 3 already",
    '{"path": "US/NE/Fremont", "level": "CITY", "id": "has space"}': 'The id "has space" holds white space',
    f'{{"path": "US/NE/{"x" * 1100}", "level": "CITY"}}': "Below its root the path takes 1105 bytes in a key;",
}
RIGHT = [
    '{"path": "US", "level": "COUNTRY"}',
    '{"path": "US/NE", "level": "STATE"}',
    '{"path": "US/NE/Omaha", "level": "CITY", "name": "Omaha"}',
]


def test_a_file_is_imported_except_for_its_mistakes_and_each_is_explained(clade, tmp_path):
    (tmp_path / "places.jsonl").write_text("\n".join([*RIGHT, *MISTAKES]))
    status, said = clade("import", "location", "places.jsonl")
    assert status == 1
    assert "added: 3 (1 COUNTRY, 1 STATE, 1 CITY)" in said
    assert "rejected: 12 rows; they are in places.rejected.csv." in said
    with (tmp_path / "places.rejected.csv").open() as file:
        rejected = list(csv.DictReader(file))
    assert [row["content"] for row in rejected] == list(MISTAKES)
    for row, reason in zip(rejected, MISTAKES.values(), strict=True):
        assert row["reason"].startswith(reason)
    assert clade("tree", "location", "--depth", "2")[1].splitlines()[-1] == "    └── Omaha CITY"


@pytest.mark.parametrize(
    ("file", "content", "options", "sentence"),
    [
        ("empty.csv", "", ["--level", "country=Country"], '"empty.csv" has no header: its first line must name the'),
        ("levels.csv", "Country\nUS\n", [], 'A CSV file needs its levels from the root down, as in --level country='),
        ("list.weird", "US\n", [], 'The ending of "list.weird" tells no format; say --format csv, jsonl, taxonomy.'),
        ("tree.txt", "US > NE\n", [], "A taxonomy needs a level that may be a root and stand under itself"),
    ],
)  # fmt: skip
def test_an_unusable_file_gets_one_message(clade, tmp_path, file, content, options, sentence):
    (tmp_path / file).write_text(content)
    status, said = clade("import", "location", file, *options)
    assert status == 1
    assert said.startswith(f"clade: {sentence}")
    assert said.count("\n") == 1


# -- Ctrl-C ------------------------------------------------------------------------------------------------------------

STATES, CITIES = 20, 2_000


def test_an_interrupted_import_is_finished_by_the_same_command(clade, tmp_path):
    rows = [{"path": ["US"], "level": "COUNTRY"}]
    for state in range(STATES):
        rows.append({"path": ["US", f"{state:02}"], "level": "STATE"})
        rows += [{"path": ["US", f"{state:02}", str(city)], "level": "CITY"} for city in range(CITIES)]
    (tmp_path / "places.jsonl").write_text("\n".join(map(json.dumps, rows)))

    assert stop(tmp_path, behind=0) == 130
    partly = written(tmp_path)
    assert 0 < partly < len(rows)
    assert stop(tmp_path, behind=partly) == 130
    assert partly < written(tmp_path) < len(rows)

    status, said = clade("import", "location", "places.jsonl")
    assert status == 0, said
    assert clade("tree", "location", "--depth", "0") == (0, f"US COUNTRY ({STATES} STATE, {STATES * CITIES:,} CITY)\n")
    assert "Nothing changed." in clade("import", "location", "places.jsonl")[1]


def stop(folder: Path, *, behind: int) -> int:
    """Send Ctrl-C twice as soon as an import has written more nodes; its status."""
    command = [CLADE, "import", "location", "places.jsonl"]
    with (folder / "said.txt").open("w") as said:
        process = subprocess.Popen(command, cwd=folder, stdout=said, stderr=subprocess.STDOUT)
        end = time.monotonic() + RUN_SECONDS
        while written(folder) <= behind and time.monotonic() < end and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        process.wait(RUN_SECONDS)
    text = (folder / "said.txt").read_text()
    assert "Stopped: " in text
    assert "The same command goes on." in text
    assert "Traceback" not in text
    return process.returncode


def written(folder: Path) -> int:
    """The number of nodes in the tree, from its version item."""

    async def read() -> int:
        async with open_store(f"sqlite:///{folder / 'clade.db'}") as store:
            (item,) = await store.get([stamp_key("location#US")], ReadUsage(), strong=True)
        return sum(TreeVersion.of("location#US", item).shape.values())

    try:
        return asyncio.run(read())
    except NoTable:
        return 0


# -- places and settings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "more", "sentence"),
    [
        (["demo"], {"CLADE_STORE": "sqlite:////proc/clade.db"}, '"/proc/clade.db" cannot be opened or made; see that'),
        (["tree", "location"], {}, 'There is no file "clade.db"; make it with: clade table create'),
        (["tree", "location"], {"CLADE_STORE": "sqlite:///README"}, '"README" is no SQLite database; name another'),
        (["tree", "location"], {"CLADE_STORE": "mysql://x"}, '"mysql://x" is no store; write sqlite:///FILE or'),
        (["serve"], {"CLADE_MAX_NODES": "abc"}, 'CLADE_MAX_NODES cannot be "abc": it must be a whole number'),
        (["serve"], {"CLADE_MAX_NODES": "0"}, 'CLADE_MAX_NODES cannot be "0": it must be a whole number'),
        (["serve"], {"CLADE_HIERARCHIES": "nope"}, 'CLADE_HIERARCHIES names the module "nope", which cannot be found.'),
        (["serve"], {"CLADE_HIERARCHIES": "a,,b"}, 'CLADE_HIERARCHIES names the module "a", which cannot be found.'),
        (["serve"], {"CLADE_HIERARCHIES": ","}, 'CLADE_HIERARCHIES names the module ""; write them like'),
        (["serve"], {"CLADE_HIERARCHIES": "shelves"}, "In shelves: Board stands under SHELFF, which shelf has not."),
        (["tree", "place"], {}, 'There is no hierarchy "place"; CLADE_HIERARCHIES names location, category.'),
        (["tree", "location", "US//"], {}, "A path has an empty segment; write it like US/NE/Omaha, with no /"),
        (["schema", "/proc/schema"], {}, "/proc/schema: no such file or directory."),
        (["export", "location", "-o", "/proc/x"], {}, "/proc/x cannot be written: no such file or directory."),
    ],
)  # fmt: skip
def test_a_wrong_setting_or_path_gets_one_message(clade, tmp_path, command, more, sentence):
    (tmp_path / "README").write_text(
        "This is a text, which is long enough to be looked at as a database's first page." * 9
    )
    (tmp_path / "shelves.py").write_text(
        "from clade import Node\n"
        'class Shelf(Node, hierarchy="shelf"):\n    """A shelf."""\n'
        'class Board(Shelf, under=["Shelff"]):\n    """A board."""\n'
    )
    status, said = clade(*command, **more)
    assert status == 1
    assert said.startswith(f"clade: {sentence}")
    assert said.count("\n") == 1
    assert not (tmp_path / "clade.db").exists()


# -- a hierarchy of one's own ------------------------------------------------------------------------------------------

ZOO = 'class Zoo(Node, hierarchy="zoo"{more}):\n    "A zoo."\n\nclass Cage(Zoo, under=None):\n    "A cage."\n\n{level}'
LEVEL = 'class {title}(Zoo{under}):\n    "A level."\n    {attribute}\n'
MANY = 'give Zoo another many=, as in many="allZoo".'
PREFIX = 'rename the class, or give Zoo another prefix=, as in prefix="My".'
NOWHERE = "give the class under=, with levels that lie below a root themselves, or under=None for a root."


def zoo(more: str = "", title: str = "Animal", under: str = ", under=[Cage]", attribute: str = "") -> str:
    return ZOO.format(more=more, level=LEVEL.format(title=title, under=under, attribute=attribute))


CLASS = "the class Zoo of the hierarchy zoo"
ANIMAL = "the level Animal of the hierarchy zoo"
WRONG = [
    (zoo(', many="moves"'),
     f'many="moves" of {CLASS} makes the field of Query moves, which Clade itself makes already; {MANY}'),
    (zoo(', many="zoo"'), f'many="zoo" of {CLASS} makes the field of Query zoo, which {CLASS} makes already; {MANY}'),
    (zoo(', many="the zoos"'),
     f'many="the zoos" of {CLASS} makes the field of Query "the zoos", which is no name of GraphQL; {MANY}'),
    (zoo(title="Move"),
     f"the level Move of the hierarchy zoo makes the type Move, which Clade itself makes already; {PREFIX}"),
    (zoo(title="ZooLevel"),
     f"the level ZooLevel of the hierarchy zoo makes the type ZooLevel, which {CLASS} makes already; {PREFIX}"),
    (zoo(under=""), f"No node of zoo can be of the level Animal: {NOWHERE}"),
    (zoo(under=', under=["self"]'), f"No node of zoo can be of the level Animal: {NOWHERE}"),
    (zoo(title="CAGE"), "The classes CAGE and Cage are one level of zoo; rename one of them."),
    (zoo(attribute='childCount: int | None = attribute("How many young ones.")'),
     f"the attribute childCount of {ANIMAL} makes the field childCount, which every node has already; "
     "rename the attribute."),
    (zoo(attribute='feet: int | None = "How many."'), 'Animal.feet needs a description: = attribute("…").'),
    (zoo(attribute='feet: int = attribute("How many.")'), "Animal.feet must be optional, as in: str | None."),
]  # fmt: skip


@pytest.mark.parametrize("command", ["schema", "serve"])
@pytest.mark.parametrize(("text", "sentence"), WRONG, ids=range(len(WRONG)))
def test_an_invalid_hierarchy_gets_one_message(clade, tmp_path, monkeypatch, command, text, sentence):
    monkeypatch.setattr(Node, "hierarchies", dict(Node.hierarchies))
    monkeypatch.delitem(sys.modules, "my_zoo", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_zoo.py").write_text(f"from clade import Node, attribute\n\n{text}", encoding="utf-8")
    assert clade(command, CLADE_HIERARCHIES="my_zoo") == (1, f"clade: In my_zoo: {sentence}\n")


def test_hierarchies_with_equal_level_names_are_rejected_until_one_has_a_prefix(clade, tmp_path, monkeypatch):
    monkeypatch.setattr(Node, "hierarchies", dict(Node.hierarchies))
    monkeypatch.syspath_prepend(tmp_path)
    for module, more in (("their_zoo", ""), ("our_zoo", ', prefix="Our"')):
        monkeypatch.delitem(sys.modules, module, raising=False)
        text = zoo(more, title="City").replace('"zoo"', f'"{module}"')
        (tmp_path / f"{module}.py").write_text(f"from clade import Node\n\n{text}")
    assert clade("schema", CLADE_HIERARCHIES="graph.hierarchies.locations,their_zoo") == (
        1,
        "clade: In their_zoo: the level City of the hierarchy their_zoo makes the type City, which the level City of "
        f"the hierarchy location makes already; {PREFIX}\n",
    )
    status, said = clade("schema", "schema.graphql", CLADE_HIERARCHIES="graph.hierarchies.locations,our_zoo")
    assert (status, said) == (0, "")
    assert "\ntype OurCityRevision implements OurZooRevision & NodeRevision {" in Path("schema.graphql").read_text()


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["nonsense"], "No such command 'nonsense'."),
        (["serve", "--port", "many"], "Invalid value for '--port'"),
        (["import", "location", "nowhere.jsonl"], "file 'nowhere.jsonl' does not exist."),
        (["export", "location", "-o", "."], "file '.' is a directory."),
        (["import", "location"], "Missing argument"),
    ],
)
def test_a_wrong_command_line_points_to_the_help(clade, command, sentence):
    status, said = clade(*command)
    assert status == 2
    assert sentence in said
    assert "-h' for help." in said
