"""Hierarchies by module and by file: any name, once per process, the same module name in every process."""

import importlib
import pickle
import subprocess
import sys

import pytest

from graph.hierarchies.node import declared_in
from graph.hierarchies.registry import served
from store.errors import BadInput

SHOP = '''
from enum import Enum

from clade import Node, attribute

{more}
class Size(Enum):
    SMALL = 1


class Shop(Node, hierarchy="{name}", prefix="{prefix}"):
    """A shop."""


class Aisle(Shop, under=None):
    """An aisle."""

    size: Size | None = attribute("How large it is.")
'''


def shop(name="shop", more="", prefix=""):
    return SHOP.format(name=name, more=more, prefix=prefix)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_is_named_relative_to_the_working_directory_or_absolute_beside_modules(folder):
    (folder / "shops").mkdir()
    (folder / "shops" / "my-store.py").write_text(shop())
    names = [cls.name for cls in served("graph.hierarchies.locations, shops/my-store.py")]
    assert names == ["location", "shop"]
    (relative,), (absolute,) = served("shops/my-store.py"), served(str(folder / "shops" / "my-store.py"))
    assert relative is absolute  # loaded once


@pytest.mark.parametrize("name", ["json", "store", "graph", "clade", "typing"])
def test_a_file_collides_with_no_module(folder, name):
    (folder / f"{name}.py").write_text(shop())
    before = sys.modules.get(name)
    (cls,) = served(f"{name}.py")
    assert cls.__module__ != name
    assert sys.modules.get(name) is before


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("shops/words", r'names the file "shops/words", which is not a Python file; its name must end in \.py\.'),
        ("shops/empty.py", r"empty\.py declares no hierarchy; it needs a class like Location\(Node, hierarchy="),
        ("json", r"declares no hierarchy; it needs a class like"),
        ("json.nothing", r'names the module "json\.nothing", which cannot be found; name a file as in shop/store\.py'),
    ],
)
def test_what_holds_no_hierarchy_is_refused_with_what_it_needs(folder, name, sentence):
    (folder / "shops").mkdir()
    (folder / "shops" / "words").write_text("a list of words")
    (folder / "shops" / "empty.py").write_text("")
    with pytest.raises(BadInput, match=sentence):
        served(name)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("import no_such_library", 'it imports the module "no_such_library", which cannot be found; install it'),
        ("1 / 0", "ZeroDivisionError: division by zero; correct this line."),
    ],
)
@pytest.mark.parametrize("name", ["wrong_shop", "wrong_shop.py", "shops.wrong_shop"])
def test_a_module_or_file_that_fails_is_named_with_its_line(folder, line, sentence, name):
    (folder / "shops").mkdir()
    for file in ("wrong_shop.py", "shops/wrong_shop.py"):
        (folder / file).write_text(f"{shop()}\n{line}\n")
    with pytest.raises(BadInput) as refused:
        served(name)
    file = f"{name.removesuffix('.py').replace('.', '/')}.py"
    assert str(refused.value).startswith(f"{file}:20: {sentence}")


def test_a_file_may_import_its_neighbours_and_leaves_the_module_path_as_it_was(folder):
    (folder / "a").mkdir()
    (folder / "a" / "shop_words.py").write_text("NAME = 'shop'\n")
    (folder / "a" / "shops.py").write_text(shop(more="from shop_words import NAME"))
    path = list(sys.path)
    assert [cls.name for cls in served("a/shops.py")] == ["shop"]
    assert sys.path == path


def test_two_files_of_one_name_are_two_modules(folder):
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "store.py").write_text(shop(name, prefix=name.upper()).replace("Size", f"Size{name}"))
    assert [cls.name for cls in served("a/store.py,b/store.py")] == ["a", "b"]


def test_what_a_file_defines_can_be_pickled_for_another_process_that_serves_it(folder):
    (folder / "store.py").write_text(shop())
    (cls,) = served("store.py")
    (folder / "size").write_bytes(pickle.dumps(sys.modules[cls.__module__].Size.SMALL))
    code = (
        "import pickle; from graph.hierarchies.registry import served; served('store.py'); "
        "print(pickle.load(open('size', 'rb')).name)"
    )
    # In the directory of the program, as of the script of the command, there is no other store.
    (folder / "bin").mkdir()
    (folder / "bin" / "program.py").write_text(code)
    assert subprocess.check_output([sys.executable, "bin/program.py"], cwd=folder, text=True, timeout=60) == "SMALL\n"


def test_a_file_that_failed_is_loaded_again_when_it_is_corrected(folder):
    (folder / "store.py").write_text(shop() + "1 / 0\n")
    with pytest.raises(BadInput, match=r"^store\.py:19: ZeroDivisionError: division by zero; correct this line\.$"):
        served("store.py")
    (folder / "store.py").write_text(shop("corrected"))
    assert [cls.name for cls in served("store.py")] == ["corrected"]


def test_a_reloaded_module_declares_its_hierarchies_again(folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    (folder / "reloaded_shop.py").write_text(shop("before"))
    assert [cls.name for cls in served("reloaded_shop")] == ["before"]
    (folder / "reloaded_shop.py").write_text("\n\n" + shop("afterwards"))
    importlib.invalidate_caches()
    importlib.reload(sys.modules["reloaded_shop"])
    assert [cls.name for cls in declared_in("reloaded_shop")] == ["afterwards"]
    assert [cls.name for cls in served("reloaded_shop")] == ["afterwards"]


def test_a_mistake_in_an_imported_file_is_reported_with_its_line(folder):
    (folder / "shop_levels.py").write_text("\nfrom clade import Nothing\n")
    (folder / "shops.py").write_text(shop(more="import shop_levels"))
    with pytest.raises(BadInput, match=r"^shop_levels\.py:2: ImportError: cannot import name 'Nothing'"):
        served("shops.py")
