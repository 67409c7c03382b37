"""Misuse of the command line: each mistake gets one clear message, and no data is lost."""

import os
import sys
from pathlib import Path

import pytest

from commands.main import run


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
        code = ended.value.code
        return (1, f"{printed}{code}\n") if isinstance(code, str) else (int(code or 0), printed)

    return clade


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "content", "options", "sentence"),
    [
        ("list.weird", "US\n", [], "list.weird has no extension of a format: paths or a table. Read so, it fails: A"),
        ("tree.txt", "US > NE\n", [], "A taxonomy needs a level that may be a root and is allowed under itself"),
    ],
)  # fmt: skip
def test_an_unusable_file_gets_one_message(clade, tmp_path, file, content, options, sentence):
    (tmp_path / file).write_text(content)
    status, said = clade("import", "location", file, *options)
    assert status == 1
    assert said.startswith(f"clade: {sentence}")
    assert said.count("\n") == 1


# -- places and settings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "more", "sentence"),
    [
        (["demo"], {"CLADE_STORE": "sqlite:////proc/clade.db"}, '"/proc/clade.db" cannot be opened or made; check'),
        (["tree", "location"], {}, 'There is no file "clade.db"; create it with: clade table create'),
        (["tree", "location"], {"CLADE_STORE": "sqlite:///README"}, '"README" is no SQLite database; name another'),
        (["tree", "location"], {"CLADE_STORE": "mysql://me:secret@x/y?z"}, '"mysql://x/y" is not a store; write'),
        (["tree", "location"], {"CLADE_STORE": "dynamodb://me:secret@x"}, '"x" is not the name of a table: 3 to 255'),
        *[
            (["tree", "location"], {"CLADE_STORE": f"dynamodb://clade?region=x{more}"}, f"The {sentence}")
            for more, sentence in [
                ("&region=x", "URL of the store has an option twice; leave one of them out."),
                ("&endpoint=https://me:secret@x", "endpoint of DynamoDB has a user name or password, which no request"),
                ("&endpoint=https://me:sec/ret@x", "endpoint of DynamoDB is no address of http or https; see"),
                ("&endpoint=ftp://x", "endpoint of DynamoDB is no address of http or https; see docs/dynamodb.md."),
            ]
        ],
        (["table", "policy", "--store", "dynamodb://clade"], {"CLADE_JWT_AUD": "1"},
         "CLADE_JWT_AUD is not a setting; use CLADE_JWT_AUDIENCE, or unset the variable."),
        (["serve"], {"CLADE_MAX_NODES": "0"}, 'CLADE_MAX_NODES cannot be "0": it must be a whole number'),
        (["serve", "--workers", "1000000"], {}, "--workers 1,000,000 is too many for "),
        (["serve"], {"CLADE_HIERARCHIES": "nope"}, 'CLADE_HIERARCHIES names the module "nope", which cannot be found;'),
        (["tree"], {"CLADE_HIERARCHIES": "graph.hierarchies.location"},
         'CLADE_HIERARCHIES names the module "graph.hierarchies.location", which cannot be found; name a file as in '
         'shop/store.py, with its folder and .py. Did you mean graph.hierarchies.locations?'),
        (["serve"], {"CLADE_HIERARCHIES": "a,,b"}, 'CLADE_HIERARCHIES names the module "a", which cannot be found;'),
        (["serve"], {"CLADE_HIERARCHIES": ","}, 'CLADE_HIERARCHIES names the module ""; write modules like'),
        (["serve"], {"CLADE_HIERARCHIES": "x/y.py"}, 'CLADE_HIERARCHIES names the file "x/y.py", which does not exist'),
        (["serve"], {"CLADE_HIERARCHIES": "shelves"}, "shelves.py:4: Board stands under SHELFF, no level of shelf;"),
        (["export", "location", "--output", "places.xlsx"], {}, "places.xlsx would not be what its extension says"),
        (["table", "policy", "--account", "12", "--store", "dynamodb://clade?region=eu-west-1"], {},
         '"12" is not an AWS account id; it has 12 digits.'),
        (["tree", "place"], {}, 'Unknown hierarchy "place"; CLADE_HIERARCHIES has location, category.'),
        (["tree", "location", "US//"], {}, "The path has an empty key; write one separator between two keys"),
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
    assert "sec" not in said.replace(sentence, "")
    assert not (tmp_path / "clade.db").exists()


# -- a hierarchy of one's own ------------------------------------------------------------------------------------------

ZOO = 'class Zoo(Node, hierarchy="zoo"{more}):\n    "A zoo."\n\nclass Cage(Zoo, under=None):\n    "A cage."\n\n{level}'
LEVEL = 'class {title}(Zoo{under}):\n    "A level."\n    {body}\n'
HEAD = "from datetime import date\nfrom enum import Enum\nfrom clade import Node, attribute\nimport strawberry\n"
ZOO_LINE, CAGE_LINE, LEVEL_LINE = 5, 8, 11
MANY = 'give Zoo another many=, as in many="allZoo".'
PREFIX = 'rename the class, or give Zoo a prefix=, as in prefix="My".'
NOWHERE = "give the class under=, with levels that lie below a root themselves, or under=None for a root."


def zoo(more: str = "", title: str = "Animal", under: str = ", under=[Cage]", body: str = "") -> str:
    """The text of a file with a hierarchy of three classes."""
    return ZOO.format(more=more, level=LEVEL.format(title=title, under=under, body=body))


CLASS = "the class Zoo of the hierarchy zoo"
ANIMAL = "the level Animal of the hierarchy zoo"
ALONE = "a class of a hierarchy has only attributes, as in"
METHODS = ', and methods with @computed("…")'
TYPES = (
    "str, int, Long, float, Decimal, bool, Date, DateTime, Url, Money, an Enum, a dataclass of attributes, "
    "or a list of one of these, or Localized"
)
NO_LEVEL = (
    "is not a valid name of a level; begin it with a letter, and write letters of A to Z, digits and _, at most 64."
)
OWN = "hierarchy=, many=, prefix=, search=, search_weight= and location="
UNKNOWN = f"A hierarchy takes {OWN}, a level under= and was=."

WRONG = [
    # names
    (zoo(', many="moves"'), ZOO_LINE,
     f'many="moves" of {CLASS} makes the field of Query moves, which Clade itself makes already; {MANY}'),
    (zoo(', many="zoo"'), ZOO_LINE,
     f'many="zoo" of {CLASS} makes the field of Query zoo, which {CLASS} makes already; {MANY}'),
    (zoo(', many="the zoos"'), ZOO_LINE,
     f'many="the zoos" of {CLASS} makes the field of Query "the zoos", which is not a valid GraphQL name; {MANY}'),
    (zoo(title="WritePlan"), LEVEL_LINE,
     f"the level WritePlan of the hierarchy zoo makes the type WritePlan, which Clade itself makes already; {PREFIX}"),
    (zoo(title="TreeRelease"), LEVEL_LINE,
     "the level TreeRelease of the hierarchy zoo makes the type TreeRelease, which Clade itself keeps for later; "
     f"{PREFIX}"),
    *[(zoo(f', location="{name},{name}"', body=f'{name}: float | None = attribute("A number.")'), LEVEL_LINE,
       f"the attribute {name} of {ANIMAL} makes the field {name}, which a list of a hierarchy with location= has "
       "already; rename the attribute.") for name in ("near", "distance")],
    *[(zoo(title=f"{verb}ZooInput"), LEVEL_LINE,
       f"the level {verb}ZooInput of the hierarchy zoo makes the type {verb}ZooInput, which {CLASS} keeps for later; "
       f"{PREFIX}") for verb in ("Copy", "Merge")],
    (zoo(body='age_inherited_from: int | None = attribute("Its cage.")'), LEVEL_LINE,
     f"the attribute age_inherited_from of {ANIMAL} makes the field ageInheritedFrom; names with this ending are kept "
     "for later; rename the attribute."),
    (zoo(title="Changes"), LEVEL_LINE,
     f"the level Changes of the hierarchy zoo makes the field of Query changes, which Clade itself makes already; "
     f"{PREFIX}"),
    (zoo(title="ZooLevel"), LEVEL_LINE,
     f"the level ZooLevel of the hierarchy zoo makes the type ZooLevel, which {CLASS} makes already; {PREFIX}"),
    (zoo(body='childCount: int | None = attribute("How many young ones.")'), LEVEL_LINE,
     f"the attribute childCount of {ANIMAL} makes the field childCount, which every node has already; "
     "rename the attribute."),
    (zoo(body='level: int | None = attribute("Its floor.")'), LEVEL_LINE,
     "Animal has an attribute level, which every node has; rename it."),
    (zoo(body='diet: Enum("Diet", "true false") | None = attribute("Its food.")'), LEVEL_LINE,
     'the enum Diet has the member "true", which is not a valid GraphQL enum value; rename the member.'),
    # classes
    (zoo(title="CAGE"), LEVEL_LINE,
     f"CAGE and Cage (in line {CAGE_LINE}) are both the level CAGE of zoo; rename one of them."),
    (zoo(title="Cage"), LEVEL_LINE,
     f"Cage is the second class of this name, after that in line {CAGE_LINE}; rename one of them."),
    (zoo() + 'class Zoo(Node, hierarchy="zoo2"):\n    "Another."\n', 14,
     f"Zoo is the second class of this name, after that in line {ZOO_LINE}; rename one of them."),
    (zoo() + 'class Farm(Node, hierarchy="zoo"):\n    "Another."\n', 14,
     'Zoo and Farm both have hierarchy="zoo"; rename one.'),
    (zoo().replace('"A level."', "pass"), LEVEL_LINE,
     "Animal has no docstring; add one, which is the description that clients see."),
    (zoo() + 'class Lion(Animal, date, under=[Cage]):\n    "A lion."\n', 14,
     "Lion has several base classes; give it one, its hierarchy's class or Node."),
    ('class Zoo(Node, many="zoos"):\n    "A zoo."\n', ZOO_LINE,
     'Zoo has no hierarchy=; write class Zoo(Node, hierarchy="zoo").'),
    ('class Cage(Node, under=None):\n    "A cage."\n', ZOO_LINE,
     "Cage has under=, and so is a level; make it a subclass of its hierarchy's class."),
    (zoo(under=', under=[Cage], many="animals"'), LEVEL_LINE,
     "Animal is a level and has many=; give that to its hierarchy's class."),
    (zoo(title="Gerät"), LEVEL_LINE, f"Gerät {NO_LEVEL}"),
    (zoo(title="_Animal"), LEVEL_LINE, f"_Animal {NO_LEVEL}"),
    (zoo(body='_feet: int | None = attribute("How many.")'), LEVEL_LINE,
     "Animal has an attribute _feet; begin its name with a letter."),
    (zoo(body='__feet: int | None = attribute("How many.")'), LEVEL_LINE,
     "Animal has an attribute _Animal__feet; begin its name with a letter."),
    (zoo(body='feet: str | None = attribute("How many.", search=True)'), LEVEL_LINE,
     'Animal.feet has search=True, and Zoo has no search=; write search="hierarchy" in the class Zoo, or leave it '
     "out."),
    # under=
    (zoo(under=""), LEVEL_LINE,
     "Animal has no under=; write the levels that it may stand under, as in under=[Country], "
     "or under=None for a root."),
    (zoo(under=', under=["self"]'), LEVEL_LINE, f"No node of zoo can be of the level Animal: {NOWHERE}"),
    (zoo(under=', under=["Cagge"]'), LEVEL_LINE, "Animal stands under CAGGE, no level of zoo; it has CAGE, ANIMAL."),
    (zoo(under=", under=[]"), LEVEL_LINE,
     "Animal has an empty under=; write the levels that it may stand under, as in under=[Country], "
     "or under=None for a root."),
    (zoo(under=", unter=Cage"), LEVEL_LINE, f"Animal has unter=, which is unknown; write under=. {UNKNOWN}"),
    (zoo(under=", under=[Zoo]"), LEVEL_LINE,
     'Animal has under=Zoo, which is not a level of zoo; write level classes, "self" or None.'),
    (zoo(under=", under=Cage, colour=1"), LEVEL_LINE, f"Animal has colour=, which is unknown. {UNKNOWN}"),
    ('class Zoo(Node, hierarchy="zoo"):\n    "A zoo."\n', ZOO_LINE,
     "No level of zoo may be a root: give one under=None."),
    # attributes
    (zoo(body='feet: int | None = "How many."'), LEVEL_LINE,
     'Animal.feet has no description; write feet: … = attribute("…").'),
    (zoo(body='feet: int | None = attribute(" ")'), LEVEL_LINE,
     'Animal.feet has no description; write feet: … = attribute("…").'),
    (zoo(body='feet = attribute("How many.")'), LEVEL_LINE,
     "Animal.feet has no type; write feet: str | None = attribute(…)."),
    (zoo(body='feet: int = attribute("How many.")'), LEVEL_LINE,
     "Animal.feet is not optional, but nodes may lack any attribute; write feet: … | None."),
    (zoo(body='feet: complex | None = attribute("How many.")'), LEVEL_LINE,
     f"Animal.feet has a type that attributes cannot have; write {TYPES}, and | None behind it."),
    (zoo(body='feet: int | str | None = attribute("How many.")'), LEVEL_LINE,
     f"Animal.feet has a type that attributes cannot have; write {TYPES}, and | None behind it."),
    (zoo(body='feet: list | None = attribute("How many.")'), LEVEL_LINE,
     f"Animal.feet has a type that attributes cannot have; write {TYPES}, and | None behind it."),
    (zoo(body='feet: "Feet | None" = attribute("How many.")'), LEVEL_LINE,
     "Animal has an attribute of the type Feet, which is not defined."),
    (zoo(body="def feet(self):\n        return 4"), LEVEL_LINE,
     f'Animal.feet is a method or a resolver; {ALONE} feet: str | None = attribute("…"){METHODS}.'),
    (zoo(body="@strawberry.field\n    def feet(self) -> int:\n        return 4"), LEVEL_LINE,
     f'Animal.feet is a method or a resolver; {ALONE} feet: str | None = attribute("…"){METHODS}.'),
    (zoo(body="feet = 4"), LEVEL_LINE,
     f'Animal.feet is no attribute; {ALONE} feet: str | None = attribute("…"){METHODS}.'),
    (zoo(title="Changed", body='at: str | None = attribute("At.")') + LEVEL.format(
        title="Keeper", under=", under=[Cage]", body='at: int | None = attribute("At.")'), LEVEL_LINE,
     "the attribute at of the level Changed of the hierarchy zoo makes the field changedAt of revisions, which "
     "changed_at makes already; rename one of them."),
    (zoo(body='code: str | None = attribute("Code.")') + LEVEL.format(
        title="Keeper", under=", under=[Cage]",
        body='code: int | None = attribute("Code."); animal_code: int | None = attribute("Code.")'), 14,
     "the attribute animal_code of the level Keeper of the hierarchy zoo makes the field animalCode of revisions, "
     "which code makes already; rename one of them."),
    # code
    (zoo(body="feet: int | None ="), 13, "syntax error: invalid syntax; correct this line."),
    (zoo(body='feet: Lnog | None = attribute("How many.")'), 13,
     "NameError: name 'Lnog' is not defined; correct this line."),
    ("\nimport panda_bears\n" + zoo(), 6,
     'it imports the module "panda_bears", which cannot be found; install it, or correct the import.'),
    ("1 / 0\n", 5, "ZeroDivisionError: division by zero; correct this line."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "sentence"), WRONG, ids=range(len(WRONG)))
def test_an_invalid_hierarchy_gets_one_message_with_its_line(clade, tmp_path, text, line, sentence):
    (tmp_path / "zoo.py").write_text(HEAD + text, encoding="utf-8")
    assert clade("serve", CLADE_HIERARCHIES="zoo.py") == (1, f"clade: zoo.py:{line}: {sentence}\n")


def test_hierarchies_with_equal_level_names_are_rejected_until_one_has_a_prefix(clade, tmp_path):
    for name, more in (("their_zoo", ""), ("our_zoo", ', prefix="Our"')):
        text = zoo(more, title="City").replace('"zoo"', f'"{name}"')
        (tmp_path / f"{name}.py").write_text(HEAD + text)
    assert clade("schema", CLADE_HIERARCHIES="graph.hierarchies.locations,their_zoo.py") == (
        1,
        f"clade: their_zoo.py:{LEVEL_LINE}: the level City of the hierarchy their_zoo makes the type City, which the "
        f"level City of the hierarchy location makes already; {PREFIX}\n",
    )
    status, said = clade("schema", "schema.graphql", CLADE_HIERARCHIES="graph.hierarchies.locations,our_zoo.py")
    assert (status, said) == (0, "")
    assert "\ntype OurZooRevision implements NodeRevision {" in Path("schema.graphql").read_text()


def test_two_hierarchies_of_one_name_are_refused(clade, tmp_path):
    for name in ("zoo", "farm"):
        (tmp_path / f"{name}.py").write_text(HEAD + zoo())
    assert clade("serve", CLADE_HIERARCHIES="zoo.py, farm.py") == (
        1,
        f'clade: farm.py:{ZOO_LINE}: Zoo has hierarchy="zoo", as Zoo in zoo.py:{ZOO_LINE} has; rename one of them, or '
        "serve only one.\n",
    )


def test_a_module_that_is_not_the_file_here_is_refused_with_the_way_to_name_the_file(clade, tmp_path):
    (tmp_path / "store.py").write_text(HEAD + zoo())
    status, said = clade("schema", CLADE_HIERARCHIES="store")
    assert status == 1
    assert said.startswith('clade: CLADE_HIERARCHIES names the module "store", which is ')
    assert said.endswith("and declares no hierarchy; for the file here write CLADE_HIERARCHIES=store.py.\n")
    assert clade("schema", "out.graphql", CLADE_HIERARCHIES="store.py") == (0, "")


# -- commands ----------------------------------------------------------------------------------------------------------


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
