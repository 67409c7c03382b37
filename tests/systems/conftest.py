"""What tests of answers share."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def each_error() -> Iterator[None]:
    """Answers tell each of their errors, as a model of them does, however many are alike."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graph.errors.MAX_ERRORS_PER_CODE", 1_000_000)
        patch.setattr("graph.execution.executor.MAX_ERRORS_PER_CODE", 1_000_000)
        yield
