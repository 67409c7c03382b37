"""The command line: which commands there are. `clade --help` shows them."""

import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import version
from typing import Annotated

import typer

from graph.settings import ignored_variables
from store.errors import CladeError

COMMANDS = {
    "serve": "commands.serving.command:serve",
    "demo": "commands.demo:load_demo",
    "import": "commands.importing.command:import_file",
    "export": "commands.export:export_file",
    "copy": "commands.copy:copy_store",
    "tree": "commands.tree:tree",
    "check": "commands.check:check",
    "repair": "commands.repair:repair",
    "backup": "commands.backup:backup",
    "restore": "commands.backup:restore",
    "schema": "commands.schema:schema",
    "table": "commands.table:app",
    "key": "commands.key:app",
}
"""By name, where each is."""


def _tell_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"clade {version('clade-graphql')}")
        raise typer.Exit


def clade(
    tell_version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_tell_version, is_eager=True)
    ] = False,
) -> None:
    """Serve category and location hierarchies as GraphQL, out of DynamoDB or SQLite."""


def app_of(names: Iterable[str] = tuple(COMMANDS)) -> typer.Typer:
    """The command line with these commands, all others left out."""
    app = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="CLADE_STORE names the store, sqlite:///clade.db where it is not set; the README has all settings.",
    )
    app.callback()(clade)
    for name in names:
        module, _, attribute = COMMANDS[name].partition(":")
        found = getattr(import_module(module), attribute)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name)(found)
    return app


def run() -> None:
    """The entry point. What Clade or the system says no to is one line on the error output and exit status 1."""
    for variable in ignored_variables():
        print(f"clade: {variable} is no setting, and is ignored; the README has all settings.", file=sys.stderr)
    called = sys.argv[1:2]
    try:  # a server starts sooner without the modules of all other commands
        (app_of(called) if set(called) & set(COMMANDS) else app_of())()
    except CladeError as error:
        sys.exit(f"clade: {error}")
    except OSError as error:
        if error.filename is None:
            raise
        sys.exit(f"clade: {error.filename}: {(error.strerror or str(error)).lower()}.")
