"""`clade key`: API keys and their grants."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Annotated

import typer
from msgspec.structs import replace

from commands.common import StoreUrl, hierarchy_named, store_url, with_store
from commands.interrupt import interruptible
from commands.output import AsJson, print_json, print_table, say
from resolvers.access.grants import Grants
from store.api_keys import ApiKey, add_key, find_keys, new_key, revoke_key
from store.connect import opened
from store.engine import ReadUsage, Store
from store.errors import BadInput, rfc3339, shorten
from store.model.keys import node_key
from store.model.paths import format_path

MAX_NAME_CHARACTERS = 128

_DURATION = re.compile(r"(\d{1,5})([hd])")

app = typer.Typer(help="Create, list and revoke API keys.", no_args_is_help=True)


@app.command()
def create(
    grant: Annotated[
        list[str],
        typer.Option(help="Grant, such as read:location or write:location/US/NE; repeatable.", metavar="GRANT"),
    ],
    expires: Annotated[
        str | None, typer.Option(help="Lifetime such as 12h or 90d, or last day such as 2027-01-31.", metavar="TIME")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the holder, such as shop; changedBy shows it.")] = None,
    as_json: AsJson = False,
    store: StoreUrl = None,
) -> None:
    """Create an API key and print it.

    It is printed only once: the store has a hash of it. A grant on a path is for that node and its descendants, also
    if it is created later. A write grant includes reading.

    Example: clade key create --name shop --grant read:location --grant write:location/US/NE --expires 90d
    """
    grants = Grants.parse(grant)
    for hierarchy in sorted(grants.read):
        hierarchy_named(hierarchy)  # raises where it is not served
    if name is not None and (not 0 < len(name) <= MAX_NAME_CHARACTERS or not name.isprintable()):
        raise BadInput(f"Invalid name; use 1 to {MAX_NAME_CHARACTERS} printable characters.")
    key, text = new_key(name or "", grant, None)
    granted = sorted((name, path) for name, paths in grants.read.items() for path in paths if path)

    async def work(store: Store) -> list[str]:
        nonlocal key
        nodes = await store.get([node_key(*place) for place in granted], ReadUsage(), strong=True)
        key = replace(key, until=None if expires is None else until(expires, store.now()))
        await add_key(store, key)
        return [f"{name}/{format_path(path)}" for (name, path), node in zip(granted, nodes, strict=True) if not node]

    with interruptible(lambda: f"If clade key list has the key {key.id}, revoke it, and create another one."):
        empty = with_store(opened(store_url(store)), work)
    if as_json:
        return print_json({"key": text, **_described(key), "pathsWithoutNodes": empty})
    say(text)
    say(f"Created key {key.id}. It is not shown again; clade key revoke {key.id} revokes it.", err=True)
    for place in empty:
        say(f"There is no node at {place}: create it, or create a key with another path.", err=True)


@app.command("list")
def list_keys(as_json: AsJson = False, store: StoreUrl = None) -> None:
    """List all API keys without their secrets.

    Example: clade key list
    """

    async def find(store: Store) -> tuple[float, list[ApiKey]]:
        return store.now(), [*await find_keys(store, ReadUsage())]

    now, keys = with_store(opened(store_url(store)), find)
    if as_json:
        return print_json([{**_described(key), **_times(key, now)} for key in keys])
    rows = [(key.id, key.name, key.grants, key.created_at[:10], _state(key, now)) for key in keys]
    print_table(("id", "name", "grants", "created", "state"), rows)


@app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the key, as in clade key list.")],
    as_json: AsJson = False,
    store: StoreUrl = None,
) -> None:
    """Revoke an API key permanently.

    Running servers may accept it for a few more seconds.

    Example: clade key revoke 3f9a11c08a5be2d7
    """
    with interruptible(lambda: "Run the same command again."):
        key = with_store(opened(store_url(store)), lambda store: revoke_key(store, key_id))
    if as_json:
        return print_json({**_described(key), "wasRevoked": key.revoked_at is not None})
    say(f"Revoked key {key.id}." if key.revoked_at is None else f"Key {key.id} was already revoked.")


def until(text: str, now: float) -> int:
    """The expiry of a lifetime (`12h`, `90d`) from now on, or at the end of a day in UTC, in Unix seconds.

    Raises BadInput.
    """
    if (duration := _DURATION.fullmatch(text)) is not None:
        if not int(duration[1]):
            raise BadInput(f"The lifetime {text} is zero; use a longer one.")
        return int(now) + int(duration[1]) * (3_600 if duration[2] == "h" else 86_400)
    try:
        end = datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC) + timedelta(days=1)
    except (ValueError, OverflowError):
        way_out = "use 12h, 90d (at most 99999), or a date such as 2027-01-31."
        raise BadInput(f'Invalid time "{shorten(text)}"; {way_out}') from None
    if end.timestamp() <= now:
        raise BadInput(f"{text} is in the past; use a later date.")
    return int(end.timestamp())


def _described(key: ApiKey) -> dict[str, object]:
    """A key in JSON, without its secret; the end of its lifetime is null where it has none."""
    expires = None if key.until is None else rfc3339(key.until)
    return {"id": key.id, "name": key.name, "grants": [*key.grants], "expiresAt": expires}


def _times(key: ApiKey, now: float) -> dict[str, object]:
    state = "REVOKED" if key.revoked_at else "EXPIRED" if key.until is not None and key.until <= now else "ACTIVE"
    return {"createdAt": key.created_at, "revokedAt": key.revoked_at, "state": state}


def _state(key: ApiKey, now: float) -> str:
    if key.revoked_at is not None:
        return f"revoked {key.revoked_at[:10]}"
    if key.until is None:
        return "never expires"
    end = datetime.fromtimestamp(key.until, UTC).strftime("%Y-%m-%d %H:%M")
    return f"until {end}" if now < key.until else f"expired {end}"
