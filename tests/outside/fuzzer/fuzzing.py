"""Run of the fuzzer: documents over one data set until the time is over; a failure is shrunk."""

import random
import time
from collections import Counter

from tests.outside.failures import Wrong
from tests.outside.fuzzer import broken, data, payloads, searches
from tests.outside.fuzzer.client import Document
from tests.outside.fuzzer.compare import Difference
from tests.outside.fuzzer.documents import Maker
from tests.outside.fuzzer.session import Session
from tests.outside.fuzzer.shrink import shrink
from tests.outside.processes import Place

PAYLOADS = 50


def run(place: Place, seed: int, until: float, least: int = 50) -> Counter[str]:
    """At least some documents over one data set, chosen by the seed; raises Wrong at the first failure, shrunk."""
    session = Session(place, data.SETS[seed % len(data.SETS)]())
    random_ = random.Random(seed)
    maker = Maker(random_, session.snapshot, session.cursors)
    made = 0
    try:
        for document, found in searches.check(session) if not session.data.damage else ():
            raise session.wrong(document, found)
        while made < least or time.monotonic() < until:
            made += 1
            if failed := _one(session, maker, random_):
                raise _shrunk(session, *failed)
        for number in range(min(least // 3, PAYLOADS) if not session.data.computed else 0):
            if failed := payloads.check(session, random_, maker, number):
                raise session.wrong(*failed)
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


def _shrunk(session: Session, document: Document, found: Difference) -> Wrong:
    last = found

    def fails(smaller: Document) -> bool:
        nonlocal last
        again = session.check(smaller)
        if again and again[1].kind == found.kind and again[0] == smaller:
            last = again[1]
            return True
        return False

    small = shrink(document, fails, session.snapshot.schema)
    return session.wrong(small, last)
