"""PostgreSQL of the machine with pg_trgm, as a measure for search: a temporary cluster behind a socket file.

Its programs have to be installed (Debian: `postgresql` and its contrib modules); nothing of them is needed otherwise. A
text is looked for in folded names by a GIN index of trigrams, the most populous names come first.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from store.search.folding import fold

START_SECONDS, STOP_SECONDS = 60, 30
SCHEMA = """
CREATE EXTENSION pg_trgm;
CREATE TABLE place (name text, folded text, population bigint);
"""
INDEX = "CREATE INDEX ON place USING gin (folded gin_trgm_ops); ANALYZE place; SET random_page_cost = 1.1;\n"


class Cluster:
    """A running cluster; `folder` has its socket, `programs` are in a folder such as /usr/lib/postgresql/15/bin."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self._folder = folder
        self._programs = programs

    def run(self, sql: str) -> str:
        """The output of SQL commands."""
        command = [self._programs / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", self._folder]
        done = subprocess.run(
            [*command, "-U", "bench", "postgres"], input=sql, capture_output=True, text=True, check=True
        )
        return done.stdout

    def fill(self, names: Sequence[tuple[str, int]]) -> None:
        rows = [f"{_cell(name)}\t {_cell(fold(name).replace('+', ' '))}\t{population}" for name, population in names]
        self.run("\n".join([SCHEMA, "COPY place FROM STDIN;", *rows, "\\.", INDEX]))

    def milliseconds(self, texts: Sequence[str], rounds: int = 5) -> list[float]:
        """The least time of each search in the server, planning included."""
        times = []
        for text in texts:
            wanted = " AND ".join([f"folded LIKE '% {word}%'" for word in fold(text).split("+")])
            query = f"SELECT name FROM place WHERE {wanted} ORDER BY population DESC LIMIT 10"  # noqa: S608 - folded
            found = self.run(f"EXPLAIN (ANALYZE, FORMAT JSON) {query};\n" * rounds)
            plans = list(_documents(found))
            times.append(min([plan[0]["Planning Time"] + plan[0]["Execution Time"] for plan in plans]))
        return times


@contextmanager
def running(programs: Path) -> Iterator[Cluster]:
    """A new cluster, which is removed at the end; it refuses to run as root, who starts it as the user postgres."""
    user = "postgres" if os.getuid() == 0 else None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        data = folder / "data"
        subprocess.run(
            [programs / "initdb", "-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8", "--no-sync"],
            user=user, cwd=folder, check=True, capture_output=True,
        )  # fmt: skip
        options = f"-c listen_addresses='' -k {folder}"
        control = [programs / "pg_ctl", "-D", data, "-w"]
        start = [*control, "-t", str(START_SECONDS), "-l", folder / "log", "-o", options, "start"]
        subprocess.run(start, user=user, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        try:
            yield Cluster(folder, programs)
        finally:
            stop = [*control, "-t", str(STOP_SECONDS), "-m", "fast", "stop"]
            subprocess.run(stop, user=user, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\t", " ").replace("\n", " ")


def _documents(text: str) -> Iterator[list[dict[str, float]]]:
    """The JSON documents that follow each other in a text."""
    decoder, place = json.JSONDecoder(), 0
    while place < len(text):
        document, place = decoder.raw_decode(text, place)
        yield document
        place += len(text[place:]) - len(text[place:].lstrip())
