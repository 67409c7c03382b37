"""`clade key`: API keys, and what each may read and write."""

import asyncio
import re
import time
from datetime import UTC, date, datetime, timedelta
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from commands.table import StoreUrl
from graph.hierarchies.registry import hierarchies
from graph.settings import Settings
from resolvers.access.grants import Grants
from store.api_keys import (
    ApiKey,
    add_key,
    find_keys,
    new_key,
    revoke_key,
)
from store.connect import opened
from store.engine.usage import ReadUsage
from store.errors import BadInput
from store.text import shorten

MAX_NAME_CHARACTERS = 128

_SPAN = re.compile(r"(\d{1,5})([hd])")

app = typer.Typer(help="Give out API keys, list them, and take them back.", no_args_is_help=True)


@app.command()
def create(
    grant: Annotated[
        list[str],
        typer.Option(help="What it allows: read:HIERARCHY or write:HIERARCHY/PATH; may be repeated.", metavar="GRANT"),
    ],
    expires: Annotated[
        str | None, typer.Option(help="How long it holds: 12h, 90d, or a date such as 2027-01-31.", metavar="TIME")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Whose it is; changes are told under this name.")] = None,
    store: StoreUrl = None,
) -> None:
    """Make a key and print it. It is shown this once: only a hash of it is kept.

    A grant on a path is for the node there and all below it. What may be written may be read.

    Example: clade key create --name shop --grant read:location --grant write:location/US/NE --expires 90d
    """
    _check(grant)
    key, text = new_key(_checked_name(name), grant, None if expires is None else until(expires))
    asyncio.run(_add(store or Settings().store, key))
    typer.echo(text)
    typer.echo(f"This is the key {key.id}. It is not shown again; clade key revoke {key.id} takes it back.", err=True)


@app.command("list")
def list_keys(store: StoreUrl = None) -> None:
    """Show all keys that were given out, without their secrets.

    Example: clade key list
    """
    table = Table()
    for heading in ("id", "name", "grants", "created", "state"):
        table.add_column(heading, overflow="fold")  # whoever looks for what a key may do must see the whole of it
    for key in asyncio.run(_all(store or Settings().store)):
        table.add_row(key.id, key.name, "\n".join(key.grants), key.created_at[:10], _state(key, time.time()))
    Console(markup=False, emoji=False).print(table)


@app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The key's id, as clade key list shows it.")],
    store: StoreUrl = None,
) -> None:
    """Take a key back for ever; servers that have seen it take it for some seconds more.

    Example: clade key revoke 3f9a11c08a5be2d7
    """
    key = asyncio.run(_revoke(store or Settings().store, key_id))
    typer.echo(f"The key {key.id} is revoked." if key.revoked_at is None else f"The key {key.id} was revoked before.")


async def _add(url: str, key: ApiKey) -> None:
    async with opened(url) as store:
        await add_key(store, key)


async def _all(url: str) -> list[ApiKey]:
    async with opened(url) as store:
        return await find_keys(store, ReadUsage())


async def _revoke(url: str, key_id: str) -> ApiKey:
    async with opened(url) as store:
        return await revoke_key(store, key_id)


def _check(grants: list[str]) -> None:
    """Raise BadInput for a grant that cannot be read, or is of a hierarchy that is not served."""
    parsed, known = Grants.parse(grants), hierarchies()
    if unknown := parsed.read.keys() - known.keys():
        raise BadInput(f"There is no hierarchy {', '.join(sorted(unknown))}; there are {', '.join(known)}.")


def _checked_name(name: str | None) -> str:
    if name is not None and (not 0 < len(name) <= MAX_NAME_CHARACTERS or not name.isprintable()):
        raise BadInput(f"A key's name has 1 to {MAX_NAME_CHARACTERS} characters that can be printed.")
    return name or ""


def until(text: str) -> int:
    """When a time from now or at the end of a day in UTC is, in seconds since 1970. Raises BadInput."""
    if (span := _SPAN.fullmatch(text)) is not None:
        if not int(span[1]):
            raise BadInput(f"{text} is over at once; a key that never holds is of no use.")
        return int(time.time()) + int(span[1]) * (3_600 if span[2] == "h" else 86_400)
    try:
        end = datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC) + timedelta(days=1)
    except (ValueError, OverflowError):
        raise BadInput(f'"{shorten(text)}" is no time; write 12h, 90d, or a date such as 2027-01-31.') from None
    if end.timestamp() <= time.time():
        raise BadInput(f"{text} is over; a key that never holds is of no use.")
    return int(end.timestamp())


def _state(key: ApiKey, now: float) -> str:
    if key.revoked_at is not None:
        return f"revoked {key.revoked_at[:10]}"
    if key.until is None:
        return "for ever"
    end = datetime.fromtimestamp(key.until, UTC).strftime("%Y-%m-%d %H:%M")
    return f"until {end}" if now < key.until else f"expired {end}"
