"""Results as tables in Markdown."""

import math
import platform
import sysconfig
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.measurement import MAIN, Results, cpu, middle, ratio
from bench.queries import MENU, PLACES, Query
from bench.servers import DYNAMODB, HITS, IN_MEMORY, ON_DYNAMODB, SQLITE, STATIC, Server


@dataclass(frozen=True)
class Target:
    """A target: how many times less processor time than another server Clade should need for some queries."""

    what: str
    queries: Sequence[str]
    ours: str
    theirs: str
    target: float
    moonshot: float


TARGETS = (
    Target("nested and flat, SQLite, against Mercurius in memory", ("Q3", "Q4"), SQLITE, IN_MEMORY, 1.5, 4),
    Target("children, SQLite, against Mercurius in memory", ("Q2",), SQLITE, IN_MEMORY, 1 / 1.2, 1),
    Target("breadcrumb, SQLite, against Mercurius in memory", ("Q1",), SQLITE, IN_MEMORY, 1 / 3, 1 / 2),
    Target("nested and flat, DynamoDB, against Mercurius there", ("Q3", "Q4"), DYNAMODB, ON_DYNAMODB, 4, 10),
    Target("breadcrumb and children, DynamoDB, against the same", ("Q1", "Q2"), DYNAMODB, ON_DYNAMODB, 1, 2),
)
HITS_TARGET, HITS_MOONSHOT = 0.6, 0.85  # of the requests a second of static bytes


@dataclass(frozen=True)
class Report:
    """The results of one run of `python -m bench`."""

    data: str
    results: Results
    servers: Sequence[Server]

    def markdown(self) -> str:
        queries = [one for one in (*PLACES, MENU) if any(one.name == name for _, name, _ in self.results)]
        processes = [(server.name, server.process) for server in self.servers]
        rows = [[name, f"{one.peak_mb():.0f}", number(one.start_seconds)] for name, one in processes]
        ends = table(["server", "peak memory, MB", "from the command to the first response, s"], rows)
        parts = [f"## {self.data}", python_build(), *[self._table(query) for query in queries], self._targets(), ends]
        return "\n\n".join(part for part in parts if part)

    def _table(self, query: Query) -> str:
        counts = sorted({count for _, name, count in self.results if name == query.name})
        servers = dict.fromkeys(server for server, name, _ in self.results if name == query.name)
        head = ["server", "CPU ms a request"]
        for count in counts:
            head += [f"requests/s at {count}", "p50 ms", "p99 ms"]
        rows = []
        for server in servers:
            row = [server, self._cpu(server, query)]
            for count in counts:
                runs = self.results.get((server, query.name, count))
                found = middle(runs) if runs else None
                row += [number(found.requests_a_second), number(found.p50), number(found.p99)] if found else ["–"] * 3
            rows.append(row)
        return f"**{query.name}, {query.what}**\n\n{table(head, rows)}"

    def _cpu(self, server: str, query: Query) -> str:
        found = middle(cpu(self.results, server, query.name))
        return number(found.cpu) + (f" + {number(found.cpu_behind)} of PostgreSQL" if found.cpu_behind else "")

    def _targets(self) -> str:
        rows = []
        for target in TARGETS:
            runs = [[cpu(self.results, one, name) for one in (target.ours, target.theirs)] for name in target.queries]
            found = [ratio(*some) for some in runs]
            if not any(map(math.isnan, found)):
                limits = [f"{number(target.target)} ×", f"{number(target.moonshot)} ×"]
                rows.append([target.what, *limits, times(found), verdict(found, target.target, target.moonshot)])
        if hits := self._hits():
            limits = [f"{HITS_TARGET:.0%}", f"{HITS_MOONSHOT:.0%}"]
            shown = ", ".join(f"{one:.0%}" for one in hits)
            row = ["hits, requests/s against static bytes", *limits, shown, verdict(hits, HITS_TARGET, HITS_MOONSHOT)]
            rows.append(row)
        return table(["less CPU than", "target", "moonshot", "measured", ""], rows) if rows else ""

    def _hits(self) -> list[float]:
        found = []
        for query in (*PLACES, MENU):
            mine, floor = (self.results.get((name, query.name, MAIN)) for name in (HITS, STATIC))
            if mine and floor:
                found.append(middle(mine).requests_a_second / middle(floor).requests_a_second)
        return found


def python_build() -> str:
    """The Python of this process and of Clade's servers, with the options of its build that decide how fast it is."""
    given = str(sysconfig.get_config_var("CONFIG_ARGS"))
    options = [f"{'with' if one in given else 'without'} {one}" for one in ("--enable-optimizations", "--with-lto")]
    return f"Python {platform.python_version()}, configured {', '.join(options)}."


def verdict(found: Iterable[float], target: float, moonshot: float) -> str:
    least = min(found)
    return "moonshot" if least >= moonshot else "reached" if least >= target else "missed"


def times(found: Iterable[float]) -> str:
    return ", ".join(f"{number(one)} ×" for one in found)


def number(value: float) -> str:
    """With three significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
