"""Checkouts of Clade that are compared in one run, each with a table of its own on one engine, behind one proxy."""

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import processes, servers
from bench.dynamodb.proxy import Controlled
from bench.processes import CHECKOUT, CLADE
from bench.servers import ANY_CREDENTIALS, Server
from tests import engines
from tests.engines import Engine


@dataclass(frozen=True)
class Checkout:
    """A folder with Clade's code, which is run by the Python of the benchmark, and settings of its servers."""

    name: str
    folder: Path
    number: int
    settings: Mapping[str, str]

    def address(self, url: str) -> str:
        """The URL of its table, by the URL of the engine or of a proxy."""
        return f"dynamodb://clade-{self.number}?region=eu-west-1&endpoint={url}"

    def fill(self, url: str, lines: Path) -> None:
        """Create its table and import places."""
        environment = {"CLADE_STORE": self.address(url), **ANY_CREDENTIALS}
        for command in (("table", "create"), ("import", "location", str(lines))):
            processes.run(*CLADE, *command, environment=environment, directory=self.folder)

    def server(self, url: str, *, workers: int = 1, responses: bool = False, **settings: float | str) -> Server:
        """`clade serve` on its table, which is not started."""
        given: dict[str, Any] = settings | dict(self.settings)
        place = self.address(url)
        return servers.clade(self.name, place, checkout=self.folder, workers=workers, responses=responses, **given)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that `checkouts` reads, and the seconds of one run."""
    parser.add_argument(
        "--checkout", action="append", default=[], metavar="DIR", type=_checkout,
        help="folder with the code to measure; several are measured in turn; by default the one of this file",
    )  # fmt: skip
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE",
        help="setting of the measured servers, such as CLADE_SETTLE_SECONDS=1; may be repeated",
    )  # fmt: skip
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds of one run; default 3")


def checkouts(options: argparse.Namespace) -> list[Checkout]:
    folders = options.checkout or [CHECKOUT]
    given = (one.partition("=") for one in options.set)
    settings = {name.removeprefix("CLADE_").lower(): value for name, _, value in given}
    names = ["Clade"] if len(folders) == 1 else [f"Clade, {folder.name}" for folder in folders]
    return [Checkout(name, folder, n, settings) for n, (name, folder) in enumerate(zip(names, folders, strict=True))]


def _checkout(name: str) -> Path:
    """The folder, without whose code Python would find that of its environment."""
    folder = Path(name).resolve()
    if not (folder / "commands" / "main.py").exists():
        raise argparse.ArgumentTypeError(f"{name} has no commands/main.py; name the folder of a checkout of Clade.")
    return folder


@contextmanager
def engine_and_proxy(db_path: Path | None = None) -> Iterator[tuple[Engine, Controlled]]:
    """The engine of the tests and a proxy before it, until the block ends. Raises NoEngine."""
    with engines.find(db_path) as engine:
        proxy = Controlled.before(engine.url)
        with proxy.process:
            yield engine, proxy
