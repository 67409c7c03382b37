"""Command line: the list of commands; a command's module is imported when it is called."""

import sys
from collections.abc import Collection
from importlib import import_module
from importlib.metadata import version
from typing import Annotated

import typer

from graph.settings import ignored_variables
from store.errors import CladeError

COMMANDS = {
    "Server": {"serve": "commands.serving.command:serve", "schema": "commands.schema:schema"},
    "Data": {
        "demo": "commands.demo:load_demo",
        "import": "commands.importing.command:import_file",
        "export": "commands.export:export_file",
        "tree": "commands.tree:tree",
    },
    "Store": {
        "table": "commands.table:app",
        "check": "commands.check:check",
        "repair": "commands.check:repair",
        "backup": "commands.backup:backup",
        "restore": "commands.backup:restore",
        "copy": "commands.copy:copy_store",
        "rewrite-names": "commands.rewrite_names:rewrite_names",
    },
    "Access": {"key": "commands.key:app"},
}
"""The module and the function, or Typer application, of each command, by panels of the help."""
NAMES = [name for commands in COMMANDS.values() for name in commands]


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"clade {version('clade-graphql')}")
        raise typer.Exit


def clade(
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Serve hierarchies in DynamoDB or SQLite as GraphQL."""


def app_of(names: Collection[str] = NAMES) -> typer.Typer:
    """The command line with these commands only."""
    app = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="Start with: clade demo, then clade serve. CLADE_STORE is the store URL, sqlite:///clade.db by default; "
        "all settings are in docs/reference/settings.md.",
    )
    app.callback()(clade)
    for panel, commands in COMMANDS.items():
        for name in filter(names.__contains__, commands):
            module, _, attribute = commands[name].partition(":")
            command = getattr(import_module(module), attribute)
            if isinstance(command, typer.Typer):
                app.add_typer(command, name=name, rich_help_panel=panel)
            else:
                app.command(name, rich_help_panel=panel)(command)
    return app


def run() -> None:
    """The entry point. An error of Clade or of the system is one line on the error output and exit status 1."""
    for variable in ignored_variables():
        print(f"clade: {variable} is not a setting and is ignored; see docs/reference/settings.md.", file=sys.stderr)
    command = sys.argv[1:2]
    try:  # a server starts faster without the modules of the other commands
        (app_of(command) if set(command) & set(NAMES) else app_of())()
    except CladeError as error:
        sys.exit(f"clade: {error}")
    except OSError as error:
        if error.filename is None:
            raise
        sys.exit(f"clade: {error.filename}: {(error.strerror or str(error)).lower()}.")
