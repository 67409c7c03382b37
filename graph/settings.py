"""Settings, each with its default and a description that names the unit; nothing else reads the environment."""

import ast
import inspect
import os
import re
from collections.abc import Callable
from contextlib import suppress
from difflib import get_close_matches
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, Literal, get_args, get_origin

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, SettingsConfigDict

from graph.hosts import cors_origins
from graph.operation.limit_values import LimitValues
from resolvers.session.budget import BudgetLimits
from store.errors import BadInput, install_hint, shorten
from store.metadata.moves import MoveTiming

PREFIX = "CLADE_"
TESTS = "TEST_"  # variables of the tests and the benchmark
LISTS = frozenset({"jwt_audience", "federation_expose", "cors_origins"})  # of words that commas divide

EXPOSABLE = ("node", "nodes", "changes", "history", "moves", "mutations")
"""The optional parts of the subgraph's schema."""

_BOUNDS = {"ge": "at least", "gt": "above", "le": "at most"}

# Kubernetes passes the addresses of a service called "clade…" to containers in such variables.
_ADDRESS = re.compile(r"(tcp|udp|sctp)://")
_PART_OF_ADDRESS = re.compile(r"(.*_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR))")


def host_and_port(address: str) -> tuple[str, int]:
    """The parts of `HOST:PORT`; an IPv6 address stands in brackets. Raises ValueError."""
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdigit() and int(port) < 65_536):
        raise ValueError("it must be HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


def exposed(words: str) -> frozenset[str]:
    """The words of CLADE_FEDERATION_EXPOSE. Raises BadInput for a word that is not in EXPOSABLE."""
    found = frozenset(word.strip() for word in words.split(",")) - {""}
    if unknown := found - set(EXPOSABLE):
        wrong, right = ", ".join(sorted(unknown)), ", ".join(EXPOSABLE)
        raise BadInput(f"CLADE_FEDERATION_EXPOSE has unknown words: {wrong}; use {right}.")
    return found


def _check_traces(traces: str) -> None:
    if traces == "on":
        with suppress(ModuleNotFoundError):  # of a package above the one that is looked for
            if find_spec("opentelemetry.exporter.otlp.proto.http") is not None:
                return
        raise ValueError(install_hint("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"))


def _check_trusted(file: str) -> None:
    from graph.operation.document import read_trusted  # with graphql-core, which commands do without

    read_trusted(file)


_CHECKS: dict[str, Callable[[str], object]] = {
    "cors_origins": cors_origins,
    "jwt_audience": str,  # any text that lists something
    "federation_expose": exposed,
    "traces": _check_traces,
    "metrics": host_and_port,
    "trusted_documents": _check_trusted,
}
"""Checks of values by the names of their settings; they raise ValueError or BadInput."""


class Settings(BaseSettings):
    """The settings, read from environment variables with the prefix `CLADE_`; an empty variable counts as unset.

    Raises BadInput for an invalid value, and for a variable with the prefix that is no setting.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, allow_inf_nan=False, frozen=True)

    def __init__(self, **values: Any) -> None:
        check_variables()
        for name in values.keys() - type(self).model_fields.keys():
            near = get_close_matches(name, type(self).model_fields, n=1)
            way_out = f"use {near[0]}=" if near else "all settings are in docs/reference/settings.md"
            raise BadInput(f"Settings has no {name}=; {way_out}.")
        try:
            super().__init__(**values)
        except ValidationError as error:
            first = error.errors()[0]
            name, value = str(first["loc"][0]), shorten(str(first["input"]))
            own = first.get("ctx", {}).get("error")  # raised by a validator below
            reason = own or f"it must be {allowed_values(type(self).model_fields[name])}"
            raise BadInput(f'{PREFIX}{name.upper()} cannot be "{value}": {reason}.') from None

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], init_settings: Any, env_settings: Any, *_: Any, **others: Any
    ) -> tuple[Any, Any]:
        """Arguments and the environment: files of settings, which there are none of, would take as long again."""
        return init_settings, env_settings

    store: str = "sqlite:///clade.db"
    """Store of the hierarchies: `sqlite:///FILE` or `dynamodb://TABLE?region=REGION&endpoint=URL`."""
    hierarchies: str = "graph.hierarchies.locations,graph.hierarchies.categories"
    """Modules and files that define the served hierarchies, comma-separated; this is the full list."""
    max_nodes: int = Field(10_000, ge=1)
    """Maximum number of nodes per response."""
    max_response_bytes: int = Field(BudgetLimits.bytes, ge=1)
    """Maximum size of a response, in bytes of JSON."""
    max_read_units: float = Field(BudgetLimits.read_units, gt=0)
    """Maximum number of DynamoDB read units per request, in at most half as many calls; reads of SQLite are counted in
    the same way. Lists may sort and filter 20 nodes for each unit."""
    max_depth: int = Field(LimitValues.max_depth, ge=1)
    """Maximum depth of nested fields in a document; `edges`, `node`, `nodes` and introspection are not counted."""
    request_seconds: float = Field(LimitValues.request_seconds, gt=0)
    """Maximum time to receive the body of a request, and maximum time to execute it, in seconds."""
    cache_mb: int = Field(128, ge=0)
    """Memory for cached data per process, in MB: half of it for responses, also compressed, a quarter each for decoded
    records and for pages of lists; 0 disables them. The store proves before each use that cached data is current."""
    settle_seconds: float = Field(2.0, ge=0)
    """Maximum delay of DynamoDB's indexes behind its table, in seconds."""
    max_stale_seconds: float = Field(0.0, ge=0, le=60)
    """Maximum age of a tree version that queries may use without reading it again, in seconds; on DynamoDB only, and
    the same for all servers and commands of a table."""
    max_age_seconds: int = Field(0, ge=0)
    """Time for which shared caches such as CDNs may use a response to a GET, in seconds, and as long again while they
    fetch a new one; 0 keeps responses out of them. Only with `CLADE_READS=open`."""
    reads: Literal["open", "granted"] = "open"
    """Read access: `open` to everyone, or as `granted` to each caller."""
    writes: Literal["off", "on", "granted"] = "off"
    """Write access: `off`, as `granted` to each caller, or `on`: also for every client on this machine while the server
    listens on a loopback address."""
    jwt_secret: str = Field("", repr=False)
    """Secret that signs tokens (HS256), at least 32 bytes."""
    jwt_secret_file: str = ""
    """File with the secret that signs tokens."""
    jwt_keys: str = ""
    """JWKS with the public keys of tokens: a file or an `https` URL. Its keys say which asymmetric algorithms are
    accepted."""
    jwt_issuer: str = ""
    """Required issuer of tokens (`iss`); mandatory with a JWKS."""
    jwt_audience: str = ""
    """Accepted audiences of tokens, comma-separated; mandatory with a JWKS."""
    jwt_audience_claim: str = "aud"
    """Claim of tokens that must hold one of the audiences; `client_id` for access tokens of Amazon Cognito."""
    jwt_grants_claim: str = "grants"
    """Claim with the grants of a token: a list of strings, or one string with blanks between them. Dots lead into
    objects, as in `realm_access.roles`."""
    max_inflight: int = Field(256, ge=1)
    """Maximum number of concurrent requests per process; others are rejected with `OVERLOADED`."""
    max_body_bytes: int = Field(262_144, ge=1)
    """Maximum size of a request body, in bytes."""
    federation_expose: str = ""
    """Additional fields in the subgraph schema, comma-separated: `node`, `nodes`, `changes`, `history`, `moves`,
    `mutations`."""

    demo: bool = False
    """Load the demo data when `clade serve` starts, into an empty store, whose table it creates."""
    production: bool = False
    """Production mode: introspection, GraphiQL and the explorer are off unless set, and any `Host` is accepted."""
    introspection: bool = True
    """Introspection, the schema in `_service`, and similar names in error messages."""
    graphiql: bool = True
    """GraphiQL for browsers at `/graphql`."""
    explorer: bool = True
    """The explorer for browsers at `/`; while it is off, `/` redirects to `/graphql`."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Log level: `info` logs each request, `warning` only slow and failed requests, `debug` also their documents,
    `error` only internal errors."""
    log_format: Literal["auto", "json", "text"] = "auto"
    """Log format: `json`, `text`, or `auto`: text on a terminal, else JSON."""
    metrics: str = ""
    """Address of the Prometheus metrics, `HOST:PORT` such as `127.0.0.1:9464`; empty disables them."""
    traces: Literal["off", "on"] = "off"
    """OpenTelemetry traces, configured by the variables of OpenTelemetry; `on` needs the extra `traces`."""
    drain_seconds: float = Field(2.0, ge=0, le=600)
    """Time between SIGTERM and the closing of the port, in seconds: `/readyz` returns 503 so that load balancers
    notice, and requests are still served."""
    stop_seconds: int = Field(20, ge=1, le=600)
    """Maximum time for running requests after the port is closed, in seconds; then they are cancelled."""

    trusted_documents: str = ""
    """JSON file of persisted (trusted) documents by id; clients may send the id instead of the document."""
    trusted_mode: Literal["only", "prefer"] = "only"
    """Accepted documents if there are persisted ones: `only` these, or `prefer`: others too."""
    cors_origins: str = ""
    """Allowed CORS origins, comma-separated, scheme, host and port such as `https://shop.example`; `*` for any."""

    def shows(self, name: Literal["introspection", "graphiql", "explorer"]) -> bool:
        """Whether this development feature is on; in production mode only if it is set explicitly."""
        return getattr(self, name) and (not self.production or name in self.model_fields_set)

    @property
    def keep_bytes(self) -> int:
        """The size in bytes of the record cache, and of the page cache."""
        return self.cache_mb * 250_000

    @property
    def response_cache_bytes(self) -> int:
        """The size in bytes of the response cache; compressed forms take up to a seventh more."""
        return self.cache_mb * 437_500

    @property
    def move_timing(self) -> MoveTiming:
        """The waits of large moves; commands need the same settings as the servers that read meanwhile."""
        return MoveTiming.of(self.request_seconds, self.settle_seconds, stale_seconds=self.max_stale_seconds)

    @field_validator(*_CHECKS)
    @classmethod
    def _check(cls, value: str, info: ValidationInfo) -> str:
        if value and info.field_name:
            if info.field_name in LISTS and not value.replace(",", " ").split():
                raise ValueError("it lists nothing; name at least one, or unset the variable")
            _CHECKS[info.field_name](value)
        return value


def descriptions() -> dict[str, str]:
    """The description of each setting: the docstring below it.

    pydantic would read the docstrings at each start of a command; only the reference page needs them.
    """
    found = {}
    statements = ast.parse(inspect.getsource(Settings)).body[0].body  # type: ignore[attr-defined]
    for statement, following in pairwise(statements):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = inspect.cleandoc(text)
    return {name: " ".join(text.split()) for name, text in found.items()}


def check_variables() -> None:
    """Raise BadInput for an unknown variable: a server without what it was to set may be open to everybody."""
    names = [name.upper() for name in Settings.model_fields]
    for variable in unknown_variables():
        name = _name(variable)
        near = [one for one in names if name and one.startswith(name)] or get_close_matches(name, names, n=1)
        way_out = (
            f"use {PREFIX}{near[0]}" if near else "all settings are in docs/reference/settings.md; use one of them"
        )
        raise BadInput(f"{shorten(variable)} is not a setting; {way_out}, or unset the variable.")


def allowed_values(field: FieldInfo) -> str:
    """The values that a setting allows, as words for a sentence; not for settings that allow any text."""
    if field.annotation is bool:
        return "true or false"
    if get_origin(field.annotation) is Literal:
        return f"one of {', '.join(get_args(field.annotation))}"
    kind = "a whole number" if field.annotation is int else "a number"
    bounds = [
        f"{words} {getattr(bound, name)}"
        for bound in field.metadata
        for name, words in _BOUNDS.items()
        if hasattr(bound, name)
    ]
    return f"{kind}, {' and '.join(bounds)}"


def unknown_variables() -> list[str]:
    """Environment variables with the prefix that are no settings; those of tests and of Kubernetes are left out."""
    return sorted(
        variable
        for variable, value in os.environ.items()
        if value
        and variable.upper().startswith(PREFIX)
        and (name := _name(variable)).lower() not in Settings.model_fields
        and not (name.startswith(TESTS) or _ADDRESS.match(value) or _PART_OF_ADDRESS.fullmatch(name))
    )


def _name(variable: str) -> str:
    return variable.upper().removeprefix(PREFIX)
