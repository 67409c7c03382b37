"""`clade schema`: the schema as a text, for code generators, composers and reviews."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from graph.federation_exposure import exposed
from graph.hierarchies.registry import served
from graph.settings import Settings


def schema(
    file: Annotated[Path | None, typer.Argument(help="Where to write it; printed where left out.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail unless FILE holds it already.")] = False,
    federation: Annotated[
        bool, typer.Option("--federation", help="As a subgraph: with directives, and with what it exposes.")
    ] = False,
) -> None:
    """Write the schema of the hierarchies that are served.

    Example: clade schema --federation clade.graphql
    """
    # The libraries of the schema take longer to load than most commands take to run.
    from graph.federation.subgraph_sdl import subgraph_sdl
    from graph.schema import build_schema

    settings = Settings()
    expose = exposed(settings.federation_expose)
    built, _ = build_schema(served(settings.hierarchies), expose=expose)
    text = subgraph_sdl(built, expose) if federation else f"{built.as_str()}\n"
    if file is None:
        if check:
            raise typer.BadParameter("name the file to check.", param_hint="FILE")
        sys.stdout.write(text)
    elif not check:
        file.write_text(text, encoding="utf-8")
    elif not file.is_file() or file.read_text(encoding="utf-8") != text:
        sys.exit(f"clade: {file} is not the schema that is served; clade schema FILE writes it.")
