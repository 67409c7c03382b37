"""Loading of the modules and files that declare hierarchies; a mistake in one is a BadInput of one sentence."""

import contextlib
import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from graph.hierarchies import attribute, node
from graph.hierarchies.node import WrongClass
from store.errors import BadInput

SETTING = "CLADE_HIERARCHIES"
_OUR_FRAMES = frozenset({__file__, attribute.__file__, node.__file__})


def load(name: str) -> ModuleType:
    """The module of this name, or of the file of this path: a name that ends in `.py` or holds a `/` is a path.

    Each is loaded once in a process. Raises BadInput where it is missing or cannot be loaded.
    """
    return _from_file(name) if name.endswith(".py") or "/" in name else _from_module(name)


def shown(file: str | Path) -> str:
    """A file as messages name it: relative to the working directory where it lies below that."""
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _from_file(name: str) -> ModuleType:
    """The module of a file. Its name is made from its path, so that it is no other module's and the same in workers."""
    file = Path(name).resolve()
    if not file.is_file():
        raise BadInput(f'{SETTING} names the file "{name}", which is not there; a path begins at {Path.cwd()}.')
    stem = re.sub(r"\W", "_", file.stem)
    module_name = f"clade_hierarchies_{stem}_{sha256(str(file).encode()).hexdigest()[:12]}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    spec = importlib.util.spec_from_file_location(module_name, file)
    if spec is None or spec.loader is None:
        raise BadInput(f'{SETTING} names the file "{name}", which is no Python file; its name must end in .py.')
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
        raise BadInput(
            f'{SETTING} names the module "{name}"; write modules like graph.hierarchies.locations, '
            "and files like shop.py."
        )
    with _importable(Path.cwd()), _explained(name):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise
    raise BadInput(f'{SETTING} names the module "{name}", which cannot be found; a file is named like shop/{name}.py.')


@contextlib.contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Modules of this folder can be imported inside the block, after all others."""
    path = str(folder)
    is_new = path not in sys.path
    if is_new:
        sys.path.append(path)
    try:
        yield
    finally:
        if is_new:
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
