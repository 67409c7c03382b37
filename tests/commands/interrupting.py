"""The command line as a process that presses Ctrl-C by itself: python interrupting.py MOMENT,MOMENT... COMMAND...

A moment is `module:function`, with `*N` the Nth call of it, or `import:NAME`, the import of one. Each presses once, or
kills the process where it ends with `!`.
"""

import importlib
import os
import signal
import sys
from pathlib import Path


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def at_import(name: str, sent: signal.Signals) -> None:
    class Finder:
        def find_spec(self, found: str, *_: object) -> None:
            if found == name:
                sys.meta_path.remove(self)
                send(sent)

    sys.meta_path.insert(0, Finder())


def at_call(module: str, path: str, number: int, sent: signal.Signals) -> None:
    *names, name = path.split(".")
    owner = importlib.import_module(module)
    for one in names:
        owner = getattr(owner, one)
    function, calls = getattr(owner, name), 0

    def pressing(*arguments: object, **named: object) -> object:
        nonlocal calls
        calls += 1
        if calls == number:
            send(sent)
        return function(*arguments, **named)

    setattr(owner, name, pressing)


def main() -> None:
    sys.path[0] = str(Path(__file__).parents[2])  # the checkout, as that of `python -m`
    moments, sys.argv = sys.argv[1].split(","), ["clade", *sys.argv[2:]]
    for moment in moments:
        module, _, place = moment.partition(":")
        sent = signal.SIGKILL if place.endswith("!") else signal.SIGINT
        path, _, number = place.removesuffix("!").partition("*")
        if module == "import":
            at_import(path, sent)
        else:
            at_call(module, path, int(number or 1), sent)
    import clade_graphql

    clade_graphql.run()


main()
