"""The command line: which commands there are. `clade --help` shows them."""

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from commands import key, table
from commands.check import check
from commands.demo import load_demo
from commands.export import export_file
from commands.imports import import_file
from commands.repair import repair
from commands.schema import schema
from commands.serve import serve
from commands.tree import tree
from store.errors import CladeError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="CLADE_STORE names the store, sqlite:///clade.db where it is not set; the README has all settings.",
)
app.command()(serve)
app.command("demo")(load_demo)
app.command("import")(import_file)
app.command("export")(export_file)
app.command()(tree)
app.command()(check)
app.command()(repair)
app.command()(schema)
app.add_typer(table.app, name="table")
app.add_typer(key.app, name="key")


def _tell_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"clade {version('clade-graphql')}")
        raise typer.Exit


@app.callback()
def clade(
    tell_version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_tell_version, is_eager=True)
    ] = False,
) -> None:
    """Serve category and location hierarchies as GraphQL, out of DynamoDB or SQLite."""


def run() -> None:
    """The entry point. What Clade or the system says no to is one line on the error output and exit status 1."""
    try:
        app()
    except CladeError as error:
        sys.exit(f"clade: {error}")
    except OSError as error:
        if error.filename is None:
            raise
        sys.exit(f"clade: {error.filename}: {(error.strerror or str(error)).lower()}.")
