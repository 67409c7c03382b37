"""Case files: files, commands, and what must come of them, as `cases/README.md` says."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from zlib import crc32

from commands.main import NAMES
from tests.commands.importing.files import File, decoded, file_of

FOLDER = Path(__file__).parent / "cases"
OWN = ("described", "again", "corrected", "cat")


@dataclass
class Command:
    """A command, and what must come of it: texts are regular expressions."""

    line: str
    status: int | None = None
    texts: list[tuple[str, str]] = field(default_factory=list)  # after ">", ">!" or "!"
    rejected: dict[int, str] = field(default_factory=dict)
    tree: list[str] = field(default_factory=list)

    @property
    def expects(self) -> bool:
        return bool(self.texts or self.rejected or self.tree or self.status is not None)

    def add(self, line: str) -> None:
        """Add an expectation."""
        if found := re.fullmatch(r"(>!|[>!])(~?) (.+)", line):
            self.texts.append((found[1], found[3] if found[2] else re.escape(found[3])))
        elif found := re.fullmatch(r"\?(~?) (\d+) (.+)", line):
            self.rejected[int(found[2])] = found[3] if found[1] else re.escape(found[3])
        elif found := re.fullmatch(r"= (\d+)", line):
            self.status = int(found[1])
        elif line[:1] in (*"%>!?=",):
            raise ValueError(f"{line!r} is not an expectation")
        elif line.strip():
            self.tree.append(line.removeprefix("\\"))


@dataclass
class Case:
    subject: str
    title: str
    steps: list[File | Command] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    on_both_stores: bool = False
    in_plain_run: bool = False  # on DynamoDB, too
    is_thorough: bool = False  # not in a plain run, as what is neither the first nor the last of several ways

    def add(self, line: str) -> None:
        """Add a line to the steps. Raises ValueError or LookupError for one that means nothing."""
        if line.startswith("-- "):
            self.steps.append(file_of(*shlex.split(line[3:])))
        elif line.startswith("$ "):
            if line.split()[1] not in (*NAMES, *OWN):
                raise ValueError(f"{line!r} is not a command")
            nothing = [(">", "Nothing changed")] if line == "$ again" else []
            self.steps.append(Command(line[2:], texts=nothing))
        elif self.steps and isinstance(self.steps[-1], File):
            self.steps[-1].lines.append(line[1:] if re.match(r"\\(== |-- |\$ |\\)", line) else line)
        elif self.steps:
            self.steps[-1].add(line)
        elif line.strip():
            raise ValueError(f"{line!r} is before the first file and command")


def all_cases() -> Iterator[Case]:
    for file in sorted(FOLDER.glob("*.txt")):
        yield from read_cases(file.stem, file.read_text(encoding="utf-8"))


def read_cases(subject: str, text: str) -> list[Case]:
    """The cases of a text. Raises ValueError with the line of a case that is wrong."""
    lines = text.removesuffix("\n").split("\n")
    starts = [number for number, line in enumerate(lines) if line.startswith("== ")]
    found: list[Case] = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        try:
            found += _each(subject, lines[start:end])
        except (ValueError, LookupError) as error:
            raise ValueError(f"{subject}.txt, case of line {start + 1}: {error}") from error
    titles = [case.title for case in found]
    if not titles or len({*titles}) < len(titles):
        raise ValueError(f"{subject}.txt has no case, or two of one title: {sorted(titles)}")
    return found


def _each(subject: str, lines: list[str]) -> Iterator[Case]:
    """A case, as often as its lines `% each` say."""
    head = [*takewhile(lambda line: line.startswith("% "), lines[1:])]
    ways: list[dict[str, str]] = [{}]
    for line in head:
        if line.startswith("% each "):
            first, *values = map(decoded, shlex.split(line.removeprefix("% each ")))
            count = len(names := first.split(","))
            given = [dict(zip(names, values[at : at + count], strict=True)) for at in range(0, len(values), count)]
            ways = [way | one for way in ways for one in given]
    in_plain_run = crc32(lines[0].encode()) % max(1, len(ways))  # another one for each case
    for number, way in enumerate(ways):
        case = Case(subject, lines[0].removeprefix("== ") + "".join(f", {value!r}" for value in way.values()))
        case.is_thorough = "% thorough" in head or number != in_plain_run
        for line in head:
            if line in ("% both stores", "% both stores in a plain run"):
                case.on_both_stores, case.in_plain_run = True, line.endswith("run")
            elif line.startswith("% set ") and "=" in line:
                case.environment.update([line.removeprefix("% set ").split("=", 1)])
            elif line not in ("% sqlite", "% thorough") and not line.startswith("% each "):
                raise ValueError(f"{line!r} is not a directive")
        for line in lines[1 + len(head) :]:
            for name, value in way.items():
                line = line.replace(f"{{{name}}}", value)
            case.add(line)
        if not case.steps or not all(isinstance(one, File) or one.expects for one in case.steps):
            raise ValueError("a command is missing, or what must come of it")
        if isinstance(case.steps[-1], File):
            raise ValueError("no command follows the last file")
        yield case
    if not ways:
        raise ValueError("% each has no values")
