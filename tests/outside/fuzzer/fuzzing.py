"""Run of the fuzzer: data sets in turns, documents until the time is over, failures shrunk."""

import random
import time
from collections import Counter
from collections.abc import Callable

from tests.outside.fuzzer import data
from tests.outside.fuzzer.client import Document
from tests.outside.fuzzer.compare import Difference
from tests.outside.fuzzer.documents import Maker
from tests.outside.fuzzer.session import Session
from tests.outside.fuzzer.shrink import shrink
from tests.outside.processes import Place

SETS = (data.extremes, data.builtin)
Report = Callable[[Session, Document, Difference], None]


def run(place: Place, seed: int, until: float) -> Counter[str]:
    """The part of the suite: one data set, chosen by the seed; raises Wrong at the first failure."""
    return fuzz(place, seed, until, _raise)


def _raise(session: Session, document: Document, found: Difference) -> None:
    raise session.wrong(document, found)


def fuzz(
    place: Place, seed: int, until: float, report: Report, least: int = 50, known: set[str] | None = None
) -> Counter[str]:
    """At least some documents; `report` is called with each failure, shrunk, but for those that are `known`."""
    session = Session(place, SETS[seed % len(SETS)](), report)
    maker = Maker(random.Random(seed), session.snapshot, session.cursors)
    made = 0
    try:
        while made < least or time.monotonic() < until:
            made += 1
            document = maker.make()
            failure = session.check(document)
            if failure and failure[1].sign not in (known or ()):
                _handle(session, *failure, report)
    finally:
        session.close()
    session.counts["documents"] = made
    session.counts["questions and answers"] = session.client.requests
    return session.counts


def _handle(session: Session, document: Document, found: Difference, report: Report) -> None:
    last = found

    def fails(smaller: Document) -> bool:
        nonlocal last
        again = session.check(smaller)
        if again and again[1].kind == found.kind and again[0] == smaller:
            last = again[1]
            return True
        return False

    small = shrink(document, fails, session.snapshot.schema)
    report(session, small, last)
