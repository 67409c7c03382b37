"""`clade table`: make the table, look at it, bring it to the layout of this version, tell which rights it takes."""

import asyncio
import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from graph.settings import Settings
from store.connect import open_store
from store.dynamodb.iam_policy import Use, policy
from store.engine.table_options import Capacity, TableOptions
from store.errors import BadInput
from store.metadata.schema_version import LAYOUT
from store.model.attributes import Value
from store.store_url import DynamoDBUrl, parse_store_url

app = typer.Typer(help="Make the table that CLADE_STORE names, or look at it.", no_args_is_help=True)

StoreUrl = Annotated[str | None, typer.Option("--store", help="Another store than CLADE_STORE names.", metavar="URL")]
Recovery = Annotated[
    bool | None, typer.Option("--recovery/--no-recovery", help="Point-in-time recovery; on in AWS.", show_default=False)
]
Protection = Annotated[
    bool | None, typer.Option("--protection/--no-protection", help="Against deletion; on in AWS.", show_default=False)
]
Units = Annotated[str | None, typer.Option(help="Provisioned, as READ:WRITE a second; else on demand.")]
IndexUnits = Annotated[str | None, typer.Option(help="Those of each index, where not those of the table.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="NAME=VALUE; repeat it.")]
Key = Annotated[str | None, typer.Option(help="A KMS key's ARN or alias; else one of DynamoDB's own.")]
For = Annotated[Use, typer.Option("--for", help="What is to be allowed.")]
Account = Annotated[str | None, typer.Option(help="The number of the AWS account; else any.")]


@app.command()
def create(
    store: StoreUrl = None,
    recovery: Recovery = None,
    protection: Protection = None,
    units: Units = None,
    index_units: IndexUnits = None,
    tags: Tags = None,
    kms_key: Key = None,
) -> None:
    """Make the table with its indexes, and wait until it can be used.

    A table that exists stays as it is, but --recovery turns recovery on. In AWS recovery and protection are on unless
    these options say otherwise; on an engine that the address names by its endpoint they are off.

    Example: CLADE_STORE="dynamodb://clade?region=eu-west-1" clade table create --tag team=maps
    """
    url = store or Settings().store
    options = TableOptions(
        recovery, protection, _capacity(units), _capacity(index_units), dict(map(_tag, tags or [])), kms_key
    )
    made = asyncio.run(_create(url, options))
    print(f"{url}: the table is made.{_without(url, options)}" if made else f"{url}: the table exists.")


@app.command()
def describe(store: StoreUrl = None) -> None:
    """Show what there is: layout, status, items, size, indexes, capacity, recovery, protection, tags.

    Example: clade table describe
    """
    description = asyncio.run(_describe(store or Settings().store))
    table = Table("", "", show_header=False)
    for name, value in description.items():
        table.add_row(name, ", ".join(map(str, value)) if isinstance(value, list) else str(value))
    Console(markup=False, emoji=False).print(table)


@app.command()
def migrate(store: StoreUrl = None) -> None:
    """Bring a table that an older Clade made to the layout of this one; harmless where it has it.

    Example: clade table migrate
    """
    url = store or Settings().store
    found = asyncio.run(_migrate(url))
    print(f"{url}: layout {LAYOUT}{'' if found == LAYOUT else f', which was {found}'}.")


@app.command("policy")
def print_policy(use: For = Use.READING, account: Account = None, store: StoreUrl = None) -> None:
    """Print the least rights, as a policy of AWS IAM, for a server that reads, one that writes, or all commands.

    Example: clade table policy --for writing --account 123456789012
    """
    url = store or Settings().store
    named = parse_store_url(url)
    if not isinstance(named, DynamoDBUrl):
        raise BadInput(f'"{url}" is no table of DynamoDB, so it needs no policy; name one with --store.')
    print(json.dumps(policy(use, named.table, region=named.region, account=account), indent=2))


def _without(url: str, options: TableOptions) -> str:
    """A sentence of what a new table has not, since it is at an endpoint and nobody said what it shall have."""
    asked = {"recovery": options.recovery, "protection": options.protection}
    left = [name for name, wish in asked.items() if wish is None]
    named = parse_store_url(url)
    if not left or not isinstance(named, DynamoDBUrl) or named.endpoint is None:
        return ""
    return f" At an endpoint it is without {' and '.join(left)} unless one asks for --{' --'.join(left)}."


def _tag(text: str) -> tuple[str, str]:
    name, divider, value = text.partition("=")
    if not name or not divider:
        raise BadInput(f'"{text}" is no tag; write --tag team=maps.')
    return name, value


def _capacity(text: str | None) -> Capacity | None:
    if text is None:
        return None
    match text.split(":"):
        case [read, write] if read.isdecimal() and write.isdecimal():
            return Capacity(int(read), int(write))
        case _:
            raise BadInput(f'"{text}" are no units; write READ:WRITE, such as 50:10.')


async def _create(url: str, options: TableOptions) -> bool:
    async with open_store(url) as store:
        return await store.create(options)


async def _describe(url: str) -> dict[str, Value]:
    async with open_store(url) as store:
        return await store.describe()


async def _migrate(url: str) -> object:
    async with open_store(url) as store:
        return await store.migrate()
