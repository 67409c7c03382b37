"""docs/compare.md: its figures are those of docs/performance.md, its lines of code are counted."""

import re
from pathlib import Path

from tests.readme import DOCS, ROOT, section, table

PAGE = DOCS / "compare.md"
MEASURED = (DOCS / "performance.md").read_text("utf-8")
PEERS = ROOT / "bench" / "peers"
OWN = ["dynamodb.mjs", "resolvers.mjs", "mercurius.mjs", "schema.graphql"]
POSTGRAPHILE = [
    f"postgraphile/{name}" for name in ("schema.sql", "indexes.sql", "tags.sql", "preset.mjs", "server.mjs")
]
NO_CODE = re.compile(r"\s*($|//|#|--|\*|/\*)")


def lines_of_code(*files: Path) -> int:
    return sum(not NO_CODE.match(line) for file in files for line in file.read_text("utf-8").splitlines())


def rows(text: str) -> dict[str, list[str]]:
    return {name: cells for name, *cells in table(text)}


def columns(measured: dict[str, list[str]], name: str) -> list[list[str]]:
    """The figures of a row of calls, units and rounds, by query."""
    return [cell.split(", ") for cell in measured[name]]


def test_the_lines_of_code_are_counted():
    own = rows(section("Your own resolvers with DataLoader", PAGE))["lines of code"]
    assert own[0].startswith(f"{lines_of_code(*(PEERS / name for name in OWN))}, ")
    assert own[1].startswith(f"{lines_of_code(ROOT / 'graph' / 'hierarchies' / 'locations.py')}, ")
    (stated,) = re.findall(r"(\d+) lines\swithout its data", PAGE.read_text("utf-8"))
    assert int(stated) == lines_of_code(*(PEERS / name for name in POSTGRAPHILE))


def test_reads_and_times_of_own_resolvers_are_those_that_were_measured():
    part = section("DynamoDB, cold and warm", DOCS / "performance.md")
    cold, warm = (
        rows("| cold |\n| --- |\n" + part.partition(f"| {name} |")[2].partition("\n\n")[0]) for name in ("cold", "warm")
    )
    own = rows(section("Your own resolvers with DataLoader", PAGE))
    servers = ("other servers: calls, read units, rounds", "Clade: calls, read units, rounds")
    for title, place in (
        ("calls for a breadcrumb, children, nested, flat; each for the first time", 0),
        ("read units of these", 1),
    ):
        assert own[title] == [", ".join(figures[place] for figures in columns(cold, name)) for name in servers]
    assert {tuple(figures[:2]) for figures in columns(warm, servers[1])} == {("1", "1")}
    assert own["processor time of the first query, relative to Clade's"][0] == ", ".join(cold["Mercurius"])
    assert own["processor time of a repeated query, relative to Clade's"][0] == ", ".join(warm["Mercurius"])


def test_times_of_postgraphile_and_stock_strawberry_are_those_that_were_measured():
    queries = re.split(r"^\*\*Q\d, .*\*\*$", MEASURED, flags=re.MULTILINE)[1:5]
    measured = [rows(query) for query in queries]
    shown = rows(section("Hasura and PostGraphile", PAGE))
    for server in ("Clade, SQLite", "Clade, SQLite, no cache"):
        assert shown[server] == [query[server][0] for query in measured]
    postgraphile = [query["PostGraphile"][0].removesuffix(" of PostgreSQL") for query in measured]
    assert shown["PostGraphile 5, and PostgreSQL 15 beside it"] == postgraphile
    stock = [query["stock Strawberry"][0] for query in measured]
    assert f"took {', '.join(stock[:3])} and {stock[3]} ms" in PAGE.read_text("utf-8")
