"""Served hierarchies: those that the modules and files named by the settings declare. A mistake in one is a BadInput of
one sentence.
"""

import contextlib
import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from graph.hierarchies import attribute, attribute_options, computed, node
from graph.hierarchies.attribute_options import WrongClass
from graph.hierarchies.names import check_names, location, shown
from graph.hierarchies.node import Node, declared_in
from graph.settings import Settings
from store.errors import BadInput, suggestion
from store.model.hierarchy import Hierarchy

SETTING = "CLADE_HIERARCHIES"
OWN_MODULES = ("graph.hierarchies.locations", "graph.hierarchies.categories")
_OUR_FRAMES = frozenset(module.__file__ for module in (attribute, attribute_options, computed, node)) | {__file__}


def served(names: str | None = None) -> list[type[Node]]:
    """The hierarchy classes of these modules and files (divided by commas), else of those that the settings name.

    A module is looked for in the working directory too. Raises BadInput where one is missing, cannot be loaded,
    declares no hierarchy or one that another declares, has levels that do not fit together, and where names clash.
    """
    found: dict[str, type[Node]] = {}
    for name in dict.fromkeys((names or Settings().hierarchies).split(",")):
        module = load(name.strip())
        for cls in _declared_by(module):
            other = found.setdefault(cls.name, cls)
            if other is not cls:
                fact = f'{cls.title} has hierarchy="{cls.name}", as {other.title} in {location(other)} has'
                raise BadInput(f"{location(cls)}: {fact}; rename one of them, or serve only one.")
            _check_levels(cls)
    check_names(list(found.values()))
    return list(found.values())


def hierarchies(names: str | None = None) -> dict[str, Hierarchy]:
    """The same as the store's schemas, by name."""
    return {cls.name: cls.definition() for cls in served(names)}


def _declared_by(module: ModuleType) -> Sequence[type[Node]]:
    if classes := declared_in(module.__name__):
        return classes
    file = shown(module.__file__ or module.__name__)
    mine = Path(f"{module.__name__.replace('.', '/')}.py")
    if mine.is_file() and mine.resolve() != Path(file).resolve():
        fact = f'{SETTING} names the module "{module.__name__}", which is {file} and declares no hierarchy'
        raise BadInput(f"{fact}; for the file here write {SETTING}={mine}.")
    raise BadInput(f'{file} declares no hierarchy; it needs a class like Location(Node, hierarchy="location").')


def _check_levels(cls: type[Node]) -> None:
    """Raise BadInput where the levels do not fit together, with the line of the level that the sentence names."""
    try:
        definition = cls.definition()
        for one in definition.levels.values():
            if one.searched and definition.search is None:
                fact = f"{one.title}.{one.searched[0]} has search=True, and {cls.title} has no search="
                raise ValueError(f'{fact}; write search="hierarchy" in the class {cls.title}, or leave it out.')
    except ValueError as error:
        words = set(re.findall(r"\w+", str(error)))
        level = next((level for level in cls.levels.values() if level.title in words), cls)
        raise BadInput(f"{location(level)}: {error}") from None


def load(name: str) -> ModuleType:
    """The module of this name, or of the file of this path: a name that ends in `.py` or holds a `/` is a path.

    Each is loaded once in a process. Raises BadInput where it is missing or cannot be loaded.
    """
    return _from_file(name) if name.endswith(".py") or "/" in name else _from_module(name)


def _from_file(name: str) -> ModuleType:
    """The module of a file. Its name is made from its path, so that it is no other module's and the same in workers."""
    file = Path(name).resolve()
    if not file.is_file():
        raise BadInput(f'{SETTING} names the file "{name}", which does not exist; paths are relative to {Path.cwd()}.')
    stem = re.sub(r"\W", "_", file.stem)
    module_name = f"clade_hierarchies_{stem}_{sha256(str(file).encode()).hexdigest()[:12]}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    spec = importlib.util.spec_from_file_location(module_name, file)
    if spec is None or spec.loader is None:
        raise BadInput(f'{SETTING} names the file "{name}", which is not a Python file; its name must end in .py.')
    module = sys.modules[module_name] = importlib.util.module_from_spec(spec)
    try:
        with _importable(file.parent), _explained(shown(file)):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    return module


def _from_module(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        way_out = "write modules like graph.hierarchies.locations, and files like shop.py"
        raise BadInput(f'{SETTING} names the module "{name}"; {way_out}.')
    with _importable(Path.cwd()), _explained(name):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
    file = f"shop/{name}.py" if "." not in name else "shop/store.py, with its folder and .py"
    fact = f'{SETTING} names the module "{name}", which cannot be found'
    raise BadInput(f"{fact}; name a file as in {file}.{suggestion(name, OWN_MODULES)}")


@contextlib.contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Modules of this folder can be imported inside the block, after all others."""
    new = {str(folder)} - set(sys.path)
    sys.path += new
    try:
        yield
    finally:
        for path in new:
            sys.path.remove(path)


@contextlib.contextmanager
def _explained(name: str) -> Iterator[None]:
    """Errors of the code that is loaded inside the block become BadInput, with the file and line where it happened."""
    try:
        yield
    except SyntaxError as error:
        where = f"{shown(error.filename)}:{error.lineno}" if error.filename else name
        raise BadInput(f"{where}: syntax error: {error.msg}; correct this line.") from None
    except WrongClass as error:
        raise BadInput(f"{_line_of(error) or name}: {error}") from None
    except ModuleNotFoundError as error:
        sentence = f'it imports the module "{error.name}", which cannot be found; install it, or correct the import.'
        raise BadInput(f"{_line_of(error) or name}: {sentence}") from None
    except Exception as error:
        text = " ".join(str(error).split())
        raise BadInput(f"{_line_of(error) or name}: {type(error).__name__}: {text}; correct this line.") from None


def _line_of(error: Exception) -> str:
    """Where an error happened in the files that are loaded, as file:line; empty where it came through none."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<") and frame.filename not in _OUR_FRAMES
    ]
    if not frames:
        return ""
    folder = Path(frames[0].filename).parent
    last = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)][-1]
    return f"{shown(last.filename)}:{last.lineno}"
