"""API keys: what is kept of them, who they let in, and for how long."""

import time

import pytest

from resolvers.access.api_key_auth import ApiKeyAuthenticator
from resolvers.access.grants import Visibility
from store.api_keys import add_key, all_keys, find_key, made, parts_of, revoke_key
from store.connect import open_store
from store.engine.protocol import Store
from store.engine.usage import ReadUsage
from store.errors import NotFound, Unavailable


async def given_out(store, *grants, name="shop", until=None):
    key, text = made(name, grants, until)
    await add_key(store, key)
    return key, text


async def test_a_key_lets_its_holder_in_with_its_grants(store: Store):
    key, text = await given_out(store, "write:location/US/NE", "read:category")
    holder = await ApiKeyAuthenticator(store).caller(text)
    assert (holder.id, holder.name) == (f"key:{key.id}", "shop")
    assert holder.reads.visibility("category", ("Books",)) is Visibility.FULL
    assert holder.writes.may_write("location", ("US", "NE", "Omaha"))
    assert not holder.writes.may_write("category", ("Books",))


async def test_nothing_that_is_kept_holds_the_secret(store: Store):
    _, text = await given_out(store, "read:location")
    _, secret = parts_of(text)
    items = [item async for page in store.scan(ReadUsage()) for item in page]
    assert items
    assert secret not in repr(items)


async def test_a_key_without_a_name_goes_by_its_id(store: Store):
    key, text = await given_out(store, "read:location", name="")
    assert (await ApiKeyAuthenticator(store).caller(text)).name == key.id


async def test_another_secret_or_another_id_lets_nobody_in(store: Store):
    (key, text), (_, other_text) = [await given_out(store, "read:location") for _ in range(2)]
    keyring = ApiKeyAuthenticator(store)
    _, secret = parts_of(other_text)
    wrong = text[:-1] + ("A" if text[-1] != "A" else "B")
    for bad in (f"clade_{key.id}_{secret}", wrong, f"clade_{'0' * 16}_{secret}", text + "A", text[:-1], text.upper()):
        assert await keyring.caller(bad) is None
    assert await keyring.caller(text) is not None


async def test_a_text_that_can_be_no_key_costs_no_read_and_an_unknown_one_costs_one(store: Store):
    _, text = made("", ["read:location"], None)
    keyring = ApiKeyAuthenticator(store)
    for bad in ("clade_", "clade_x_y", f"clade_{'0' * 16}_short", "clade_" + "0" * 10_000, text + "\n", text + "é"):
        assert await keyring.caller(bad) is None
    assert keyring.reads.requests == 0
    for _ in range(3):
        assert await keyring.caller(text) is None
    assert (keyring.reads.requests, keyring.reads.units) == (1, 0.5)


async def test_a_key_is_looked_up_once_in_a_while(store: Store):
    _, text = await given_out(store, "read:location")
    keyring = ApiKeyAuthenticator(store)
    assert [await keyring.caller(text) is not None for _ in range(3)] == [True] * 3
    assert keyring.reads.requests == 1


async def test_an_expired_key_lets_nobody_in_also_while_it_is_kept(store: Store, monkeypatch):
    now = time.time()
    _, text = await given_out(store, "read:location", until=int(now) + 5)
    keyring = ApiKeyAuthenticator(store)
    assert await keyring.caller(text) is not None
    monkeypatch.setattr(time, "time", lambda: now + 6)
    assert await keyring.caller(text) is None
    assert await ApiKeyAuthenticator(store).caller(text) is None


async def test_a_revoked_key_lets_nobody_in_once_it_is_looked_up_again(store: Store):
    key, text = await given_out(store, "read:location")
    seen, fresh = ApiKeyAuthenticator(store), ApiKeyAuthenticator(store, cache_seconds=0.0)
    assert await seen.caller(text) is not None
    assert await fresh.caller(text) is not None
    await revoke_key(store, key.id)
    assert await seen.caller(text) is not None  # for as long as it is kept
    assert await fresh.caller(text) is None
    assert (await revoke_key(store, key.id)).revoked_at is not None  # again changes nothing


async def test_what_is_not_there_cannot_be_revoked(store: Store):
    with pytest.raises(NotFound):
        await revoke_key(store, "0" * 16)


async def test_all_keys_are_listed_in_the_order_in_which_they_were_made(store: Store):
    keys = [(await given_out(store, "read:location", name=str(n)))[0] for n in range(3)]
    await revoke_key(store, keys[1].id)
    listed = await all_keys(store, ReadUsage())
    assert {key.id for key in listed} == {key.id for key in keys}
    assert [key.created_at for key in listed] == sorted(key.created_at for key in keys)
    assert [key.name for key in listed if key.revoked_at] == ["1"]


async def test_a_key_is_the_same_when_it_is_read_again(store: Store):
    key, _ = await given_out(store, "read:location", "write:category/A%2FB", until=2_000_000_000)
    found = await find_key(store, key.id, ReadUsage(), strong=True)
    assert (found.id, found.hash, list(found.grants), found.until) == (key.id, key.hash, list(key.grants), key.until)


async def test_nobody_is_let_in_while_the_store_is_away(tmp_path):
    async with open_store(f"sqlite:///{tmp_path / 'clade.db'}") as store:
        with pytest.raises(Unavailable):
            await ApiKeyAuthenticator(store).caller(made("", ["read:location"], None)[1])
