"""Run of the fuzzer: data sets in turns, documents until the time is over, failures shrunk."""

import random
import time
from collections import Counter
from collections.abc import Callable

from tests.outside.fuzzer import broken, data, payloads, searches
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
    random_ = random.Random(seed)
    maker = Maker(random_, session.snapshot, session.cursors)
    made = 0

    def tell(document: Document, found: Difference, *, small: bool = False) -> None:
        if found.sign not in (known or ()):
            report(session, document, found) if small else _handle(session, document, found, report)

    try:
        for failure in searches.check(session):
            tell(*failure, small=True)
        while made < least or time.monotonic() < until:
            made += 1
            failed = _one(session, maker, random_)
            if failed:
                tell(*failed)
        for number in range(least // 3):
            failed = payloads.check(session, random_, maker, number)
            if failed:
                tell(*failed, small=True)
    finally:
        session.close()
    session.counts["documents"] = made
    session.counts["questions and answers"] = session.client.requests
    return session.counts


def _one(session: Session, maker: Maker, random_: random.Random) -> tuple[Document, Difference] | None:
    """One document: mostly a valid one, sometimes a broken one or one beyond a limit."""
    roll = random_.random()
    if roll < 0.02:
        return session.check_limit(broken.beyond(random_))
    document = maker.make()
    return session.check(broken.break_one(random_, document) if roll < 0.15 else document, is_broken=roll < 0.15)


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
