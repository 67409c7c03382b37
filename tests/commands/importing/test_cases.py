"""Runs of case files. A case that fails shows its command, the output, and the differences."""

import codecs
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from store.errors import CladeError
from tests.cli import app_of
from tests.commands.conftest import create
from tests.commands.importing.cases import Case, Command, all_cases, read_cases
from tests.commands.importing.files import File, nodes_of, path_of, zipped

LITTLE_ENDIAN = {"utf-16": "utf-16-le", "utf-8-sig": "utf-8"}  # without a mark


class Run:
    """A run of a case, with what its last commands were and said."""

    def __init__(self, case: Case, store_url: str) -> None:
        self.environment = {"CLADE_STORE": store_url, **case.environment}
        self.archives: dict[str, dict[str, bytes]] = {}
        self.encoding = "utf-8"
        self.imported = ["import", "location"]
        self.described = self.output = ""
        self.status = 0
        self.rejected: dict[int, str] = {}
        for step in case.steps:
            if isinstance(step, File):
                self.write(step)
            else:
                self.check(step)

    def write(self, file: File) -> None:
        self.encoding = LITTLE_ENDIAN.get(file.encoding, file.encoding)
        archive, sign, name = file.name.partition(".zip/")
        if sign:
            self.archives.setdefault(archive, {}).update({name: file.content()} if name else {})
            Path(f"{archive}.zip").write_bytes(zipped(self.archives[archive]))
        else:
            Path(file.name).parent.mkdir(parents=True, exist_ok=True)
            Path(file.name).write_bytes(file.content())

    def check(self, command: Command) -> None:
        """Run a command, and fail unless all is as expected."""
        self.archives = {}
        words = self.words(command.line)
        self.imported = words if words[0] == "import" else self.imported
        fails = any(kind == "!" for kind, _ in command.texts)
        changes_nothing = fails or not {"--dry-run", "--describe"}.isdisjoint(words)
        before = self.stored() if changes_nothing else None
        expected = int(fails or (command.rejected != {} and "--allow-rejects" not in words))
        if command.line == "again":
            expected, command.rejected = self.status, {row: re.escape(text) for row, text in self.rejected.items()}
        if command.status is not None:
            expected = command.status
        self.run(words)
        faults = [f"exit status {self.status}, not {expected}"] * (self.status != expected)
        flat = " ".join(self.output.replace("│", "").split())  # without the boxes of Typer
        for kind, text in command.texts:
            found = re.search(text, self.output, re.MULTILINE) or re.search(text, flat)
            faults += [f"the output with {kind} {text}"] * ((found is None) == (kind != ">!"))
        faults += self.wrong_reasons(command.rejected) if command.rejected else []
        faults += ["the tree is another than before"] * (changes_nothing and self.stored() != before)
        faults += self.wrong_nodes(command.tree) if command.tree else []
        if faults:
            pytest.fail("\n".join([f"$ {shlex.join(words)}", self.output, *faults]), pytrace=False)

    # -- commands ------------------------------------------------------------------------------------------------------

    def words(self, line: str) -> list[str]:
        """The words of a command, after what the commands of case files do."""
        name, *words = shlex.split(line)
        if name == "corrected":
            file, *changes = words
            content = Path(file).read_bytes()
            for change in changes:
                old, new = map(self.encoded, change[2:].removesuffix(change[1]).split(change[1]))
                assert old in content, f"{change} is not in {content!r}"
                content = content.replace(old, new)
            Path(file).write_bytes(content)
            options = re.sub(r"--sheet\n.*\n", "", "".join(f"{word}\n" for word in self.imported[3:]))
            return [*self.imported[:2], file, *options.splitlines()]
        own = {"described": shlex.split(self.described)[1:], "again": self.imported}
        return own.get(name, [name, *words])

    def encoded(self, text: str) -> bytes:
        content = codecs.escape_decode(text.encode())[0]
        return content.decode().encode(self.encoding) if self.encoding.startswith("utf-16") else content

    def run(self, words: list[str]) -> None:
        if words[0] == "cat":
            self.status = int(not Path(words[1]).exists())
            content = b"" if self.status else Path(words[1]).read_bytes()
            self.output = "does not exist" if self.status else content.decode(self.encoding, "backslashreplace")
            return
        done = self.clade(words)
        self.status, self.output = done.exit_code, done.output
        if isinstance(done.exception, CladeError):
            self.output += f"\n{done.exception}"
            assert "\n" not in str(done.exception), self.output
        elif done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        if words[0] == "import" and "--json" in words and done.stdout:
            self.rejected = {one["row"]: one["reason"] for one in json.loads(done.stdout)["rejected"]}
        elif words[0] == "import":
            found = re.findall(r"(?m)^  .+?, row (\d+): (.*)$", done.stderr)
            self.rejected = {int(number): reason for number, reason in found}
        if "--describe" in words:
            self.described = (done.stdout.splitlines() or [""])[-1]

    def clade(self, words: list[str]) -> Result:
        *some, sign, name = ["", *words]
        given = Path(name).read_bytes() if sign == "<" else None
        words = some[1:] if sign == "<" else words
        return CliRunner().invoke(app_of(words[:1]), words, input=given, env=self.environment)

    # -- differences ---------------------------------------------------------------------------------------------------

    def stored(self) -> dict[str, dict[str, Any]] | None:
        """The nodes by path, or None if there is no store."""
        url = self.environment["CLADE_STORE"]
        if url.startswith("sqlite") and not Path(url.removeprefix("sqlite:///")).exists():
            return None
        done = self.clade(["export", self.imported[1]])
        assert done.exit_code == 0, done.output + repr(done.exception)
        return nodes_of(done.stdout)

    def wrong_reasons(self, expected: dict[int, str]) -> list[str]:
        count = re.search(r"rejected: (\d+) row", self.output)
        faults = ["add --json: it shows all rejected rows"] * (not count or int(count[1]) > len(self.rejected))
        faults += [f"rejected: {sorted(self.rejected)}, not {sorted(expected)}"] * ({*expected} != {*self.rejected})
        wrong = [number for number in expected if not re.match(expected[number], self.rejected.get(number, ""))]
        return faults + [f"row {number}: {expected[number]}" for number in wrong]

    def wrong_nodes(self, lines: list[str]) -> list[str]:
        found = self.stored() or {}
        if count := re.fullmatch(r"\((?:nothing|(\d+) nodes)\)", lines[0]):
            return [f"{len(found)} nodes: {[*found]}"] * (len(found) != int(count[1] or 0) or len(lines) > 1)
        nodes = dict(map(_node, lines))
        faults = [f"- {path}" for path in nodes if path not in found] + [f"+ {path}" for path in found.keys() - nodes]
        faults += ["a path is listed twice"] * (len(nodes) < len(lines))
        for path in nodes.keys() & found:
            has = {name: found[path].get(name) for name in nodes[path]}
            faults += [f"{path} has {has}, not {nodes[path]}"] * (has != nodes[path])
        return faults


