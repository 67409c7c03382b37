"""`clade schema`: the GraphQL schema in SDL."""

import sys
from pathlib import Path
from typing import Annotated

import typer


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
) -> None:
    """Write the GraphQL schema of the served hierarchies.

    Example: clade schema --federation clade.graphql
    """
    # Strawberry and pydantic take longer to import than the help takes to be shown.
    from graph.federation.subgraph_sdl import subgraph_sdl
    from graph.federation_exposure import exposed
    from graph.hierarchies.registry import served
    from graph.schema import build_schema
    from graph.settings import Settings

    settings = Settings()
    expose = exposed(settings.federation_expose)
    classes = served(settings.hierarchies)
    built, _ = build_schema(classes, expose=expose)
    text = subgraph_sdl(built, classes, expose) if federation else f"{built.as_str()}\n"
    if file is None:
        if check:
            raise typer.BadParameter("missing with --check.", param_hint="FILE")
        sys.stdout.write(text)
    elif not check:
        file.write_text(text, encoding="utf-8")
    elif not file.is_file() or file.read_text(encoding="utf-8") != text:
        sys.exit(f"clade: {file} differs from the served schema; run the command without --check to update it.")
