"""The command line as a process that presses Ctrl-C by itself: python interrupting.py MOMENT,MOMENT... COMMAND...

A moment is `module:function`, with `*N` the Nth call of it, or `import:NAME`, the import of one. Each presses once.
"""

import importlib
import os
import signal
import sys
from pathlib import Path


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def at_import(name: str) -> None:
    class Finder:
        def find_spec(self, found: str, *_: object) -> None:
            if found == name:
                sys.meta_path.remove(self)
                press()

    sys.meta_path.insert(0, Finder())


def at_call(module: str, path: str, number: int) -> None:
    *names, name = path.split(".")
    owner = importlib.import_module(module)
    for one in names:
        owner = getattr(owner, one)
    function, calls = getattr(owner, name), 0

    def pressing(*arguments: object, **named: object) -> object:
        nonlocal calls
        calls += 1
        if calls == number:
            press()
        return function(*arguments, **named)

    setattr(owner, name, pressing)


def main() -> None:
    sys.path[0] = str(Path(__file__).parents[2])  # the checkout, as that of `python -m`
    moments, sys.argv = sys.argv[1].split(","), ["clade", *sys.argv[2:]]
    for moment in moments:
        module, _, place = moment.partition(":")
        path, _, number = place.partition("*")
        if module == "import":
            at_import(place)
        else:
            at_call(module, path, int(number or 1))
    import clade_graphql

    clade_graphql.run()


main()
