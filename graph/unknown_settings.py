"""Unknown settings: environment variables with the prefix `CLADE_` that are not a setting."""

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches

from store.errors import BadInput
from store.text import shorten

PREFIX = "CLADE_"
RENAMED = {"KEEP_MB": "RECORD_CACHE_MB", "CACHE_MB": "RESPONSE_CACHE_MB"}
"""Former names of settings, each with the name of today."""
TESTS = "TEST_"  # variables of the tests and the benchmark
MIN_SIMILARITY = 0.8  # one wrong letter of five

# Kubernetes passes the addresses of a service called "clade…" to containers in such variables.
_ADDRESS = re.compile(r"(tcp|udp|sctp)://")
_PART_OF_ADDRESS = re.compile(r"(.*_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR))")


def reject_misspelt(environment: Mapping[str, str], settings: Collection[str]) -> None:
    """Raise BadInput for a variable that has the former name of a setting, or nearly the name of one.

    `settings` are names in capitals, without the prefix.
    """
    for variable in _unknown(environment, settings):
        if new := RENAMED.get(_name(variable)):
            raise BadInput(f"{shorten(variable)} was renamed; set {PREFIX}{new} instead.")
        for near in _similar(variable, settings):
            raise BadInput(f"{shorten(variable)} is not a setting; use {PREFIX}{near}, or unset the variable.")


def ignored(environment: Mapping[str, str], settings: Collection[str]) -> list[str]:
    """Variables with the prefix that resemble no setting; those of tests and of Kubernetes are left out."""
    return [variable for variable in _unknown(environment, settings) if not _similar(variable, settings)]


def _similar(variable: str, settings: Collection[str]) -> list[str]:
    """The setting whose name is the most similar, or nothing."""
    return get_close_matches(_name(variable), settings, n=1, cutoff=MIN_SIMILARITY)


def _unknown(environment: Mapping[str, str], settings: Collection[str]) -> list[str]:
    return sorted(
        variable
        for variable, value in environment.items()
        if value
        and variable.upper().startswith(PREFIX)
        and (name := _name(variable)) not in settings
        and not (name.startswith(TESTS) or _ADDRESS.match(value) or _PART_OF_ADDRESS.fullmatch(name))
    )


def _name(variable: str) -> str:
    return variable.upper().removeprefix(PREFIX)
