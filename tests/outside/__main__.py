"""Runner of the suite: `python -m tests.outside --minutes 60 --store sqlite`."""

import argparse
import random
import sys
import time
from pathlib import Path

from tests.outside.failures import Wrong
from tests.outside.parts import all_parts
from tests.outside.processes import place
from tests.outside.proven import Run, commit

TURN_SECONDS = 120.0
TURN_DOCUMENTS = 1000


def main() -> int:
    """Run parts in turns until the time is over; 1 if a promise was broken."""
    names = [part.name for part in all_parts()]
    parser = argparse.ArgumentParser(prog="python -m tests.outside", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="for how long, over all parts")
    parser.add_argument("--store", choices=("sqlite", "dynamodb"), default="sqlite")
    parser.add_argument("--seed", type=int, default=None, help="of the first turn; a new one by default")
    parser.add_argument("--part", choices=_choices(names), action="append", help="only this one; may be repeated")
    parser.add_argument("--documents", type=int, default=0, help="of the fuzzer at least, in turns of 1000")
    parser.add_argument("--save", type=Path, metavar="FILE", help="for docs/proven.md, if nothing is wrong")
    options = parser.parse_args()

    chosen = [
        part for part in all_parts() if not options.part or {part.name, part.name.split("/")[0]} & {*options.part}
    ]
    seed = random.SystemRandom().randrange(2**31) if options.seed is None else options.seed
    end = time.monotonic() + options.minutes * 60
    done = Run(commits=[commit()] if options.save else [])  # before all else: a page without it is of no use
    turn = 0
    least = {"least": TURN_DOCUMENTS} if options.documents else {}
    while turn == 0 or time.monotonic() < end or turn * TURN_DOCUMENTS < options.documents:
        left = max(end - time.monotonic(), 0)
        for part in chosen:
            began = time.monotonic()
            print(f"{part.name} on {options.store}, seed {seed + turn}", flush=True)
            try:
                with place(options.store) as found:
                    until = began + min(left / len(chosen), TURN_SECONDS)
                    counts = part.run(found, seed + turn, until, **(least if part.name == "fuzzer" else {}))
            except Wrong as wrong:
                print(f"\n{part.name} --store {options.store} --seed {seed + turn}\n{wrong}", file=sys.stderr)
                return 1
            done.add(part.name, options.store, seed + turn, time.monotonic() - began, counts)
        turn += 1
    if options.save:
        done.save(options.save)
    for name, stores in done.counts.items():
        for what, count in sorted(stores[options.store].items()):
            print(f"{count:10,} {name}: {what}")
    return 0


def _choices(names: list[str]) -> list[str]:
    """Names of parts, and of groups of them: `faults` are all that begin with `faults/`."""
    return sorted({*names, *(name.split("/")[0] for name in names)})


if __name__ == "__main__":
    sys.exit(main())
