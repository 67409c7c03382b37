"""Commands that are interrupted, killed or left by their engine half-way say one sentence and leave nothing behind,
and the same command continues.
"""

import asyncio
import json
import os
import signal
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web
from typer.testing import CliRunner

from commands import interrupt
from commands.main import app_of
from store.connect import open_store
from tests import invariants
from tests.conftest import CLADE
from tests.engines import Engine
from tests.proxy import Call, Fault, Forward, Proxy, dropped, passed

RUN_SECONDS = 300
READS = ("GetItem", "BatchGetItem", "Query", "Scan", "DescribeTable")
CITIES = 400


async def _press() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.Event().wait()


@pytest.mark.parametrize("press", [lambda: signal.raise_signal(signal.SIGINT), lambda: interrupt.run(_press())])
def test_a_second_press_is_ignored_from_the_first_one_on(press: Callable[[], None]) -> None:
    handler = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        interrupt.catch()
        with pytest.raises(interrupt.Interrupted):
            press()
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, handler)


class Table:
    """A table behind a proxy, and commands as processes of their own, which faults may send signals to."""

    def __init__(self, proxy: Proxy, folder: Path, name: str) -> None:
        self.proxy, self.folder = proxy, folder
        self.url = Engine("", proxy.url, exact=True).address(name)
        self.process: asyncio.subprocess.Process | None = None

    async def run(self, *words: str) -> tuple[int | None, str, str]:
        """Exit status, output and errors of a command."""
        self.process = await asyncio.create_subprocess_exec(
            CLADE, *words, cwd=self.folder, env={**os.environ, "CLADE_STORE": self.url},
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        output, errors = await asyncio.wait_for(self.process.communicate(), RUN_SECONDS)
        return self.process.returncode, output.decode(), errors.decode()

    def sends(self, *sent: signal.Signals) -> Fault:
        """A fault that sends these signals to the command, and forwards the call."""

        async def fault(call: Call, forward: Forward) -> web.Response:
            assert self.process is not None
            for number in sent:
                self.process.send_signal(number)
            return await forward(call.body)

        return fault


@pytest.fixture
async def table(engine: Engine, tmp_path: Path) -> Callable[[Proxy], Table]:
    """Makes a table behind a proxy, and the file of an import that takes several transactions."""
    name = f"clade-{uuid.uuid4().hex}"
    async with open_store(engine.address(name)) as store:
        await store.create()
    rows = [{"path": [f"C{n % 3}", f"City {n}"], "level": "CITY"} for n in range(CITIES)]  # in front of their parents
    rows += [{"path": [f"C{n}"], "level": "COUNTRY"} for n in range(3)]
    (tmp_path / "cities.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return lambda proxy: Table(proxy, tmp_path, name)


IMPORT = ("import", "location", "cities.jsonl")


@pytest.mark.parametrize(
    ("sent", "numbers"), [(signal.SIGINT, (2,)), pytest.param(signal.SIGKILL, (2, 0, 1), marks=pytest.mark.thorough)]
)
async def test_an_import_that_ends_anywhere_is_consistent_and_goes_on_with_the_same_command(
    engine: Engine, table: Callable[[Proxy], Table], sent: signal.Signals, numbers: tuple[int, ...]
) -> None:
    async with Proxy(engine.url) as proxy:
        clade = table(proxy)
        for number in numbers:
            proxy.spoil("TransactWriteItems", *[passed] * number, clade.sends(sent, sent))
            status, _, said = await clade.run(*IMPORT)
            proxy.mend()
            if sent is signal.SIGINT:
                assert (status, said.count("\n"), said.startswith("Stopped: ")) == (130, 1, True), said
                assert said.endswith(" written. Run the same command to continue.\n")
            else:
                assert status == -signal.SIGKILL, said
            async with open_store(clade.url) as store:
                await invariants.check(store)
        status, output, _ = await clade.run(*IMPORT)
        assert (status, "added: " in output, "unchanged: " in output) == (0, True, True), output
        words = [*IMPORT[:2], str(clade.folder / IMPORT[2]), "--store", clade.url]
        again = await asyncio.to_thread(CliRunner().invoke, app_of(IMPORT[:1]), words)
        assert f"Nothing changed.\nunchanged: {CITIES + 3}" in again.output


COMMANDS = {
    "export location --output made.jsonl": "Stopped: the export is incomplete.",
    "copy STORE sqlite:///made.db": "Stopped: the copy is incomplete; run the same command to complete it.",
    "check": "Stopped; the rest of the table was not checked.",
    "repair": "Stopped. All printed repairs were made; run the same command to continue.",
    "tree location": "clade: Stopped.", "key list": "clade: Stopped.", "table describe": "clade: Stopped.",
    "serve --port 0": "clade: Stopped.",
}  # fmt: skip


@pytest.mark.parametrize(
    "command", [pytest.param(one, marks=[] if "export" in one else pytest.mark.thorough) for one in COMMANDS]
)
async def test_every_command_says_one_sentence_and_leaves_no_file_when_it_is_interrupted(
    engine: Engine, table: Callable[[Proxy], Table], command: str
) -> None:
    async with Proxy(engine.url) as proxy:
        clade = table(proxy)
        for operation in READS:
            proxy.spoil(operation, *[clade.sends(signal.SIGINT, signal.SIGINT)] * 9)
        status, _, said = await clade.run(*command.replace("STORE", clade.url).split())
        assert (status, said) == (130, f"{COMMANDS[command]}\n")
        assert [file.name for file in clade.folder.iterdir()] == ["cities.jsonl"]


@pytest.mark.thorough
async def test_an_import_that_its_engine_leaves_says_how_to_continue(
    engine: Engine, table: Callable[[Proxy], Table]
) -> None:
    async with Proxy(engine.url) as proxy:
        clade = table(proxy)
        for operation in ("TransactWriteItems", *READS):
            proxy.spoil(operation, *([passed] * 9 if operation in READS else ()), *[dropped] * 200)
        status, _, said = await clade.run(*IMPORT)
        assert status == 1
        assert "unknown whether the change was made" in said or "does not respond" in said
        assert "Run the same command to continue." in said
        assert "idempotencyKey" not in said
        proxy.mend()
        assert (await clade.run(*IMPORT))[0] == 0
        assert "no findings" in (await clade.run("check", "location"))[1]
