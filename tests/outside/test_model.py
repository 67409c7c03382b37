"""Short form of the model: fixed seeds on each store. `python -m tests.outside --part model` runs it for any time."""

from collections.abc import Iterator

import pytest

from tests.engines import binary
from tests.outside.model.races import race
from tests.outside.model.run import run
from tests.outside.processes import Place, missing, place
from tests.selection import examples, until

STEPS = examples(10, 40)
RACE_SECONDS = 4.0


@pytest.fixture(params=["sqlite", "dynamodb"])
def store(request: pytest.FixtureRequest) -> Iterator[Place]:
    if reason := missing(request.param):
        pytest.skip(reason)
    with place(request.param) as found:
        yield found


def test_each_answer_to_serial_operations_is_the_one_that_the_model_predicts(store: Place) -> None:
    counts = run(store, 20_261_123, until(0, 60), STEPS)
    assert counts["reads compared"] > STEPS


@pytest.mark.thorough
def test_racing_clients_see_what_was_acknowledged_and_agree_when_it_is_quiet(store: Place) -> None:
    counts = race(store, 20_261_123, until(RACE_SECONDS, 20))
    assert counts["races: quiet moments"] == 1


@pytest.mark.thorough
@pytest.mark.skipif(not binary("extenddb"), reason="ExtendDB is missing")
def test_the_model_holds_on_an_engine_that_checks_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLADE_TEST_ENGINE", "extenddb")
    with place("dynamodb") as found:
        assert run(found, 20_261_124, until(0, 20), STEPS)["reads compared"] > STEPS