def _node(line: str) -> tuple[str, dict[str, Any]]:
    """The path and the fields of a line."""
    path, sign, fields = line.partition(" {")
    return path_of(json.loads(path)) if path.startswith('["') else path, json.loads(f"{{{fields}") if sign else {}


CASES = [
    pytest.param(
        case,
        store,
        id=f"{case.subject}: {case.title}" + f"-{store}" * case.on_both_stores,
        marks=[
            *[pytest.mark.extenddb] * (store == "extenddb"),
            *[pytest.mark.both_stores] * case.in_plain_run,
            *[pytest.mark.thorough] * case.is_thorough,
        ],
    )
    for case in all_cases()
    for store in ("sqlite", "dynamodb", "extenddb")[: 3 if case.on_both_stores else 1]
]


@pytest.mark.parametrize(("case", "store_url"), CASES, indirect=["store_url"])
def test_a_case(case: Case, store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if case.on_both_stores:
        create(store_url)
    Run(case, store_url)


@pytest.mark.parametrize(
    "lines",
    [
        ["-- a.csv", "x"], ["$ import location a.csv"], ["% both"], ["$ importing location", "> x"], ["x", "$ cat a"],
        ["-- a.csv utf-7x", "$ cat a.csv", "> x"], ["-- a.csv = none", "$ cat a.csv", "> x"], ["$ cat a", "?? 1 x"],
        ["$ cat a", "> x", "== a case", "$ cat a", "> x"], ["% each A", "$ cat a", "> x"], ["$ cat a", ">x", "> "],
    ],
)  # fmt: skip
def test_a_case_file_that_is_wrong_is_an_error(lines: list[str]) -> None:
    with pytest.raises(ValueError, match=r"wrong.txt"):
        read_cases("wrong", "\n".join(["== a case", *lines]))


@pytest.mark.parametrize(
    "line",
    ["SG", "US", "US/X", "(3 nodes)", "(nothing)", "> added: 3", ">! added: 2", "= 1", "! added", "? 2 x", "!~ .\n= 0",
     'US\nUS/NE {"level": "CITY"}', "US\nUS/NE\n? 3 x", "US\nUS/NE\nUS", "= 0\n$ again\n> unchanged: 3"],
)  # fmt: skip
def test_a_wrong_expectation_fails(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (case,) = read_cases("x", f"== x\n-- a.csv\nCountry,State\nUS,NE\n$ import location a.csv\n{line}")
    with pytest.raises(pytest.fail.Exception):
        Run(case, f"sqlite:///{tmp_path}/clade.db")
