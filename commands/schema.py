"""`clade schema`: the GraphQL schema in SDL, and its comparison with an older one."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from commands.output import say
from store.errors import BadInput


def schema(
    file: Annotated[
        Path | None,
        typer.Argument(help="File to write, such as schema.graphql; the standard output by default.", metavar="FILE"),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail if FILE differs from the schema.")
    ] = False,
    federation: Annotated[
        bool, typer.Option("--federation", help="Write the Federation subgraph, with its directives.")
    ] = False,
    compare: Annotated[
        Path | None,
        typer.Option(help="Write nothing; list what has changed since this schema, and fail if it breaks clients."),
    ] = None,
) -> None:
    """Write the GraphQL schema of the served hierarchies.

    With --compare each change that breaks clients is a line, and the exit status is 1 if there is any. Changes that
    only some clients notice, such as a new value of an enum, are listed, too.

    Example: clade schema --federation clade.graphql
    """
    text = _sdl(federation)
    if compare is not None:
        if file is not None or check:
            raise typer.BadParameter("is alone: leave FILE and --check out.", param_hint="--compare")
        _compare(compare, text)
    elif file is None:
        if check:
            raise typer.BadParameter("missing with --check.", param_hint="FILE")
        sys.stdout.buffer.write(text.encode())  # UTF-8 as in a file, whatever the encoding of the console
    elif not check:
        file.write_text(text, encoding="utf-8")
    elif not file.is_file() or file.read_text(encoding="utf-8") != text:
        raise BadInput(f"{file} differs from the served schema; run the command without --check to update it.")


def _sdl(federation: bool) -> str:
    """The schema of the served hierarchies, or the part of it that is a subgraph."""
    # Strawberry and pydantic take longer to import than the help takes to be shown.
    from graph.federation import subgraph_sdl
    from graph.hierarchies.registry import served
    from graph.schema import build_schema
    from graph.settings import Settings, exposed

    settings = Settings()
    expose = exposed(settings.federation_expose)
    classes = served(settings.hierarchies)
    built, _ = build_schema(classes, expose=expose)
    return subgraph_sdl(built, classes, expose) if federation else f"{built.as_str()}\n"


def _compare(old: Path, text: str) -> None:
    """List the changes of the schema since an older file; exit with status 1 if one breaks clients."""
    from graph.schema import schema_changes

    try:
        changes = schema_changes(old.read_text(encoding="utf-8"), text)
    except UnicodeDecodeError:
        raise BadInput(f"{old} is not a text in UTF-8; name a file that clade schema wrote.") from None
    except BadInput as error:
        raise BadInput(f"{old} {error}; name a file that clade schema wrote.") from None
    for sentence in changes.breaking:
        say(f"Breaking: {sentence}")
    for sentence in changes.dangerous:
        say(f"Dangerous: {sentence}")
    if changes.breaking:
        raise typer.Exit(1)
    say(f"Nothing has changed since {old} that breaks clients.")
