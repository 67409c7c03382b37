"""Proven: `docs/proven.md`, the page of what runs of the suite tried, how often, and what they did not try.

`python -m tests.outside.proven RUN.json... > docs/proven.md` writes it of runs that were saved with `--save`.
"""

import json
import platform
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.outside.parts import Part, all_parts

DOCS = Path(__file__).parents[2] / "docs"
GUARANTEES = ("consistency.md", "writing.md", "security.md", "rights.md")
_HEADING = re.compile(r"^(#{2,3}) (.+)$", re.MULTILINE)


@dataclass
class Run:
    """What runs did: seeds, seconds, and counts by what was made or compared, by part and store, on which commits."""

    seeds: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    counts: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)
    commits: list[str] = field(default_factory=list)

    @property
    def stores(self) -> list[str]:
        return list(self.seconds)

    def add(self, name: str, store: str, seed: int, seconds: float, counts: Counter[str]) -> None:
        """One turn of a part that found nothing wrong."""
        self.seeds.setdefault(name, {}).setdefault(store, []).append(seed)
        self.seconds[store] = self.seconds.get(store, 0) + seconds
        self.counts.setdefault(name, {}).setdefault(store, Counter()).update(counts)

    def save(self, file: Path) -> None:
        file.write_text(json.dumps(vars(self)))

    def take(self, file: Path) -> None:
        """Add what another run has saved."""
        saved = json.loads(file.read_text())
        self.commits = sorted({*self.commits, *saved["commits"]})
        for store, seconds in saved["seconds"].items():
            self.seconds[store] = self.seconds.get(store, 0) + seconds
        for name, stores in saved["seeds"].items():
            for store, seeds in stores.items():
                self.seeds.setdefault(name, {}).setdefault(store, []).extend(seeds)
                self.counts.setdefault(name, {}).setdefault(store, Counter()).update(saved["counts"][name][store])


def commit() -> str:
    """The commit of this checkout. Raises CalledProcessError outside of one."""
    command = ["git", "-C", str(DOCS), "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.strip()


def page(run: Run, parts: Sequence[Part]) -> str:
    """The page in Markdown, of these parts of the suite."""
    lines = [*_head(run), *_operations(run, parts), *_promises(run, parts), *_not_tried(parts)]
    return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    """Markdown as one line of text, for comparisons."""
    return " ".join(re.sub(r"\]\([^)]*\)|[*`\[\]]", "", text).split())


def sections(name: str) -> Iterator[tuple[str, str]]:
    """Heading and text of each section of a page of the docs."""
    text = (DOCS / name).read_text()
    found = list(_HEADING.finditer(text))
    for heading, following in zip(found, [*found[1:], None], strict=True):
        yield heading[2], text[heading.end() : following.start() if following else len(text)]


def _head(run: Run) -> Iterator[str]:
    lengths = ", ".join(f"{run.seconds[store] / 60:.0f} minutes on {_name(store)}" for store in run.stores)
    made_with = f"Python {platform.python_version()}, {platform.machine()}"
    yield "# What was proven"
    yield ""
    yield "`tests/outside` is a suite that imports nothing of Clade: it starts `clade` as a user does and compares what"
    yield "comes with these docs. It has written this page; a run that finds a broken promise saves nothing."
    yield ""
    yield f"On {datetime.now(UTC):%Y-%m-%d}, commit {', '.join(run.commits)}: {lengths}; {made_with}. To run it again:"
    yield ""
    yield "```text"
    yield from (f"python -m tests.outside --minutes 60 --store {store} --save {store}.json" for store in run.stores)
    yield f"python -m tests.outside.proven {' '.join(f'{store}.json' for store in run.stores)} > docs/proven.md"
    yield "```"


def _operations(run: Run, parts: Sequence[Part]) -> Iterator[str]:
    yield from ("", "## Operations, faults and seeds", "")
    yield "| part | what | " + " | ".join(_name(store) for store in run.stores) + " |"
    yield "| --- | --- | " + " | ".join("---" for _ in run.stores) + " |"
    for part in parts:
        counted = [run.counts.get(part.name, {}).get(store, Counter()) for store in run.stores]
        for number, what in enumerate(sorted(set().union(*counted))):
            figures = " | ".join(f"{counts[what]:,}" if what in counts else "–" for counts in counted)
            yield f"| {f'`{part.name}`' if not number else ''} | {what} | {figures} |"
    yield from ("", "A turn of a part has a seed, which makes the same operations again (`--part … --seed …`).", "")
    yield "| part | " + " | ".join(f"seeds on {_name(store)}" for store in run.stores) + " |"
    yield "| --- | " + " | ".join("---" for _ in run.stores) + " |"
    for part in parts:
        seeds = [run.seeds.get(part.name, {}).get(store, []) for store in run.stores]
        yield f"| `{part.name}` | " + " | ".join(_range(found) for found in seeds) + " |"


def _promises(run: Run, parts: Sequence[Part]) -> Iterator[str]:
    yield from ("", "## Promises", "")
    by_page: dict[str, dict[str, list[str]]] = {}
    for part in parts:
        if any(run.counts.get(part.name, {}).values()):
            for name, sentence in part.promises:
                by_page.setdefault(name, {}).setdefault(" ".join(sentence.split()), []).append(part.name)
    for name in sorted(by_page, key=lambda name: (name not in GUARANTEES, name)):
        yield from (f"### [{name}]({name})", "", "| sentence | tried by |", "| --- | --- |")
        for sentence, names in by_page[name].items():
            shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", sentence).replace("|", "\\|")
            yield f"| {shown} | {', '.join(f'`{one}`' for one in names)} |"
        yield ""


def _not_tried(parts: Sequence[Part]) -> Iterator[str]:
    yield from (
        "## What is not covered",
        "",
        "Sections of the guarantees of which no sentence is tried here (tests of other kinds may cover them):",
        "",
    )
    tried: dict[str, list[str]] = {name: [] for name in GUARANTEES}
    for part in parts:
        for name, sentence in part.promises:
            tried.setdefault(name, []).append(plain(sentence))
    for name in GUARANTEES:
        left = [heading for heading, text in sections(name) if not any(one in plain(text) for one in tried[name])]
        yield f"- [{name}]({name}): {', '.join(f'*{plain(heading)}*' for heading in left) or 'none'}"


def _name(store: str) -> str:
    return {"sqlite": "SQLite", "dynamodb": "DynamoDB (dynoxide)"}[store]


def _range(seeds: Sequence[int]) -> str:
    return "–" if not seeds else f"{min(seeds)}" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"


def main() -> None:
    run = Run()
    for file in sys.argv[1:]:
        run.take(Path(file))
    sys.stdout.write(page(run, all_parts()))


if __name__ == "__main__":
    main()
