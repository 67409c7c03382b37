"""Entry point of the command `clade`, also as `python -m clade_graphql`.

It stands beside the packages and not in one, so that a foreign module of a package's name cannot hide it. Such a module
is refused in one sentence before anything else of Clade is imported.
"""

import sys


def run() -> None:
    """Run the command line; ends with exit status 1 where a foreign module hides one of Clade's packages."""
    try:
        _check_packages()
        from commands.main import run_process

        run_process()
    except KeyboardInterrupt:  # while the modules were imported, before commands.interrupt catches it
        print("clade: Stopped.", file=sys.stderr)
        sys.exit(130)


def _check_packages() -> None:
    from pathlib import Path

    home = str(Path(__file__).resolve().parent)
    sys.path.insert(0, home)  # so that this one import is Clade's own
    try:
        from clade.packages import foreign_package
    finally:
        sys.path.remove(home)
    if sentence := foreign_package({}):  # also for the workers, which import everything anew
        sys.exit(f"clade: {sentence}")


if __name__ == "__main__":
    run()
