"""cfn-lint on templates, in a process of its own: it takes 200 MB, which would stay with the tests."""

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

SECONDS = 120.0  # for a template, the first of which takes longest

Linter = Callable[[str], list[str]]


@contextmanager
def linting() -> Iterator[Linter]:
    """The linter: the errors and warnings of a template in JSON or YAML."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        yield lambda template: process.submit(_findings, template).result(SECONDS)


def _findings(template: str) -> list[str]:
    """Errors and warnings; information and experimental rules are left out."""
    from cfnlint.api import lint_all

    return [str(found) for found in lint_all(template) if found.rule.id[0] in "EW"]
