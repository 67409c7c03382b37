"""Selection of tests: a plain run has every rule once, with a few fixed random examples; `--thorough` has everything.

A plain run leaves out tests with the marker `thorough`, and the DynamoDB twin of a test of both stores unless it has
the marker `both_stores`, which `both_stores(False)` takes away from one test of a module. A thorough run has modules
with the marker `extenddb` on that engine as well. Tests that are named one by one are always run, but on ExtendDB only
in a thorough run.
"""

import time

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

FEW, MANY = 20, 100  # random examples of a property that does not say how many

# The files that take longest: first those of a plain run, then those of a thorough one. Processes that share a run
# begin with them: at its end one of them would keep one process busy and leave the others idle.
LONGEST = """
tests/graph/explorer/test_writing.py tests/graph/explorer/test_explorer.py tests/docs/test_commands.py
tests/outside/test_parts.py tests/graph/explorer/test_navigation.py tests/outside/test_fuzzer.py
tests/outside/test_model.py tests/commands/importing/test_cases.py tests/commands/test_interrupt.py
tests/abuse/test_memory.py tests/abuse/test_cost.py tests/graph/server/test_graphiql.py tests/writing/test_kills.py
tests/clients/test_caches.py tests/docs/test_site.py tests/commands/importing/test_tree_by.py
tests/commands/importing/test_tables.py tests/systems/test_readers_beside_moves.py tests/systems/test_two_versions.py
tests/commands/test_schema.py tests/examples/test_type_ahead.py tests/test_pythons.py tests/federation/test_gateway.py
tests/test_wheel.py tests/test_scripts.py tests/systems/test_unique_values.py tests/systems/test_damaged_items.py
tests/systems/test_restores.py tests/store/transfer/test_move_plans.py tests/store/checking/test_unique_values.py
tests/test_bench.py tests/rights/test_two_worlds.py tests/systems/test_deep_lists.py tests/systems/test_batches.py
""".split()

_thorough = False
_examples: int | None = None
_python: str | None = None


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("clade")
    group.addoption("--thorough", action="store_true", help="all tests, on both stores, with many new random examples")
    group.addoption("--examples", type=int, metavar="N", help="so many new random examples of each property")
    group.addoption("--python", metavar="X.Y", help="the Python of tests/test_pythons.py, other than this one")


def configure(config: pytest.Config) -> None:
    """Take over the options, before modules of tests are imported."""
    global _thorough, _examples, _python
    _thorough = config.getoption("--thorough")
    _python = config.getoption("--python")
    _examples = config.getoption("--examples")
    searching = _thorough or _examples is not None
    settings.register_profile(
        "clade",
        deadline=None,
        max_examples=examples(FEW, MANY),
        derandomize=not searching,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("clade")
    if not searching:
        _fix_examples()


def _fix_examples() -> None:
    """Have Hypothesis draw no constants of the modules that are loaded: they depend on what was run before."""
    assert hasattr(providers, "_get_local_constants"), "Hypothesis has another name for the constants of modules."
    none = providers.Constants()
    providers._get_local_constants = lambda: none


def thorough() -> bool:
    """Whether this run has everything."""
    return _thorough


def python() -> str | None:
    """The version of Python that was asked for, such as 3.13."""
    return _python


def examples(few: int, many: int) -> int:
    """How many random examples a property has: a few fixed ones, or many new ones in a thorough run."""
    if _examples is not None:
        return _examples
    return many if _thorough else few


def until(short: float, long: float) -> float:
    """When a test ends that could go on for ever, in `time.monotonic()`: after so many seconds, more if thorough."""
    return time.monotonic() + (long if _thorough else short)


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what this run does not have."""
    names = {item.nodeid for item in items}
    named = any("::" in name for name in config.args)
    left_out = {item for item in items if _is_on_extenddb(item) or not (_thorough or named or _is_plain(item, names))}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]
    if hasattr(config, "workerinput"):  # of pytest-xdist, which deals out files in the order of their tests
        places = {file: place for place, file in enumerate(LONGEST)}
        items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


def _is_plain(item: pytest.Item, names: set[str]) -> bool:
    """Whether a plain run has it: it is quick, and no other runs on SQLite what it runs on DynamoDB."""
    if item.get_closest_marker("thorough"):
        return False
    twin = item.nodeid.replace("dynamodb", "sqlite")
    marker = item.get_closest_marker("both_stores")
    return twin == item.nodeid or twin not in names or (marker is not None and marker.args != (False,))


def _is_on_extenddb(item: pytest.Item) -> bool:
    """Whether it runs on ExtendDB, which nothing asks for in this run."""
    callspec = getattr(item, "callspec", None)
    if callspec is None or callspec.params.get("store_url") != "extenddb":
        return False
    return not _thorough or item.get_closest_marker("extenddb") is None
