"""API keys: storage, authentication, expiry and revocation."""

import time

import pytest

from resolvers.access.api_key_auth import ApiKeyAuthenticator
from resolvers.access.grants import Visibility
from store.api_keys import add_key, find_key, find_keys, new_key, parse_key, revoke_key
from store.connect import open_store
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import NotFound, Unavailable
from tests.rights.asking import caller_of


async def given_out(store, *grants, name="shop", until=None):
    key, text = new_key(name, grants, until)
    await add_key(store, key)
    return key, text


async def test_a_key_authenticates_its_caller_with_its_grants(store: Store):
    key, text = await given_out(store, "write:location/US/NE", "read:category")
    holder = await caller_of(ApiKeyAuthenticator(store), text)
    assert (holder.id, holder.name) == (f"key:{key.id}", "shop")
    assert holder.reads.visibility("category", ("Books",)) is Visibility.FULL
    assert holder.writes.may_write("location", ("US", "NE", "Omaha"))
    assert not holder.writes.may_write("category", ("Books",))


async def test_the_secret_is_not_stored(store: Store):
    _, text = await given_out(store, "read:location")
    _, secret = parse_key(text)
    items = [item async for page in store.scan(ReadUsage()) for item in page]
    assert items
    assert secret not in repr(items)


async def test_a_key_without_a_name_has_its_id_as_name(store: Store):
    key, text = await given_out(store, "read:location", name="")
    assert (await caller_of(ApiKeyAuthenticator(store), text)).name == key.id


async def test_a_wrong_secret_or_id_is_rejected(store: Store):
    (key, text), (_, other_text) = [await given_out(store, "read:location") for _ in range(2)]
    authenticator = ApiKeyAuthenticator(store)
    _, secret = parse_key(other_text)
    wrong = text[:-1] + ("A" if text[-1] != "A" else "B")
    for bad in (f"clade_{key.id}_{secret}", wrong, f"clade_{'0' * 16}_{secret}", text + "A", text[:-1], text.upper()):
        assert await caller_of(authenticator, bad) is None
    assert await caller_of(authenticator, text) is not None


async def test_a_text_that_is_not_an_api_key_costs_no_read_and_an_unknown_key_costs_one(store: Store):
    _, text = new_key("", ["read:location"], None)
    authenticator = ApiKeyAuthenticator(store)
    for bad in ("clade_", "clade_x_y", f"clade_{'0' * 16}_short", "clade_" + "0" * 10_000, text + "\n", text + "é"):
        assert await caller_of(authenticator, bad) is None
    assert authenticator.reads.requests == 0
    for _ in range(3):
        assert await caller_of(authenticator, text) is None
    assert (authenticator.reads.requests, authenticator.reads.units) == (1, 0.5)


async def test_a_lookup_of_a_key_is_cached(store: Store):
    _, text = await given_out(store, "read:location")
    authenticator = ApiKeyAuthenticator(store)
    assert [await caller_of(authenticator, text) is not None for _ in range(3)] == [True] * 3
    assert authenticator.reads.requests == 1


async def test_an_expired_key_is_rejected_while_it_is_cached(store: Store, monkeypatch):
    now = time.time()
    _, text = await given_out(store, "read:location", until=int(now) + 600)
    authenticator = ApiKeyAuthenticator(store)
    assert await caller_of(authenticator, text) is not None
    monkeypatch.setattr(time, "time", lambda: now + 601)
    assert await caller_of(authenticator, text) is None
    assert await caller_of(ApiKeyAuthenticator(store), text) is None


async def test_a_revoked_key_is_rejected_at_its_next_lookup(store: Store):
    key, text = await given_out(store, "read:location")
    seen, fresh = [ApiKeyAuthenticator(store, cache_seconds=seconds) for seconds in (600.0, 0.0)]
    assert await caller_of(seen, text) is not None
    assert await caller_of(fresh, text) is not None
    await revoke_key(store, key.id)
    is_kept = await caller_of(seen, text) is not None
    assert is_kept == (store.version() is None)  # on SQLite a write is noticed
    assert await caller_of(fresh, text) is None
    assert (await revoke_key(store, key.id)).revoked_at is not None  # again changes nothing


async def test_an_unknown_key_cannot_be_revoked(store: Store):
    with pytest.raises(NotFound):
        await revoke_key(store, "0" * 16)


async def test_keys_are_listed_in_the_order_of_creation(store: Store):
    keys = [(await given_out(store, "read:location", name=str(n)))[0] for n in range(3)]
    await revoke_key(store, keys[1].id)
    listed = await find_keys(store, ReadUsage())
    assert {key.id for key in listed} == {key.id for key in keys}
    assert [key.created_at for key in listed] == sorted(key.created_at for key in keys)
    assert [key.name for key in listed if key.revoked_at] == ["1"]


async def test_a_key_is_equal_after_a_round_trip(store: Store):
    key, _ = await given_out(store, "read:location", "write:category/A%2FB", until=int(time.time()) + 600)
    found = await find_key(store, key.id, ReadUsage(), strong=True)
    assert (found.id, found.hash, list(found.grants), found.until) == (key.id, key.hash, list(key.grants), key.until)


async def test_keys_are_unavailable_while_the_store_is(tmp_path):
    async with open_store(f"sqlite:///{tmp_path / 'clade.db'}") as store:
        with pytest.raises(Unavailable):
            await caller_of(ApiKeyAuthenticator(store), new_key("", ["read:location"], None)[1])
