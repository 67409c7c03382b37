"""Known faults: what the suite finds, counts and steps over until it is repaired, by a name that says what is wrong.

Each has a strict expected failure in `tests/outside/test_known.py`: once that passes, its line here goes.
"""

KNOWN: dict[str, str] = {}
