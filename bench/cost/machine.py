"""Slowness of this machine: how many times longer it takes for a computation than the one whose figures are in
`docs/security.md`.
"""

import time

from graphql import parse

TRIES = 5
# Estimated: `many unknown fields` took 36 ms of CPU there, and 112 ms where this work takes 31 ms.
REFERENCE_SECONDS = 0.010

_DOCUMENT = "{ location { " + " ".join(f"nothing{number}" for number in range(1_500)) + " } }"


def slowness() -> float:
    """The CPU time of the least of some tries, divided by that of the reference."""
    return min(_parsing_seconds() for _ in range(TRIES)) / REFERENCE_SECONDS


def _parsing_seconds() -> float:
    began = time.thread_time()
    parse(_DOCUMENT)
    return time.thread_time() - began
