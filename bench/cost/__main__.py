"""Search for the most expensive request that a server accepts by default: python -m bench.cost --help."""

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import orjson

from bench.cost.examples import examples
from bench.cost.generator import Generator
from bench.cost.measured import DEFAULT
from bench.cost.meter import CLIENT_SECONDS, Meter, Sent
from bench.cost.operation import Operation
from bench.cost.parser import parsed
from bench.cost.report import line, share, table, write
from bench.cost.search import Found, Search
from bench.cost.stage import filled, measuring
from graph.hierarchies.registry import served
from graph.operation.graphql_core import core_schema
from graph.schema import build_schema
from graph.settings import Settings
from tests import engines


async def measured(options: argparse.Namespace, folder: Path) -> list[Found]:
    """Send all requests; write those past a bound to files."""
    with contextlib.ExitStack() as running:
        engine = running.enter_context(engines.find()) if options.store == "dynamodb" else None
        store = await filled(folder, engine=engine)
        async with measuring(folder, store, options.client_seconds) as meter:
            return await _all(options, meter)


async def _all(options: argparse.Namespace, meter: Meter) -> list[Found]:
    """Send the examples first, then what the search makes of them."""
    found: list[Found] = []
    schema = core_schema(build_schema(served(Settings().hierarchies))[0])
    known = [operation for sent in examples().values() if (operation := parsed(schema, sent))]
    search = Search(Generator(schema, options.seed), known)

    async def measure(name: str, sent: Sent, operation: Operation | None, *, tells: bool) -> None:
        cost = Found(name, sent, await meter.measure(sent))
        found.append(cost)
        if operation is not None:
            search.learn(operation, cost.measured)
        if (over := DEFAULT.over(cost.measured)) and options.out:
            write(cost, Path(options.out))
        if over or tells:
            print(line(cost), flush=True)

    for name, sent in named(options).items():
        await measure(name, sent, parsed(schema, sent), tells=True)
    end = time.monotonic() + options.seconds
    for number, (operation, sent) in zip(count(1), search.proposals(), strict=False):
        if time.monotonic() > end:
            break
        await measure(f"made {options.seed}-{number}", sent, operation, tells=False)
    return found


def named(options: argparse.Namespace) -> dict[str, Sent]:
    """The examples, or the selected ones, or a file of an earlier run."""
    if options.replay:
        saved = orjson.loads(Path(options.replay).read_bytes())
        return {options.replay: Sent(saved.get("query", ""), saved["variables"], saved.get("documentId"))}
    return {name: sent for name, sent in examples().items() if options.only in name}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measured(options, Path(folder)))
    over = [one for one in found if DEFAULT.over(one.measured)]
    print(f"\n{len(found)} requests on {options.store}, {len(over)} past a bound\n\n{table(found)}")
    if over:
        print(f"\nThe most expensive took {max(share(one.measured) for one in over):.1f} times a bound.")
    return 1 if over else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.cost", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of the search after the examples; 60 if not given")
    parser.add_argument("--store", choices=("sqlite", "dynamodb"), default="sqlite", help="sqlite if not given")
    parser.add_argument("--seed", type=int, default=1, help="of what is made at random; 1 if not given")
    parser.add_argument("--only", metavar="TEXT", default="", help="examples with this in their names; else all")
    parser.add_argument("--replay", metavar="FILE", help="a request of an earlier run instead of the examples")
    parser.add_argument("--out", metavar="DIR", help="where requests past a bound are written; else nowhere")
    parser.add_argument(
        "--client-seconds", type=float, default=CLIENT_SECONDS, help="after which the server is killed; 30 if not given"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
