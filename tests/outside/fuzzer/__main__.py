"""Runner that goes on after failures and lists each kind once: `python -m tests.outside.fuzzer --minutes 5`."""

import argparse
import sys
import time

from tests.outside.fuzzer.client import Document
from tests.outside.fuzzer.compare import Difference
from tests.outside.fuzzer.fuzzing import fuzz
from tests.outside.fuzzer.session import Session
from tests.outside.processes import place


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.outside.fuzzer", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--store", choices=("sqlite", "dynamodb"), default="sqlite")
    parser.add_argument("--seed", type=int, default=0, help="even: the hierarchy of extremes; odd: the built-in ones")
    options = parser.parse_args()
    known: set[str] = set()

    def report(session: Session, document: Document, found: Difference) -> None:
        if found.sign not in known:
            known.add(found.sign)
            print(
                f"\nafter {sum(v for k, v in session.counts.items() if k.startswith('documents '))} documents",
                flush=True,
            )
            print(session.wrong(document, found), flush=True)

    with place(options.store) as found:
        counts = fuzz(found, options.seed, time.monotonic() + options.minutes * 60, report, known=known)
    for what, count in sorted(counts.items()):
        print(f"{count:10,} {what}")
    return 1 if known else 0


if __name__ == "__main__":
    sys.exit(main())
