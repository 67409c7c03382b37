"""Report: the most expensive requests as a Markdown table, and each one past a bound as a file to replay."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from bench.cost.measured import DEFAULT, Bounds, Measured
from bench.cost.meter import Sent
from bench.cost.search import Found

SHOWN = 10
HEADING = (
    "| request | CPU, ms | loop blocked, ms | memory, MB | stays, MB | answer, KB | reads | read units |",
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
)


def table(found: Sequence[Found], bounds: Bounds = DEFAULT) -> str:
    """The requests with the largest share of any bound, the largest first."""
    most = sorted(found, key=lambda one: -share(one.measured, bounds))[:SHOWN]
    return "\n".join([*HEADING, *[f"| {one.name} | {figures(one.measured)} |" for one in most]])


def share(measured: Measured, bounds: Bounds = DEFAULT) -> float:
    """The largest share of any bound."""
    return max(bounds.shares(measured).values())


def figures(measured: Measured) -> str:
    least = "≥ " if measured.ended else ""
    cells = [
        f"{least}{measured.cpu * 1000:,.0f}", f"{least}{measured.blocked * 1000:,.0f}", f"{measured.peak_mb:,.0f}",
        f"{measured.left_mb:,.0f}", f"{measured.answer_bytes / 1000:,.0f}", f"{measured.requests:,}",
        f"{measured.units:,.0f}",
    ]  # fmt: skip
    return " | ".join(cells)


def line(found: Found, bounds: Bounds = DEFAULT) -> str:
    """One request on one line, with the bounds that it exceeds."""
    measured, over = found.measured, ", ".join(bounds.over(found.measured))
    told = f"cpu {measured.cpu:6.3f} s, blocked {measured.blocked:6.3f} s, {measured.peak_mb:5.0f} MB"
    told += f" ({measured.left_mb:.0f} stay), {measured.answer_bytes / 1000:7.0f} KB, {measured.requests:5} reads"
    return f"{told}, {measured.units:6.0f} units, {measured.status}  {found.name}" + (f": {over}" if over else "")


def shown(sent: Sent) -> str:
    """A request for a message: long texts are shortened."""
    variables = {name: _short(value) for name, value in sent.variables.items()}
    return f"{_short(sent.query or sent.document_id, 2_000)} {variables}"


def _short(value: Any, limit: int = 60) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return ascii(text) if len(text) <= limit else f"{text[:limit]!a}… of {len(text):,} characters"


def write(found: Found, folder: Path) -> Path:
    """The body of a request as a file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / (re.sub(r"\W+", "-", found.name).strip("-") + ".json")
    file.write_bytes(found.sent.body())
    return file
