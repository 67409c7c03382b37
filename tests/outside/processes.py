"""Processes that users start: the command `clade`, its server, and a DynamoDB engine. All end by their process ids."""

import contextlib
import itertools
import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from tests import engines, processes
from tests.engines import KEY_PAIR
from tests.outside.failures import Wrong
from tests.processes import CLADE, Answer
from tests.user_errors import with_user_errors

HERE = Path(__file__).parent
EXTREMES = HERE / "classes" / "extremes.py"
INVALID = (b'"GRAPHQL_PARSE_FAILED"', b'"GRAPHQL_VALIDATION_FAILED"')


def clade_command() -> str:
    """The command under test: CLADE_TEST_COMMAND, or the one of this Python's environment."""
    return os.environ.get("CLADE_TEST_COMMAND") or str(CLADE)


class Server(processes.Server):
    """`clade serve` with these settings, named without CLADE_ and in small letters."""

    def __init__(self, store: str, **settings: str) -> None:
        self.settings = settings_of(store, **settings)
        super().__init__(clade=clade_command(), environment=self.settings)

    def ask(
        self, query: str, variables: dict[str, Any] | None = None, *, key: str | None = None, **headers: str
    ) -> Answer:
        """Send one operation; raises OSError if there is no response, and Wrong if the document is invalid: two servers
        that both refuse it would agree.
        """
        credentials = {"authorization": f"Bearer {key}"} if key else {}
        answer = super().ask(with_user_errors(query), variables, **headers, **credentials)
        if any(code in answer.bytes for code in INVALID):
            raise Wrong("the documents of the suite match the schema", [query], "a valid document", answer.json)
        return answer


def settings_of(store: str, **settings: str) -> dict[str, str]:
    """An environment with these settings of Clade and no others of it."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("CLADE_", "AWS_"))}
    ours = {f"CLADE_{name.upper()}": text for name, text in settings.items()}
    return {
        **kept,
        **KEY_PAIR,
        "AWS_EC2_METADATA_DISABLED": "true",
        "CLADE_STORE": store,
        "CLADE_LOG_FORMAT": "json",
        **ours,
    }


def command(
    *arguments: str, store: str, seconds: float = 600, status: int | None = 0, **settings: str
) -> subprocess.CompletedProcess[str]:
    """A run of `clade` to its end; `status` is the exit status that is expected, None for any."""
    done = subprocess.run(
        [clade_command(), *arguments],
        env=settings_of(store, **settings),
        capture_output=True,
        text=True,
        timeout=seconds,
        stdin=subprocess.DEVNULL,
    )
    assert status is None or done.returncode == status, f"{arguments}: {done.stdout}{done.stderr}"
    return done


def on_things(*arguments: str, store: str, status: int | None = 0) -> subprocess.CompletedProcess[str]:
    """A run of `clade` with the hierarchy of extremes."""
    return command(*arguments, store=store, status=status, hierarchies=str(EXTREMES))


def import_things(file: Path, store: str, rows: Iterable[dict[str, Any]]) -> None:
    """Write nodes into a new file, and import them."""
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    on_things("import", "thing", str(file), store=store)


def expect_no_findings(store: str, promise: str, script: Sequence[str]) -> None:
    """Raise Wrong if `clade check` finds anything."""
    checked = on_things("check", store=store, status=None)
    if checked.returncode:
        raise Wrong(promise, [*script, "clade check"], "no findings", checked.stdout)


class Place:
    """A folder with one store and the processes that were started in it, which end with it."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self._processes: list[processes.Process] = []
        self._tables = itertools.count(1)
        self.engine: engines.Engine | None = None

    @cached_property
    def store(self) -> str:
        """The URL of the store that parts share."""
        return self.new_store()

    def new_store(self, *, created: bool = True) -> str:
        """The URL of another new store of the same kind."""
        if self.kind == "sqlite":
            url = f"sqlite:///{self.folder}/store-{next(self._tables)}.db"
        else:
            if self.engine is None:
                self.engine = _engine()
                self.engine.start()
                self._processes.append(self.engine)
            url = f"dynamodb://outside-{os.getpid()}-{next(self._tables)}?region=eu-west-1&endpoint={self.engine.url}"
        if created:
            command("table", "create", store=url)
        return url

    def server(self, store: str | None = None, **settings: str) -> Server:
        """A running server of the hierarchy of extremes with mutations, unless the settings say otherwise."""
        server = Server(store or self.store, **{"hierarchies": str(EXTREMES), "writes": "on", **settings})
        self._processes.append(server)
        return server.start()

    def close(self) -> None:
        for process in reversed(self._processes):
            process.stop()


def _engine() -> engines.Engine:
    """ExtendDB, if CLADE_TEST_ENGINE names it, with indexes that are current, or another engine."""
    is_extenddb = os.environ.get("CLADE_TEST_ENGINE") == "extenddb"
    return engines.extenddb(index_delay_ms=0) if is_extenddb else engines.find()


def missing(kind: str) -> str:
    """Why a store of this kind cannot be tried here; empty if it can be."""
    is_there = kind == "sqlite" or os.environ.get("CLADE_TEST_DYNAMODB") or engines.dynoxide()
    return "" if is_there else "npm's @dynoxide/linux-x64 is missing: scripts/test installs it"


@contextlib.contextmanager
def place(kind: str) -> Iterator[Place]:
    """A new place for a store of a kind, `sqlite` or `dynamodb`, until the block ends."""
    with tempfile.TemporaryDirectory(prefix="clade-outside-") as folder:
        found = Place(kind, Path(folder))
        try:
            yield found
        finally:
            found.close()
