"""Tree version cache: which version is the latest, for how long it is fresh, and that moves leave it unproven."""

import pytest

from resolvers.session.tree_version_cache import TreeVersionCache
from store.metadata.tree_version import ActiveMoveRef, TreeVersion
from store.model.keys import Key

TREE = "location#US"
MOVE = ActiveMoveRef("m", Key(TREE, "#A#"), None)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def version(number: int, *moves: ActiveMoveRef) -> TreeVersion:
    return TreeVersion(TREE, number, moves=moves)


def test_nothing_is_proven_while_a_move_runs(clock):
    versions = TreeVersionCache(0.0, clock=clock)
    versions.see(version(7, MOVE), clock.now)
    assert versions.proof(version(7, MOVE), 200.0) is None


def test_of_two_reads_side_by_side_the_older_version_is_not_taken_back(clock):
    versions = TreeVersionCache(0.0, clock=clock)
    clock.now = 103.0
    versions.see(version(8), 101.0)
    versions.see(version(7), 102.0)  # began before the other ended, and may have been answered before the write
    assert versions.latest(TREE) == version(8)
    versions.see(version(7), 104.0)  # the table was restored
    assert versions.latest(TREE) == version(7)


def test_a_version_is_fresh_for_the_allowed_time_after_its_read_began(clock):
    versions = TreeVersionCache(2.0, 1.0, clock=clock)
    assert versions.fresh(TREE) is None
    clock.now = 100.5
    versions.see(version(7), 100.0)
    assert versions.fresh(TREE) == version(7)
    clock.now = 101.1
    assert versions.fresh(TREE) is None
    versions.see(version(7), 101.0)
    assert versions.fresh(TREE) == version(7)
    assert TreeVersionCache(2.0, clock=clock).fresh(TREE) is None
