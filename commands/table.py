"""`clade table`: create and describe the table, and print its template and its IAM policy."""

import json
import re
from pathlib import Path
from typing import Annotated, Literal

import typer

from commands.common import StoreUrl, store_url, with_store
from commands.output import AsJson, print_json, print_made, print_table, say
from store.connect import DynamoDBUrl, open_store, parse_store_url
from store.dynamodb.store import DynamoDBStore
from store.dynamodb.table import Use, policy
from store.engine import Capacity, Store, TableOptions
from store.errors import BadInput, shorten

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"
"""The folder of the templates, which stands beside the packages in a checkout and in an installed wheel."""
TEMPLATES = {"cloudformation": "table.yaml", "terraform": "table.tf"}

app = typer.Typer(help="Create and describe the table of CLADE_STORE.", no_args_is_help=True)

Recovery = Annotated[
    bool | None,
    typer.Option("--recovery/--no-recovery", help="Point-in-time recovery; on by default in AWS.", show_default=False),
]
Protection = Annotated[
    bool | None,
    typer.Option("--protection/--no-protection", help="Deletion protection; on by default in AWS.", show_default=False),
]
Units = Annotated[
    str | None, typer.Option(help="Provisioned READ:WRITE units per second, such as 50:10; on demand by default.")
]
IndexUnits = Annotated[
    str | None, typer.Option(help="Units of each index, such as 50:10; those of the table by default.")
]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="Tag, such as team=maps; repeatable.")]
Key = Annotated[str | None, typer.Option(help="KMS key, such as alias/clade; a key of DynamoDB by default.")]
TemplateFormat = Annotated[Literal["cloudformation", "terraform"], typer.Option("--format", help="Format to print.")]
For = Annotated[Use, typer.Option("--for", help="Use that the policy allows.")]
Account = Annotated[str | None, typer.Option(help="AWS account id, such as 123456789012; any by default.")]


@app.command()
def create(
    store: StoreUrl = None,
    recovery: Recovery = None,
    protection: Protection = None,
    units: Units = None,
    index_units: IndexUnits = None,
    tags: Tags = None,
    kms_key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Create the table with its indexes, and wait until it is active.

    An existing table is not changed, except that --recovery enables recovery. By default, recovery and protection are
    on in AWS, and off where an endpoint is set.

    Example: CLADE_STORE="dynamodb://clade?region=eu-west-1" clade table create --tag team=maps
    """
    url = store_url(store)
    options = TableOptions(
        recovery, protection, _capacity(units), _capacity(index_units), dict(map(_tag, tags or [])), kms_key
    )
    opening = open_store(url)
    is_new = with_store(opening, lambda store: store.create(options))
    off = _disabled(opening, options) if is_new else []
    if as_json:
        return print_json({"store": url, "created": is_new, "disabled": off})
    sentence = f" An endpoint is set, so it has no {' and no '.join(off)}; enable with --{' --'.join(off)}."
    say(f"{url}: the table is made.{sentence if off else ''}" if is_new else f"{url}: the table exists.")


@app.command()
def describe(as_json: AsJson = False, store: StoreUrl = None) -> None:
    """Show the table: layout, status, items, size, indexes, capacity, recovery, protection and tags.

    Example: clade table describe
    """
    description = with_store(open_store(store_url(store)), lambda store: store.describe())
    if as_json:
        return print_json(description)
    texts = [
        (name, ", ".join(map(str, one)) if isinstance(one, list) else str(one)) for name, one in description.items()
    ]
    print_table(("", ""), texts)


@app.command("template")
def print_template(template_format: TemplateFormat) -> None:
    """Print a CloudFormation template or a Terraform configuration of the table, with alarms and policies.

    It has the table that clade table create makes, with the same options as parameters, an alarm for throttled reads,
    one for throttled writes and one for errors of DynamoDB, and the policies of clade table policy. Run clade table
    create once afterwards: it marks the empty table with the layout version, and changes nothing else.

    Example: clade table template --format cloudformation > table.yaml
    """
    print_made((DEPLOY / TEMPLATES[template_format]).read_text("utf-8"), end=False)


@app.command("policy")
def print_policy(use: For = Use.READING, account: Account = None, store: StoreUrl = None) -> None:
    """Print the minimal IAM policy of a reading server, a writing server, or all commands.

    Example: clade table policy --for writing --account 123456789012
    """
    if account is not None and not re.fullmatch(r"\d{12}", account):
        raise BadInput(f'"{shorten(account)}" is not an AWS account id; it has 12 digits.')
    url = store_url(store)
    named = parse_store_url(url)
    if not isinstance(named, DynamoDBUrl):
        raise BadInput(f'"{url}" is not a DynamoDB table; name one with --store.')
    print_made(json.dumps(policy(use, named.table, region=named.region, account=account), indent=2))


def _disabled(store: Store, options: TableOptions) -> list[str]:
    """The features that are off by default, because an endpoint is set."""
    features = {"recovery": options.recovery, "protection": options.protection}
    unset = [name for name, value in features.items() if value is None]
    if not unset or not isinstance(store, DynamoDBStore) or store.client.in_aws:
        return []
    return unset


def _tag(text: str) -> tuple[str, str]:
    name, divider, value = text.partition("=")
    if not name or not divider:
        raise BadInput(f'Invalid tag "{text}"; use --tag team=maps.')
    return name, value


def _capacity(text: str | None) -> Capacity | None:
    if text is None:
        return None
    match text.split(":"):
        case [read, write] if read.isdecimal() and write.isdecimal():
            return Capacity(int(read), int(write))
        case _:
            raise BadInput(f'Invalid units "{text}"; use READ:WRITE, such as 50:10.')
