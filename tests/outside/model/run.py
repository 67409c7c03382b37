"""Runs of the model: random steps until the time is over; a wrong answer ends in the shortest script that shows it."""

import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.outside.failures import Wrong
from tests.outside.model import batches, codes, cursors, feeds, fields, operations, reads
from tests.outside.model.filled import fill
from tests.outside.model.races import race
from tests.outside.model.session import Session
from tests.outside.model.trees import LEVELS, Trees
from tests.outside.processes import Place

Step = dict[str, Any]
SHRINK_SECONDS = 90.0
MIN_RACE_SECONDS = 5.0
STEPS = 150
MANY_CODES = 40


def run(place: Place, seed: int, until: float, at_least: int = 6) -> Counter[str]:
    """Serial sessions on new stores until the time is over, the first with at least some steps; then a race."""
    counts: Counter[str] = Counter()
    turn = 0
    racing = (until - time.monotonic()) / 6
    while turn == 0 or time.monotonic() < until - racing - 8:
        session = Session(place, place.store if turn == 0 else place.new_store())
        try:
            one_session(session, random.Random(f"{seed} {turn}"), until - racing, at_least if turn == 0 else 0)
        except Wrong as wrong:
            session.close()
            raise shortest(place, session.steps, wrong) from None
        session.close()
        counts.update(session.counts)
        counts["sessions"] += 1
        turn += 1
    if racing > MIN_RACE_SECONDS:
        counts.update(race(place, seed, time.monotonic() + racing))
    return counts


def one_session(session: Session, chance: random.Random, until: float, at_least: int) -> None:
    """Some steps, each followed by reads; then one of each kind, and a look at everything."""
    if chance.random() < 0.6:
        make(session, {"do": "fill", "seed": chance.randrange(2**31)})
    of_deletions = chance.random() < 0.5
    for number in range(STEPS):
        if number >= at_least and time.monotonic() > until:
            break
        step = (
            batches.some_batch(chance, session.trees, number, session.ids)
            if chance.random() < 0.15
            else operations.some_step(chance, session.trees, number, session.steps, of_deletions=of_deletions)
        )
        gone = {**session.trees.deleted}
        make(session, step)
        if step["do"] in ("restore", "delete"):
            for read in followed(chance, session.trees, gone):
                make(session, {**read, "server": chance.randrange(2), "seed": chance.randrange(2**31)})
        if chance.random() < 0.3:
            make(session, {**some_coded(chance, session.trees), "server": chance.randrange(2), "seed": number})
        for _ in range(chance.choice((0, 1, 1, 2, 4))):
            dice = chance.random()
            if dice < 0.3:
                make(session, feeds.some_feed(chance, session.trees))
            elif dice < 0.5:
                make(session, cursors.some_cursors(chance, session.trees))
            else:
                make(session, {**reads.some_read(chance, session.trees, session.ids), "seed": chance.randrange(2**31)})
    for step in operations.each_kind(chance, session.trees, STEPS):
        make(session, step)
    for step in everything(session.trees):
        make(session, {**step, "server": chance.randrange(2), "seed": chance.randrange(2**31)})


def some_coded(chance: random.Random, trees: Trees) -> Step:
    """A look-up of some unique values at once."""
    read = {"do": "read", "read": "coded entities", "level": chance.choice(LEVELS)}
    pick = [{"field": name} for name in ("id", "path", "sku", "revision")]
    return {**read, "codes": codes.some_codes(chance, trees), "pick": pick}


