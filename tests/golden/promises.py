"""Promises: schemas, command line, settings, Python face, error codes and metrics as data, and what breaks them."""

import inspect
import re
import tomllib
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer
from annotated_types import Ge, Gt, Le, Lt
from graphql import DirectiveNode, Visitor, parse, print_ast, visit
from prometheus_client import REGISTRY

import clade
from commands.main import app_of
from graph.error_codes import ERROR_CODES
from graph.federation.subgraph_sdl import subgraph_sdl
from graph.hierarchies.computed import NodeValues
from graph.hierarchies.registry import served
from graph.schema import build_schema
from graph.schema_changes import schema_changes
from graph.server import metrics
from graph.settings import Settings, exposed

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent
CLASSES = "tests.golden.hierarchies"
DEMO = Settings.model_fields["hierarchies"].default
EXPOSE = exposed("node,nodes,changes,history,moves,mutations")

Facts = dict[str, Any]


# -- versions ----------------------------------------------------------------------------------------------------------


def version() -> str:
    """The version in pyproject.toml."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"])


def may_break(promised: str, now: str) -> bool:
    """Whether a version may break what another one promised: a minor version before 1.0, afterwards a major one."""
    old, new = ([int(part) for part in text.split(".")[:2]] for text in (promised, now))
    return new[0] > old[0] or (new[0] == 0 and new > old)


def in_force(now: str) -> list[Path]:
    """The folders of the releases whose promises a version has to keep."""
    folders = sorted(folder for folder in GOLDEN.iterdir() if re.fullmatch(r"[0-9]+[.][0-9]+[.][0-9]+", folder.name))
    return [folder for folder in folders if not may_break(folder.name, now)]


# -- schemas -----------------------------------------------------------------------------------------------------------


def schemas() -> dict[str, str]:
    """The SDL of the demo's and of the golden hierarchies, and of the golden subgraph, without descriptions."""
    golden = served(CLASSES)
    return {
        "demo": bare(build_schema(served(DEMO))[0].as_str()),
        "golden": bare(build_schema(golden)[0].as_str()),
        "subgraph": bare(subgraph_sdl(build_schema(golden, expose=EXPOSE)[0], golden, EXPOSE)),
    }


def bare(sdl: str) -> str:
    """An SDL without descriptions, whose wording is not promised."""

    class Descriptions(Visitor):
        def enter(self, node: Any, *_: Any) -> None:
            if getattr(node, "description", None) is not None:
                object.__setattr__(node, "description", None)

    document = parse(sdl, no_location=True)
    visit(document, Descriptions())
    return f"{print_ast(document)}\n"


def broken_in_schema(old: str, new: str) -> list[str]:
    """The sentences of what a schema breaks: also a changed default, and a key or a shared field of a subgraph."""
    changes = schema_changes(old, new)
    defaults = [sentence for sentence in changes.dangerous if "defaultValue" in sentence]
    gone = sorted(_composed(old) - _composed(new))
    return [*changes.breaking, *defaults, *(f"{place} is no longer {directive}." for place, directive in gone)]


def _composed(sdl: str) -> set[tuple[str, str]]:
    """The types and fields of an SDL with the directives that gateways compose them by."""
    found = set()

    def take(place: str, directives: tuple[DirectiveNode, ...] | None) -> None:
        found.update((place, print_ast(one)) for one in directives or () if one.name.value in ("key", "shareable"))

    for one in parse(sdl).definitions:
        name = getattr(getattr(one, "name", None), "value", "schema")
        take(name, getattr(one, "directives", None))
        for field in getattr(one, "fields", None) or ():
            take(f"{name}.{field.name.value}", field.directives)
    return found


# -- names -------------------------------------------------------------------------------------------------------------


def names() -> Facts:
    """Everything promised that is no schema: by section and name, with the facts of each."""
    assert metrics.GAUGES  # importing it registers them
    families = [one for one in REGISTRY.collect() if one.name.startswith("clade_")]
    return {
        "command": dict(_commands(typer.main.get_command(app_of()))),
        "setting": {name: _setting(field) for name, field in Settings.model_fields.items()},
        "python": {name: _python(getattr(clade, name)) for name in sorted(clade.__all__)}
        | {"self of @computed": {name: {} for name in vars(NodeValues) if not name.startswith("_")}},
        "error code": {code.name: {"status": code.status} for code in sorted(ERROR_CODES)},
        "metric": {
            one.name: {"type": one.type}
            | {f"label {label}": {} for label in REGISTRY._names_to_collectors[one.name]._labelnames}
            for one in sorted(families, key=lambda one: one.name)
        },
    }


