"""Command line: the list of commands. A command's module is imported when it is called; the list needs none."""

import codecs
import json
import os
import sys
from collections.abc import Collection
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any, NamedTuple

import typer

from commands import interrupt
from commands.output import printable, say
from store.errors import CladeError


class Command(NamedTuple):
    """A command: its function or Typer application as `module:name`, its line in the help of all commands, and the
    class that parses its arguments, if that is not Typer's.
    """

    target: str
    summary: str
    parser: str = ""


COMMANDS = {
    "Server": {
        "serve": Command("commands.serve:serve", "Start the server, with GraphiQL for browsers."),
        "schema": Command("commands.schema:schema", "Write the GraphQL schema of the served hierarchies."),
    },
    "Data": {
        "demo": Command("commands.demo:load_demo", "Load the demo data into an empty store."),
        "import": Command(
            "commands.importing.command:import_file",
            "Import the nodes of a file into the store.",
            "commands.importing.command:ImportCommand",
        ),
        "export": Command("commands.copies:export_file", "Write the nodes of a hierarchy or of a subtree."),
        "edit": Command("commands.edit:edit", "Create, update, move and delete nodes by a file of JSON lines."),
        "delete": Command("commands.delete:delete", "Delete a node, alone or with its descendants; list deletions."),
        "restore-nodes": Command("commands.restore:restore_nodes", "Restore deleted nodes, undoing their deletions."),
        "tree": Command("commands.tree:tree", "Show a node and its descendants, or the served hierarchies."),
    },
    "Store": {
        "table": Command("commands.table:app", "Create and describe the table, and print its template."),
        "check": Command("commands.check:check", "Check that the table is consistent, and print each finding."),
        "repair": Command("commands.check:repair", "Repair derived data, and print each repair."),
        "backup": Command("commands.copies:backup", "Copy an SQLite store into one file."),
        "restore": Command("commands.copies:restore", "Replace the whole content of an SQLite store with a backup."),
        "copy": Command("commands.copies:copy_store", "Copy a whole store into a new one, SQLite or DynamoDB."),
    },
    "Access": {"key": Command("commands.keys:app", "Create, list and revoke API keys.")},
}
"""The commands by name, by panels of the help."""
NAMES = [name for commands in COMMANDS.values() for name in commands]
COMPLETE = "_CLADE_COMPLETE"  # is set where a shell asks for the completion of a line
AS_ASCII = str.maketrans({"│": "|", "├": "|", "└": "`", "─": "-", "…": "...", "\N{REPLACEMENT CHARACTER}": "?"})


def _print_version(is_requested: bool) -> None:
    if is_requested:
        from importlib.metadata import version  # which reads the metadata of all packages

        say(f"clade {version('clade-graphql')}")
        raise typer.Exit


def clade(
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Serve hierarchies in DynamoDB or SQLite as GraphQL."""


def app_of(names: Collection[str] = NAMES) -> typer.Typer:
    """The command line with these commands; the others only have their lines in the help of all commands."""
    app = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={
            "help_option_names": ["-h", "--help"],
            "color": False if os.environ.get("NO_COLOR") else None,
        },
        epilog="Start with: clade demo, then clade serve. CLADE_STORE is the store URL, sqlite:///clade.db by default; "
        "all settings are in docs/reference/settings.md.",
    )
    app.callback()(clade)
    for panel, commands in COMMANDS.items():
        for name, (target, summary, parser) in commands.items():
            command = load_command(target) if name in names else _not_loaded
            if isinstance(command, typer.Typer):
                app.add_typer(command, name=name, rich_help_panel=panel)
            else:
                cls = load_command(parser) if parser and name in names else None
                app.command(name, cls=cls, rich_help_panel=panel, short_help=summary)(command)
    return app


def load_command(target: str) -> Any:
    """What `module:name` names, whose module is imported."""
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)


def _not_loaded() -> None:
    """A command whose module was not imported; it is listed, and never called."""


def _check_variables() -> None:
    """Raise BadInput for a variable that is no setting, also where a command reads none."""
    if any(variable.upper().startswith("CLADE_") for variable in os.environ):
        from graph.settings import check_variables  # with pydantic, which the help of all commands does without

        check_variables()


def run_process() -> None:
    """The command line as a process of its own, which Ctrl-C ends with a sentence."""
    interrupt.catch()
    codecs.register_error("clade", _escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # None where the process was started without it
            stream.reconfigure(errors="clade")
    try:
        run()
    except interrupt.Interrupted:  # which no command has said more about
        say("clade: Stopped.", err=True)
        sys.exit(interrupt.EXIT_INTERRUPTED)
    finally:
        interrupt.ignore()  # while Python ends


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Characters that the encoding of a console lacks: lines of trees in ASCII, others such as \\u0421, which JSON and
    GraphQL read. Data such as an export is written as bytes and never comes here.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end].translate(AS_ASCII))[1:-1], error.end


def run() -> None:
    """Run the command of the arguments. An error of Clade or of the system is one line and the exit status 1."""
    completed = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    given = completed.split()[1:] if COMPLETE in os.environ else sys.argv[1:]
    words = [word for word in given if not word.startswith("-")]
    try:  # a command starts faster without the modules of the others
        if words and COMPLETE not in os.environ and not {"-h", "--help"} & {*sys.argv}:
            _check_variables()
        app_of(words[:1])()
    except CladeError as error:
        sys.exit(f"clade: {printable(error)}")
    except OSError as error:
        if error.filename is None:
            raise
        sys.exit(f"clade: {printable(error.filename)}: {(error.strerror or str(error)).lower()}.")
