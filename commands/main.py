"""The command line: which commands there are. `clade --help` shows them."""

import sys

import typer

from commands import table
from commands.demo import load_demo
from commands.export import export_file
from commands.imports import import_file
from commands.schema import schema
from commands.serve import serve
from commands.tree import tree
from store.errors import CladeError

app = typer.Typer(
    help="Serve category and location hierarchies as GraphQL, out of DynamoDB or SQLite.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(serve)
app.command("demo")(load_demo)
app.command("import")(import_file)
app.command("export")(export_file)
app.command()(schema)
app.command()(tree)
app.add_typer(table.app, name="table")


def run() -> None:
    """The entry point. What Clade says no to is one line on the error output and exit status 1."""
    try:
        app()
    except CladeError as error:
        sys.exit(f"clade: {error}")
