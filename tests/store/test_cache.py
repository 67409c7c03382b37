"""Bounded cache: eviction by weight and by number, expiry, and the usage of all caches by name."""

import pytest

from store import cache as caches
from store.cache import BoundedCache, ExpiringCache, SieveCache, cache_usage


def lengths(max_weight: int, **options: int) -> BoundedCache[str, str]:
    return BoundedCache("test", max_weight, weigh=lambda key, value: len(value), **options)


def test_the_least_recently_used_entries_are_dropped_first_and_one_above_the_limit_is_not_cached() -> None:
    cache = lengths(3)
    for key in "abc":
        cache.put(key, key)
    assert cache.get("a") == "a"
    for key, value, kept in (("d", "d", "acd"), ("two", "tt", ["d", "two"]), ("four", "ffff", ["d", "two"])):
        cache.put(key, value)
        assert [key for key in (*"abcd", "two", "four") if key in cache] == list(kept)


def test_a_value_that_is_replaced_is_weighed_once() -> None:
    cache = lengths(5)
    for value in ("aaa", "bb", "aaaa"):
        cache.put("key", value)
        assert (cache.get("key"), cache.size_bytes) == (value, len(value))
    cache.put("key", "a" * 6)
    assert (cache.get("key"), cache.size_bytes) == (None, 0)
    assert len(cache) == 0


def test_entries_that_are_used_again_stay_however_many_others_come_once() -> None:
    evicted: list[str] = []
    cache: SieveCache[str, str] = SieveCache("test", 4, evicted=lambda key, value: evicted.append(key))
    for key in "abcd":
        cache.put(key, key)
    for key in "abca":
        cache.get(key)
    cache.drop("b")
    for number in range(100):
        cache.put(str(number), "once")
    assert evicted == ["d", *map(str, range(98))]
    assert [key for key in (*"abcd", "98", "99") if key in cache] == ["a", "c", "98", "99"]


def test_entries_that_are_not_used_any_more_give_way_to_those_that_are() -> None:
    cache: SieveCache[str, str] = SieveCache("test", 4)
    for keys in ("abcd", "efgh", "ijkl"):
        for _ in range(8):
            for key in keys:
                if cache.get(key) is None:
                    cache.put(key, key)
        assert [key for key in keys if key in cache] == list(keys)


@pytest.mark.parametrize("options", [{"max_weight": 0}, {"max_weight": 10, "max_entries": 0}])
def test_a_limit_of_0_turns_the_cache_off(options: dict[str, int]) -> None:
    cache = lengths(**options)
    cache.put("a", "a")
    assert len(cache) == 0


def test_none_is_cached_and_weighed_like_any_value() -> None:
    cache: BoundedCache[str, None] = BoundedCache("test", 2)
    for key in "abc":
        cache.put(key, None)
    assert [key in cache for key in "abc"] == [False, True, True]
    cache.drop("b")
    assert cache.size_bytes == 1


def test_values_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(caches.time, "monotonic", lambda: now[0])
    cache: ExpiringCache[str, str] = ExpiringCache("test", 10, 5.0, entry_bytes=1)
    cache.put("a", "A")
    for now[0], expected in ((104.0, "A"), (105.0, None)):
        assert cache.get("a") == expected


def test_usage_is_the_sum_of_all_caches_of_a_name() -> None:
    first, second = (BoundedCache[str, str]("test_usage", 10, bytes_each=100) for _ in range(2))
    first.put("a", "A")
    second.put("a", "A")
    first.get("a")
    first.put("b", "B")
    first.get("b")
    assert cache_usage()["test_usage"] == (300, 2)
    del second
    assert cache_usage()["test_usage"] == (200, 2)
