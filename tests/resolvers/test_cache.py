"""Tree version cache: which version is the latest, for how long it is fresh, and that none validates beside a move."""

from resolvers.session.cache import TreeVersionCache
from store.metadata.tree_version import ActiveMoveRef, TreeVersion
from store.model.keys import Key

TREE = "location#US"
OLD, NEW = TreeVersion(TREE, 7), TreeVersion(TREE, 8)


def test_there_is_no_validator_while_a_move_runs():
    move = ActiveMoveRef("m", Key(TREE, "#A#"), None)
    versions, moving = TreeVersionCache(0.0, clock=lambda: 100.0), TreeVersion(TREE, 7, moves=(move,))
    versions.see(moving, 100.0)
    assert versions.validator(moving, 200.0) is None
    for overlapping in ("#", "#A#", "#A#b#"):
        assert versions.validator(moving, 200.0, Key(TREE, overlapping)) is None
    assert versions.validator(moving, 200.0, Key(TREE, "#B#")) is not None  # elsewhere
    versions.see(NEW, 101.0)
    assert versions.validator(NEW, 200.0) is not None


def test_of_two_concurrent_reads_the_older_version_is_not_taken_back():
    versions = TreeVersionCache(0.0, clock=lambda: 103.0)
    versions.see(NEW, 101.0)
    versions.see(OLD, 102.0)  # began before the other ended, and may have been answered before the write
    assert versions.latest(TREE) == NEW
    versions.see(OLD, 104.0)  # the table was restored
    assert versions.latest(TREE) == OLD


def test_a_version_is_fresh_for_the_allowed_time_after_its_read_began():
    now = 100.5
    versions, never = (TreeVersionCache(2.0, seconds, clock=lambda: now) for seconds in (1.0, 0.0))
    assert versions.fresh(TREE) is None
    for cache in (versions, never):
        cache.see(OLD, 100.0)
    assert (versions.fresh(TREE), never.fresh(TREE)) == (OLD, None)
    now = 101.1
    assert versions.fresh(TREE) is None
    versions.see(OLD, 101.0)
    assert versions.fresh(TREE) == OLD
