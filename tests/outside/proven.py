"""Proven: writes `docs/proven.md`, the page of what a run of the suite tried, how often, and what it did not try."""

import platform
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.outside.known import KNOWN
from tests.outside.parts import Part

DOCS = Path(__file__).parents[2] / "docs"
GUARANTEES = ("consistency.md", "writing.md", "security.md", "rights.md")
_HEADING = re.compile(r"^(#{2,3}) (.+)$", re.MULTILINE)


@dataclass
class Run:
    """What a run did: per part and store its seeds, seconds, and counts by what was made or compared."""

    stores: Sequence[str]
    parts: Sequence[Part]
    seeds: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    seconds: Counter[tuple[str, str]] = field(default_factory=Counter)
    counts: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)

    def add(self, part: Part, store: str, seed: int, seconds: float, counts: Counter[str]) -> None:
        """One turn of a part that found nothing wrong."""
        self.seeds.setdefault((part.name, store), []).append(seed)
        self.seconds[part.name, store] += seconds
        self.counts.setdefault((part.name, store), Counter()).update(counts)


def page(run: Run) -> str:
    """The page in Markdown."""
    return "\n".join([*_head(run), *_operations(run), *_promises(run), *_not_tried(run)]) + "\n"


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
    minutes = {store: sum(run.seconds[part.name, store] for part in run.parts) / 60 for store in run.stores}
    lengths = ", ".join(f"{minutes[store]:.0f} minutes on {_name(store)}" for store in run.stores)
    yield "# What was proven"
    yield ""
    yield "`tests/outside` is a suite that imports nothing of Clade: it starts `clade` as a user does and compares what"
    yield "comes with these docs. It has written this page; a run that finds a broken promise writes none."
    yield ""
    made_with = f"Python {platform.python_version()}, {platform.machine()}"
    yield f"On {datetime.now(UTC):%Y-%m-%d}: {lengths}; {made_with}. To run it again:"
    yield ""
    yield "```text"
    yield f"python -m tests.outside {' '.join(f'--store {store}' for store in run.stores)} --minutes 120 --page"
    yield "```"


def _operations(run: Run) -> Iterator[str]:
    yield from ("", "## Operations, faults and seeds", "")
    yield "| part | what | " + " | ".join(_name(store) for store in run.stores) + " |"
    yield "| --- | --- | " + " | ".join("---" for _ in run.stores) + " |"
    for part in run.parts:
        counted = [run.counts.get((part.name, store), Counter()) for store in run.stores]
        for number, what in enumerate(sorted(set().union(*counted))):
            figures = " | ".join(f"{counts[what]:,}" for counts in counted)
            yield f"| {f'`{part.name}`' if not number else ''} | {what} | {figures} |"
    yield from ("", "A turn of a part has a seed, which makes the same operations again (`--part … --seed …`).", "")
    yield "| part | " + " | ".join(f"seeds on {_name(store)}" for store in run.stores) + " |"
    yield "| --- | " + " | ".join("---" for _ in run.stores) + " |"
    for part in run.parts:
        seeds = [run.seeds.get((part.name, store), []) for store in run.stores]
        yield f"| `{part.name}` | " + " | ".join(_range(found) for found in seeds) + " |"


def _promises(run: Run) -> Iterator[str]:
    yield from ("", "## Promises", "")
    by_page: dict[str, dict[str, list[str]]] = {}
    for part in run.parts:
        if any(run.counts.get((part.name, store)) for store in run.stores):
            for name, sentence in part.promises:
                by_page.setdefault(name, {}).setdefault(" ".join(sentence.split()), []).append(part.name)
    for name in sorted(by_page, key=lambda name: (name not in GUARANTEES, name)):
        yield from (f"### [{name}]({name})", "", "| sentence | tried by |", "| --- | --- |")
        for sentence, names in by_page[name].items():
            shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", sentence).replace("|", "\\|")
            yield f"| {shown} | {', '.join(f'`{one}`' for one in names)} |"
        yield ""


def _not_tried(run: Run) -> Iterator[str]:
    yield from ("## What is not covered", "", "Known faults, over which the suite steps:", "")
    yield from (f"- {name[0].upper()}{name[1:]}. {reason}" for name, reason in KNOWN.items())
    yield from (
        "",
        "Sections of the guarantees of which no sentence is tried here (tests of other kinds may cover them):",
        "",
    )
    tried = {name: [] for name in GUARANTEES} | {}
    for part in run.parts:
        for name, sentence in part.promises:
            tried.setdefault(name, []).append(plain(sentence))
    for name in GUARANTEES:
        left = [heading for heading, text in sections(name) if not any(one in plain(text) for one in tried[name])]
        yield f"- [{name}]({name}): {', '.join(f'*{plain(heading)}*' for heading in left) or 'none'}"


def _name(store: str) -> str:
    return {"sqlite": "SQLite", "dynamodb": "DynamoDB (dynoxide)"}[store]


def _range(seeds: Sequence[int]) -> str:
    return "–" if not seeds else f"{min(seeds)}" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"
