"""Clients of a server that writes, with places in it; what they leave is consistent."""

import pytest

from tests import invariants
from tests.systems.writing import Clients, plant


@pytest.fixture
async def clients(store):
    made = Clients(store)
    await plant(made)
    yield made
    await invariants.check(store)
