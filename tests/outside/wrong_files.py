"""Wrong files: files as people have them; an import says what is wrong, or makes the tree that the file says."""

import gzip
import io
import json
import shutil
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.outside.failures import Wrong
from tests.outside.processes import Place, command

SAID = "An import of a file ends with an exit status other than 0, or with the tree that the file says"
Tree = dict[tuple[str, ...], str]  # names by path


@dataclass(frozen=True)
class File:
    """A file, the command that somebody would try with it, and what it can mean; nothing if it must be rejected."""

    about: str
    name: str
    content: bytes
    options: tuple[str, ...] = ()
    meanings: tuple[Tree, ...] = ()
    hierarchy: str = "category"


def chain(*keys: str) -> Tree:
    """A node with these keys and its ancestors, each with its key as name."""
    return {keys[: length + 1]: keys[length] for length in range(len(keys))}


def _lines(*lines: object) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def _levels(*columns: str) -> tuple[str, ...]:
    return tuple(part for column in columns for part in ("--level", column))


AUDIO = chain("Electronics", "Audio", "Headphones") | chain("Electronics", "Video")
CITIES = chain("DE", "Köln") | chain("DE", "Bonn")
CITY = _levels("country=Land", "city=Stadt")
TREE_BY_ID = b"id,parent_id,name\n1,,Electronics\n2,1,Audio\n3,2,Headphones\n4,1,Video\n"
BY_ID = {("1",): "Electronics", ("1", "2"): "Audio", ("1", "2", "3"): "Headphones", ("1", "4"): "Video"}
GARDEN = {("garden",): "Garden", ("garden", "mowers"): "Lawn mowers"}
NODE = {"path": "A", "level": "CATEGORY", "name": "A"}


def files() -> list[File]:
    return [*_tables(), *_damaged(), *_trees()]


def _tables() -> list[File]:
    path = b"category\nElectronics > Audio > Headphones\nElectronics > Video\n"
    three = b"First,Second,Third\nElectronics,Audio,Headphones\nElectronics,Video,\n"
    names = b"Top,Sub,Name\ngarden,,Garden\ngarden,mowers,Lawn mowers\n"
    stock = b"Category,Product,Name\ngarden,,Garden\ngarden,m1,Lawn mower\ngarden,m2,Hedge trimmer\n"
    goods = {("garden",): "Garden", ("garden", "m1"): "Lawn mower", ("garden", "m2"): "Hedge trimmer"}
    named = (*_levels("category=Category", "product=Product"), "--name", "category=Name", "--name", "product=Name")
    tabs = b"Electronics\tAudio\tHeadphones\nElectronics\tVideo\n"
    state = chain("US", "NE", "Omaha") | chain("US", "NY", "Utica")
    return [
        File("ids of parents", "ids.csv", TREE_BY_ID, (), (AUDIO, BY_ID)),
        File("ids of parents, level by name", "ids.csv", TREE_BY_ID, _levels("category=name"), (AUDIO, BY_ID)),
        File("a column of paths", "path.csv", path, (), (AUDIO,)),
        File("a column of paths as a level", "path.csv", path, _levels("category=category"), (AUDIO,)),
        File(
            "one level in three columns",
            "three.csv",
            three,
            _levels("category=First", "category=Second", "category=Third"),
            (AUDIO,),
        ),
        File(
            "one level in two columns, and names",
            "names.csv",
            names,
            (*_levels("category=Top", "category=Sub"), "--name", "category=Name"),
            (GARDEN,),
        ),
        File("one column of names for two levels", "stock.csv", stock, named, (goods,)),
        File("no header", "none.csv", b"US,NE,Omaha\nUS,NY,Utica\n", (), (state,), "location"),
        File("tabs in .txt", "tabs.txt", tabs, (), (AUDIO,)),
        File(
            "rows twice", "twice.csv", "Land,Stadt\nDE,Köln\nDE,Bonn\nDE,Köln\n".encode(), CITY, (CITIES,), "location"
        ),
        File(
            "a byte order mark", "bom.csv", "\ufeffLand,Stadt\nDE,Köln\nDE,Bonn\n".encode(), CITY, (CITIES,), "location"
        ),
        File("Latin-1", "latin.csv", "Land,Stadt\nDE,Köln\nDE,Bonn\n".encode("latin-1"), CITY, (CITIES,), "location"),
        File("UTF-16", "wide.csv", "Land,Stadt\nDE,Köln\nDE,Bonn\n".encode("utf-16"), CITY, (CITIES,), "location"),
        File("old line ends", "mac.csv", "Land,Stadt\rDE,Köln\rDE,Bonn\r".encode(), CITY, (CITIES,), "location"),
        File("a quote that is never closed", "quote.csv", b'Land,Stadt\nDE,"Bonn\nDE,Essen\n', CITY, (), "location"),
        File(
            "a column that is not there",
            "typo.csv",
            b"Land,Stadt\nDE,Bonn\n",
            _levels("country=Country"),
            (),
            "location",
        ),
    ]


