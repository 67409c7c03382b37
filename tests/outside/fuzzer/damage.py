"""Damage: attributes of stored nodes in another shape than Clade writes, or none, as a tool that knows no Clade leaves
them.
"""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import msgspec

from tests.engines import KEY_PAIR
from tests.outside.processes import Place

Damage = Mapping[str, tuple[str, Any]]  # an attribute of the item by the node's path, and its value; None for none


def write(place: Place, store: str, damage: Damage, hierarchy: str = "part") -> None:
    """Change the items of nodes, whose keys need no escapes; no server may run."""
    change = _change_row if place.kind == "sqlite" else _change_item
    for path, (name, value) in damage.items():
        root, *below = path.split("/")
        change(store, f"{hierarchy}#{root}", "#" + "".join(f"{key}#" for key in below), name, value)


def _change_row(store: str, pk: str, sk: str, name: str, value: Any) -> None:
    with closing(sqlite3.connect(store.removeprefix("sqlite:///"))) as connection, connection:
        where = (pk, sk)
        ((body,),) = connection.execute("SELECT body FROM items WHERE pk = ? AND sk = ?", where).fetchall()
        item = msgspec.msgpack.decode(body)
        held = item if name in item else item["#"]  # which has the attributes of the level
        held.pop(name, None)
        held |= {} if value is None else {name: value}
        connection.execute("UPDATE items SET body = ? WHERE pk = ? AND sk = ?", (msgspec.msgpack.encode(item), *where))


def _change_item(store: str, pk: str, sk: str, name: str, value: Any) -> None:
    address = urlsplit(store)
    options = {key: values[0] for key, values in parse_qs(address.query).items()}
    keys = {name.lower(): text for name, text in KEY_PAIR.items()}
    engine = boto3.resource("dynamodb", region_name=options["region"], endpoint_url=options["endpoint"], **keys)
    given = {"ExpressionAttributeValues": {":value": value}} if value is not None else {}
    engine.Table(address.netloc).update_item(
        Key={"pk": pk, "sk": sk},
        UpdateExpression="SET #name = :value" if given else "REMOVE #name",
        ConditionExpression="attribute_exists(pk)",
        ExpressionAttributeNames={"#name": name},
        **given,
    )