def followed(chance: random.Random, trees: Trees, gone: dict[str, Any]) -> Iterator[Step]:
    """Reads of nodes that were deleted or restored just now, of a log, and of what stays deleted."""
    changed = [{**gone, **trees.deleted, **trees.nodes}[id] for id in sorted(gone.keys() ^ trees.deleted.keys())]
    others = chance.sample([*trees.deleted.values()], min(1, len(trees.deleted)))
    for node in (*chance.sample(changed, min(2, len(changed))), *others):
        yield {"do": "read", "read": "deleted", "id": {"of": node["step"]}, "pick": []}
        past = {"field": "history", "with": {}, "pick": [{"field": name} for name in fields.REVISION]}
        pick = [{"field": name} for name in ("path", "revision", "updatedAt", "descendantCount", "key", "name")]
        yield {"do": "read", "read": "id", "id": {"of": node["step"]}, "pick": [*pick, past]}
    here = [trees.path(node).split("/")[0] for node in changed if node["id"] in trees.nodes]
    if tree := next(iter(here or sorted(trees.logs)), None):
        yield {"do": "feed", "tree": tree}


def everything(trees: Trees) -> Iterator[Step]:
    """Reads of all nodes with what follows from others, of all former paths, deleted nodes and logs."""
    pick: list[Step] = [{"field": name} for name in (*fields.PLAIN, "childCount", "descendantCount")]
    pick.append({"field": "parent", "pick": [{"field": "path"}]})
    past = {"field": "history", "with": {}, "pick": [{"field": name} for name in fields.REVISION]}
    yield {"do": "read", "read": "roots", "kind": "roots", "with": {}, "pick": [*pick, past]}
    for root in trees.children(None):
        one = {"do": "read", "read": "list", "kind": "descendants", "path": trees.path(root), "with": {}}
        yield {**one, "pick": [*pick, past]}
    yield {"do": "read", "read": "old", "paths": sorted(trees.former) or ["nowhere"], "pick": pick}
    known = codes.all_codes(trees)
    for start in range(0, len(known), MANY_CODES):
        one = {"do": "read", "read": "coded entities", "codes": known[start : start + MANY_CODES], "level": "THING"}
        yield {**one, "pick": [{"field": name} for name in ("id", "path", "sku")]}
    for node in trees.deleted.values():
        yield {"do": "read", "read": "deleted", "id": {"of": node["step"]}, "pick": []}
    for tree in sorted(trees.logs):
        yield {"do": "feed", "tree": tree}


def make(session: Session, step: Step) -> None:
    """Make one step of any kind."""
    if step["do"] == "read":
        session.read(step)
    elif step["do"] in operations.ARGUMENTS:
        session.change(step)
    elif step["do"] == "batch":
        batches.make_batch(session, step)
    elif step["do"] == "fill":
        fill(session, step)
    elif step["do"] in ("window", "again"):
        cursors.make_cursors(session, step)
    else:
        feeds.make_feed(session, step)


def shortest(place: Place, steps: list[Step], wrong: Wrong) -> Wrong:
    """The failure of the shortest script that was found in some time: parts are left out while it still fails."""
    end = time.monotonic() + SHRINK_SECONDS
    best, last = steps, wrong
    reading = [step for step in steps[:-1] if step["do"] not in (*operations.ARGUMENTS, "batch")]
    without_reads = [step for step in steps if step is steps[-1] or step not in reading]
    servers, size = 1, max(len(steps) // 2, 1)
    tries = [steps, without_reads]
    while time.monotonic() < end and (tries or size):
        if not tries:
            # The last step is the one that fails.
            tries = [best[:start] + best[min(start + size, len(best) - 1) :] for start in range(0, len(best) - 1, size)]
            size //= 2
        attempt = tries.pop(0)
        failed = again(place, attempt, servers)
        if failed and failed.promise == wrong.promise:
            best, last = attempt, failed
            size = min(size or 1, len(best) // 2)
            tries = [without_reads] if attempt is steps and reading else []
        elif attempt is steps:
            servers = 2
    return last


def again(place: Place, steps: list[Step], servers: int) -> Wrong | None:
    """Whether these steps fail on a new store, and how."""
    session = Session(place, place.new_store(), servers)
    try:
        for step in steps:
            make(session, step)
    except Wrong as wrong:
        return wrong
    finally:
        session.close()
    return None