def _damaged() -> list[File]:
    lines = _lines(*({"path": f"N{number}", "level": "CATEGORY"} for number in range(500)))
    packed = gzip.compress(lines)
    two = io.BytesIO()
    with zipfile.ZipFile(two, "w") as both:
        both.writestr("a.csv", "category\nA\n")
        both.writestr("b.csv", "category\nB\n")
    return [
        File("a truncated gzip", "cut.jsonl.gz", packed[: len(packed) // 2]),
        File("a gzip without its last byte", "cut.jsonl.gz", packed[:-1]),
        File("a zip with two files", "two.zip", two.getvalue()),
        File("a line that is cut", "cut.jsonl", lines[:-20]),
        File("bytes of a picture", "picture.csv", bytes(range(256)) * 20, _levels("category=category")),
        File("an empty table", "empty.csv", b"", (), ({},)),
        File("empty lines", "empty.jsonl", b"\n\n", (), ({},)),
        File("an empty taxonomy", "empty.txt", b"", (), ({},)),
        File("an empty document", "empty.json", b"", (), ({},)),
        File("not UTF-8 in JSON lines", "latin.jsonl", '{"path": "Köln", "level": "CATEGORY"}\n'.encode("latin-1")),
    ]


def _trees() -> list[File]:
    other = NODE | {"name": "B"}
    below = {"path": "A/B/C", "level": "CATEGORY", "name": "C"}
    circle = b"id,parent_id,name\n1,2,A\n2,1,B\n"
    ids = [NODE | {"id": "1"}, NODE | {"path": "B", "name": "B", "id": "1"}]
    return [
        File("two names of one node", "two.jsonl", _lines(NODE, other), (), ({("A",): "A"}, {("A",): "B"})),
        File("two levels of one node", "two.jsonl", _lines(NODE, NODE | {"level": "PRODUCT"})),
        File("one id twice", "ids.jsonl", _lines(*ids)),
        File("parents that are missing", "below.jsonl", _lines(below), (), (chain("A", "B", "C"),)),
        File("a level that does not exist", "level.jsonl", _lines(NODE | {"level": "NONE"})),
        File("ids of parents in a circle", "circle.csv", circle),
        File("a list of lists", "lists.json", b'[["A", "B"], ["C", "D"]]'),
        File(
            "one key twice in an object",
            "twice.jsonl",
            b'{"path": "A", "level": "CATEGORY", "path": "B"}\n',
            (),
            (chain("A"), chain("B")),
        ),
    ]


def tried(place: Place, chosen: Sequence[File]) -> Counter[str]:
    """Import each file into a store of its own; raise Wrong for all that are taken for something else."""
    counts: Counter[str] = Counter()
    wrong = []
    empty = place.new_store()
    for number, file in enumerate(chosen):
        store = _emptied(place, empty, number)
        folder = place.folder / f"wrong-{number}"
        folder.mkdir()
        (folder / file.name).write_bytes(file.content)
        arguments = ("import", file.hierarchy, str(folder / file.name), *file.options)
        done = command(*arguments, store=store, status=None)
        counts["wrong files imported"] += 1
        if "Traceback" in done.stderr + done.stdout:
            wrong.append(f"{file.about}: {' '.join(arguments)}: {done.stderr[-600:]}")
        if done.returncode:
            continue
        tree = _tree(store, file.hierarchy)
        if tree not in file.meanings:
            wrong.append(f"{file.about}: {file.content[:80]!r}, clade {' '.join(arguments)}: exit status 0, {tree}")
    if wrong:
        raise Wrong(SAID, wrong, "an exit status other than 0, or the tree of the file", f"{len(wrong)} wrong trees")
    return counts


def _emptied(place: Place, empty: str, number: int) -> str:
    """A new store; an SQLite file is copied, which is faster than making it."""
    if place.kind != "sqlite":
        return place.new_store()
    file = Path(empty.removeprefix("sqlite:///"))
    copy = file.with_name(f"wrong-{number}.db")
    shutil.copy(file, copy)
    return f"sqlite:///{copy}"


def _tree(store: str, hierarchy: str) -> Tree:
    exported = command("export", hierarchy, store=store).stdout
    nodes = [json.loads(line) for line in exported.splitlines()]
    return {tuple(node["path"]): node["name"] for node in nodes}
