"""Every verb of a store, on both stores."""

from store.items import Put, key_of
from store.keys import Key
from store.reads import Reads
from store.stores import Store


async def test_what_was_put_can_be_got(store: Store) -> None:
    item = {"pk": "t#A", "sk": "#x#", "n": 1}
    await store.commit([Put(item)])
    assert await store.get([Key("t#A", "#y#"), key_of(item)], Reads()) == [None, item]
