"""Variables of the environment that look like settings and are none."""

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches

from store.errors import BadInput
from store.keys import shorten

PREFIX = "CLADE_"
TESTS = "TEST_"  # what the tests and the benchmark are told
NEARNESS = 0.8  # one letter of five may be wrong

# Where there is a service called "clade…", Kubernetes tells containers its addresses in such variables.
_ADDRESS = re.compile(r"(tcp|udp|sctp)://")
_PART_OF_ADDRESS = re.compile(r"(.*_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR))")


def refuse_misspelt(environment: Mapping[str, str], settings: Collection[str]) -> None:
    """Raise BadInput for a variable that is no setting, and nearly one of these: whoever wrote it meant that."""
    for variable in unknown(environment, settings):
        for near in get_close_matches(_name(variable), settings, n=1, cutoff=NEARNESS):
            raise BadInput(f"{shorten(variable)} is no setting, but {PREFIX}{near} is; correct the name, or unset it.")


def unknown(environment: Mapping[str, str], settings: Collection[str]) -> list[str]:
    """The variables that begin as settings do and are none of these, but for those of our tests and of Kubernetes.

    Settings are named without their prefix, in capitals.
    """
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
