"""Runs of case files. A case that fails shows its command, the output, and the differences."""

import codecs
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from store.errors import CladeError
from tests.cli import app_of
from tests.commands.conftest import create
from tests.commands.importing.cases import Case, Command, File, all_cases, read_cases
from tests.commands.importing.files import nodes_of, path_of, zipped


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
        self.encoding = file.encoding.removesuffix("-sig").replace("utf-16", "utf-16-le").removesuffix("-le-le")
        archive, sign, name = file.name.partition(".zip/")
        if sign:
            self.archives.setdefault(archive, {}).update({name: file.content()} if name else {})
            Path(f"{archive}.zip").write_bytes(zipped(self.archives[archive]))
        else:
            Path(file.name).parent.mkdir(parents=True, exist_ok=True)
            Path(file.name).write_bytes(file.content())

    def check(self, command: Command) -> None:
        self.archives = {}
        words = self.words(command)
        if words[0] == "import":
            self.imported = words
        fails = any(kind == "!" for kind, _ in command.texts)
        before = self.stored() if fails or {"--dry-run", "--describe"} & {*words} else None
        earlier = (self.status, self.rejected)
        self.run(words)
        expected = 1 if fails or (command.rejected and "--allow-rejects" not in words) else 0
        if command.line == "again":
            expected = earlier[0]
        if command.status is not None:
            expected = command.status
        faults = [f"exit status {self.status}, not {expected}"] * (self.status != expected)
        faults += [f"rejected before: {earlier[1]}"] * (command.line == "again" and self.rejected != earlier[1])
        flat = " ".join(self.output.replace("│", "").split())  # without the boxes of Typer
        for kind, text in command.texts:
            found = re.search(text, self.output, re.MULTILINE) or re.search(text, flat)
            faults += [f"the output with {kind} {text}"] * ((found is None) == (kind != ">!"))
        faults += self.wrong_reasons(command.rejected) if command.rejected else []
        faults += ["the tree is another than before"] * (before is not None and self.stored() != before)
        faults += self.wrong_nodes(command.tree) if command.tree else []
        if faults:
            pytest.fail("\n".join([f"$ {shlex.join(words)}", self.output, *faults]), pytrace=False)

    # -- commands ------------------------------------------------------------------------------------------------------

    def words(self, command: Command) -> list[str]:
        """The words of a command; what is to be done before it is done."""
        name, *words = shlex.split(command.line)
        if name == "described":
            return shlex.split(self.described)[1:]
        if name == "again":
            return self.imported
        if name == "corrected":
            file, *changes = words
            content = Path(file).read_bytes()
            for change in changes:
                old, new = map(self.encoded, change[2:].removesuffix(change[1]).split(change[1]))
                assert old in content, f"{change} is not in {content!r}"
                content = content.replace(old, new)
            Path(file).write_bytes(content)
            return [*self.imported[:2], file, *self.imported[3:]]
        return [name, *words]

    def encoded(self, text: str) -> bytes:
        content = codecs.escape_decode(text.encode())[0]
        return content.decode().encode(self.encoding) if self.encoding.startswith("utf-16") else content

    def run(self, words: list[str]) -> None:
        if words[0] == "cat":
            self.status = int(not Path(words[1]).exists())
            content = Path(words[1]).read_bytes() if self.status == 0 else b"does not exist"
            self.output = content.decode(self.encoding if self.status == 0 else "utf-8", "backslashreplace")
            return
        *first, sign, name = ["", *words]
        words, given = (first[1:], Path(name).read_bytes()) if sign == "<" else (words, None)
        done = CliRunner().invoke(app_of(words[:1]), words, input=given, env=self.environment)
        if done.exception and not isinstance(done.exception, CladeError | SystemExit):
            raise done.exception
        self.status = done.exit_code
        self.output = done.output + (f"\n{done.exception}" if isinstance(done.exception, CladeError) else "")
        if words[0] == "import" and "--json" in words and done.stdout:
            self.rejected = {one["row"]: one["reason"] for one in json.loads(done.stdout)["rejected"]}
        elif words[0] == "import":
            found = re.findall(r"(?m)^  .+?, row (\d+): (.*)$", done.stderr)
            self.rejected = {int(number): reason for number, reason in found}
        if "--describe" in words:
            self.described = (done.stdout.splitlines() or [""])[-1]

    def stored(self) -> dict[str, dict[str, Any]] | None:
        """The nodes by path, or None if there is no store."""
        url = self.environment["CLADE_STORE"]
        if url.startswith("sqlite") and not Path(url.removeprefix("sqlite:///")).exists():
            return None
        done = CliRunner().invoke(app_of(["export"]), ["export", self.imported[1]], env=self.environment)
        assert done.exit_code == 0, done.output + repr(done.exception)
        return nodes_of(done.stdout)

    # -- differences ---------------------------------------------------------------------------------------------------

    def wrong_reasons(self, expected: dict[int, str]) -> list[str]:
        faults = [f"rejected: {sorted(self.rejected)}, not {sorted(expected)}"] * ({*expected} != {*self.rejected})
        faults += ["not all rejected rows are shown: add --json"] * (
            "The first" in self.output and "--json" not in self.imported
        )
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
            wrong = {name: found[path].get(name) for name in nodes[path]}
            faults += [f"{path} has {wrong}, not {nodes[path]}"] * (wrong != nodes[path])
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
        marks=[pytest.mark.extenddb] * (store == "extenddb") + [pytest.mark.both_stores] * case.in_plain_run,
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
    ["SG", "US", "US/X", "(3 nodes)", "(nothing)", "> added: 3", ">! added: 2", "= 1", "! added", "? 2 x",
     'US/NE {"level": "CITY"}', 'US\nUS/NE {"level": "CITY"}', "US\nUS/NE\n? 3 x"],
)  # fmt: skip
def test_a_wrong_expectation_fails(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (case,) = read_cases("x", f"== x\n-- a.csv\nCountry,State\nUS,NE\n$ import location a.csv\n{line}")
    with pytest.raises(pytest.fail.Exception):
        Run(case, f"sqlite:///{tmp_path}/clade.db")
