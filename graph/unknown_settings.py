"""Variables of the environment that look like settings and are none."""

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches

from store.errors import BadInput
from store.text import shorten

PREFIX = "CLADE_"
TESTS = "TEST_"  # what the tests and the benchmark are told
NEARNESS = 0.8  # one letter of five may be wrong

# Where there is a service called "clade…", Kubernetes tells containers its addresses in such variables.
_ADDRESS = re.compile(r"(tcp|udp|sctp)://")
_PART_OF_ADDRESS = re.compile(r"(.*_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR))")


def refuse_misspelt(environment: Mapping[str, str], settings: Collection[str]) -> None:
    """Raise BadInput for a variable that is no setting, and nearly one of these: whoever wrote it meant that.

    Settings are named without their prefix, in capitals.
    """
    for variable in _unknown(environment, settings):
        for near in _near(variable, settings):
            raise BadInput(f"{shorten(variable)} is no setting, but {PREFIX}{near} is; correct the name, or unset it.")


def ignored(environment: Mapping[str, str], settings: Collection[str]) -> list[str]:
    """The variables that begin as settings do and are nothing like these, but for our tests' and Kubernetes's."""
    return [variable for variable in _unknown(environment, settings) if not _near(variable, settings)]


def _near(variable: str, settings: Collection[str]) -> list[str]:
    """The setting that a variable is nearly called, if there is any."""
    return get_close_matches(_name(variable), settings, n=1, cutoff=NEARNESS)


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
