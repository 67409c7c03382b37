"""Stores of the benchmark, made by `clade import` once and kept in a directory."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from bench import places, processes
from bench.places import Place
from bench.processes import CLADE


@dataclass(frozen=True)
class Stores:
    """Stores in a directory, each made when it is first needed."""

    directory: Path
    taxonomy: Path | None = None

    def sqlite(self, name: str, make: Callable[[], Iterable[Place]]) -> str:
        """The address of an SQLite store that has the places made, and the taxonomy if there is one."""
        file = self.directory / f"{name}.db"
        if not file.exists():
            half = self.directory / f"{name}.half.db"
            self.fill(f"sqlite:///{half}", self.lines(name, make))
            half.rename(file)
        return f"sqlite:///{file}"

    def fill(self, url: str, lines: Path) -> None:
        """Make a table and bring the places and the taxonomy into it."""
        self._clade(url, "table", "create")
        self._clade(url, "import", "location", str(lines))
        if self.taxonomy:
            self._clade(url, "import", "category", str(self.taxonomy))

    def lines(self, name: str, make: Callable[[], Iterable[Place]]) -> Path:
        """The places as `clade import` takes them."""
        return self._file(f"{name}.jsonl", lambda file: places.write(make(), file))

    def peer_lines(self, name: str, make: Callable[[], Iterable[Place]]) -> Path:
        """The places as the other servers take them."""
        return self._file(f"{name}.peers.jsonl", lambda file: places.write_for_peers(make(), file))

    def _file(self, name: str, write: Callable[[Path], None]) -> Path:
        file = self.directory / name
        if not file.exists():
            half = file.with_suffix(".half")
            write(half)
            half.rename(file)
        return file

    def _clade(self, url: str, *command: str) -> None:
        processes.run(*CLADE, *command, environment={"CLADE_STORE": url})