def _commands(command: Any, prefix: str = "") -> Iterator[tuple[str, Facts]]:
    for name, one in command.commands.items():
        if hasattr(one, "commands"):
            yield from _commands(one, f"{prefix}{name} ")
        else:
            yield prefix + name, dict(_options(one))


def _options(command: Any) -> Iterator[tuple[str, Facts]]:
    """The arguments of a command by their places, and its options by each of their names."""
    hints = typing.get_type_hints(inspect.unwrap(command.callback))
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    for one in command.params:
        is_plain = isinstance(one.default, str | int | float | bool)
        facts = _known(required=one.required, default=one.default if is_plain else None) | _values(hints[one.name])
        spelled = [f"argument {arguments.index(one) + 1}"] if one in arguments else [*one.opts, *one.secondary_opts]
        yield from ((spelling, facts) for spelling in spelled)


def _known(**facts: Any) -> Facts:
    """Facts without those that say nothing."""
    return {name: value for name, value in facts.items() if value is not None and value is not False}


def _values(hint: Any) -> Facts:
    """The values that an option takes."""
    (kind,) = [one for one in get_args(hint) if one is not type(None)] if type(None) in get_args(hint) else [hint]
    if get_origin(kind) is Literal:
        return {"choices": {choice: {} for choice in get_args(kind)}}
    return {"takes": getattr(kind, "__name__", str(kind)) if get_origin(kind) is None else str(kind)}


def _setting(field: Any) -> Facts:
    facts: Facts = {"default": field.default}
    if get_origin(field.annotation) is Literal:
        return facts | {"choices": {choice: {} for choice in get_args(field.annotation)}}
    facts["type"] = field.annotation.__name__
    for bound in field.metadata:
        match bound:
            case Ge(ge=value) | Gt(gt=value):
                facts["minimum"] = value
            case Le(le=value) | Lt(lt=value):
                facts["maximum"] = value
    return facts


def _python(thing: Any) -> Facts:
    """The parameters of a function; those of a subclass of Node; the base type of an attribute's type."""
    if hasattr(thing, "__supertype__"):
        return {"type": thing.__supertype__.__name__}
    if thing is clade.Node:
        keywords = _parameters(thing.__init_subclass__)
        return {name: _known(**facts | {"position": None}) for name, facts in keywords.items()}
    if inspect.isclass(thing):
        return {"type": "class"}  # of Settings, whose parameters are the settings
    returned = (
        typing.get_type_hints(thing, vars(inspect.getmodule(thing))).get("return")
        if thing is clade.create_app
        else None
    )
    return _parameters(thing) | ({"result": _attributes(returned)} if returned else {})


def _attributes(cls: type) -> Facts:
    """The attributes and methods of an object that users hold."""
    own = {name for name in vars(cls) if not name.startswith("_")}
    return {name: {} for name in sorted(own | {*inspect.signature(cls).parameters})}


def _parameters(function: Callable[..., Any]) -> Facts:
    return {
        one.name: _known(
            required=one.default is one.empty,
            default=None
            if one.default in (one.empty, None, False) or type(one.default) is object
            else repr(one.default),
            position=None if one.kind is one.KEYWORD_ONLY else place,
        )
        for place, one in enumerate(inspect.signature(function).parameters.values(), start=1)
        if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
    }


# -- comparison --------------------------------------------------------------------------------------------------------

_WIDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "required": lambda old, new: old and not new,
    "minimum": lambda old, new: new is None or (old is not None and new <= old),
    "maximum": lambda old, new: new is None or (old is not None and new >= old),
}
"""Changes of a fact that break nobody, by its name."""


def broken(old: Facts, new: Facts, place: str = "") -> Iterator[str]:
    """The sentences of what breaks a promise: something removed, changed or newly required. Additions do not."""
    for name in [*old, *(name for name in new if name not in old)]:
        where, before, after = f"{place} {name}".strip(), old.get(name), new.get(name)
        if isinstance(before, dict):
            yield from broken(before, after, where) if isinstance(after, dict) else [f"{where} was removed."]
        elif isinstance(after, dict):
            yield from [f"{where} was added and is required."] if after.get("required") is True else []
        elif before != after and not _WIDER.get(name, _never)(before, after):
            yield f"{where} has changed from {before!r} to {after!r}."


def _never(old: Any, new: Any) -> bool:
    return False
