"""Chart of processor time by query and server, as SVG: python -m bench.plot RESULTS.json OUTPUT.svg."""

import math
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.measurement import cpu
from bench.queries import MENU, PLACES
from bench.report import Report, number
from bench.servers import DYNAMODB, HITS, IN_MEMORY, NO_CACHE, ON_DYNAMODB, POSTGRES, SQLITE, STATIC, STOCK

COLORS = {
    STATIC: "#9aa0a6", HITS: "#7fc8a9", SQLITE: "#1b7f5c", NO_CACHE: "#0b4634", IN_MEMORY: "#e39a3b",
    DYNAMODB: "#2f6fb0", ON_DYNAMODB: "#b4501f", POSTGRES: "#6a4c93", STOCK: "#c23b5a",
}  # fmt: skip
WIDTH, BAR, LABELS, FIGURES, TITLE, GAP = 900, 16, 220, 90, 26, 14
LEAST = 0.01  # milliseconds at the left edge


def draw(report: Report) -> str:
    """Bars on a logarithmic axis, since the longest is a thousand times the shortest."""
    bars = [(f"{one.name}, {one.what}", dict(_times(report, one.name))) for one in (*PLACES, MENU)]
    bars = [(title, times) for title, times in bars if times]
    most = max(time for _, times in bars for time in times.values())
    height = sum(TITLE + BAR * len(times) + GAP for _, times in bars) + 2 * TITLE
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        f'font-size="12"><rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        '<text x="10" y="18" font-size="15">Milliseconds of processor time a request, on a logarithmic axis</text>',
    ]
    y = TITLE + 10
    for title, times in bars:
        lines.append(f'<text x="10" y="{y + 14}" font-weight="bold">{title}</text>')
        y += TITLE - 4
        for server, time in times.items():
            lines += _bar(server, time, y, most)
            y += BAR
        y += GAP
    return "\n".join([*lines, "</svg>", ""])


def _times(report: Report, query: str) -> Iterator[tuple[str, float]]:
    for server in COLORS:
        found = cpu(report.results, server, query)
        if found:
            yield server, found.cpu + (found.cpu_behind or 0)


def _bar(server: str, time: float, y: int, most: float) -> list[str]:
    share = math.log(max(time, LEAST * 1.1) / LEAST) / math.log(most / LEAST)
    width = share * (WIDTH - LABELS - FIGURES)
    return [
        f'<text x="{LABELS - 8}" y="{y + 12}" text-anchor="end">{server}</text>',
        f'<rect x="{LABELS}" y="{y + 2}" width="{width:.1f}" height="{BAR - 4}" fill="{COLORS[server]}"/>',
        f'<text x="{LABELS + width + 6:.1f}" y="{y + 12}">{number(time)}</text>',
    ]


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(draw(Report.read(Path(sys.argv[1]))), "utf-8")
