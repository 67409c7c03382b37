"""Settings, each with its default and a description that names the unit; nothing else reads the environment."""

import os
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any, Literal, get_args, get_origin

from pydantic import Field, ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, SettingsConfigDict

from graph.federation_exposure import exposed
from graph.operation.document_limits import DocumentLimits
from graph.operation.persisted_documents import read_trusted
from graph.unknown_settings import PREFIX, ignored, reject_misspelt
from resolvers.session.budget import RELATION_FIELDS, BudgetLimits
from store.background_moves.timing import MoveTiming
from store.errors import BadInput
from store.store_url import SQLiteUrl, parse_store_url
from store.text import shorten

_BOUNDS = {"ge": "at least", "gt": "above", "le": "at most"}


class Settings(BaseSettings):
    """The settings, read from environment variables with the prefix `CLADE_`; an empty variable counts as unset.

    Raises BadInput for an invalid value, and for a variable whose name is a former or misspelt name of a setting.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, allow_inf_nan=False, frozen=True)

    def __init__(self, **values: Any) -> None:
        reject_misspelt(os.environ, _names())
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

    store: str = Field(
        "sqlite:///clade.db",
        description="Store of the hierarchies: `sqlite:///FILE` or `dynamodb://TABLE?region=REGION&endpoint=URL`.",
    )
    hierarchies: str = Field(
        "graph.hierarchies.locations,graph.hierarchies.categories",
        description="Modules and files that define the served hierarchies, comma-separated; this is the full list.",
    )
    max_nodes: int = Field(10_000, ge=1, description="Maximum number of nodes per response.")
    max_response_fields: int = Field(
        BudgetLimits.fields,
        ge=1,
        description="Maximum number of fields per response, over all its objects; a field that returns nodes counts as "
        f"{RELATION_FIELDS}.",
    )
    max_response_bytes: int = Field(
        BudgetLimits.bytes, ge=1, description="Maximum size of a response, in bytes of JSON."
    )
    max_read_units: float = Field(
        BudgetLimits.read_units,
        gt=0,
        description="Maximum number of DynamoDB read units per request, in at most half as many calls; reads of SQLite "
        "are counted in the same way.",
    )
    max_entities: int = Field(1_000, ge=1, description="Maximum number of representations in `_entities` per request.")
    max_tokens: int = Field(
        DocumentLimits.max_tokens,
        ge=1,
        description="Maximum number of tokens in a document; also its maximum number of comments.",
    )
    max_depth: int = Field(
        DocumentLimits.max_depth,
        ge=1,
        description="Maximum depth of nested fields in a document; `edges`, `node`, `nodes` and introspection are not "
        "counted.",
    )
    max_fields: int = Field(
        DocumentLimits.max_fields,
        ge=1,
        description="Maximum number of fields and fragment spreads in a document, with all fragments expanded.",
    )
    max_repeats: int = Field(
        DocumentLimits.max_repeats, ge=1, description="Maximum occurrences of one field in one selection set."
    )
    max_aliases: int = Field(
        DocumentLimits.max_aliases,
        ge=0,
        description="Maximum number of aliases in a document; aliases of `_entities` are not counted.",
    )
    max_root_fields: int = Field(
        DocumentLimits.max_root_fields,
        ge=1,
        description="Maximum number of root fields in a document; `_entities` is not counted.",
    )
    max_directives: int = Field(
        DocumentLimits.max_directives, ge=0, description="Maximum number of directives in a document."
    )
    max_directives_at_once: int = Field(
        DocumentLimits.max_directives_at_once,
        ge=0,
        description="Maximum number of directives at one place of a document.",
    )
    request_seconds: float = Field(
        DocumentLimits.request_seconds,
        gt=0,
        description="Maximum time to receive a request, and maximum time to answer it, in seconds.",
    )
    max_parallel_reads: int = Field(32, ge=1, description="Maximum number of parallel store reads per request.")
    record_cache_mb: int = Field(
        64,
        ge=0,
        description="Memory for decoded records, in MB; 0 disables the cache. With SQLite, half of it is for pages of "
        "lists.",
    )
    response_cache_mb: int = Field(
        64,
        ge=0,
        description="Memory for responses, in MB; 0 disables the cache. Before each use the store proves that a cached "
        "response is current.",
    )
    settle_seconds: float = Field(
        2.0, ge=0, description="Maximum delay of DynamoDB's indexes behind its table, in seconds."
    )
    reads: Literal["open", "granted"] = Field(
        "open", description="Read access: `open` to everyone, or as `granted` to each caller."
    )
    writes: Literal["off", "on", "granted"] = Field(
        "off",
        description="Write access: `off`, as `granted` to each caller, or `on`: also for every client on this machine "
        "while the server listens on a loopback address.",
    )
    jwt_secret: str = Field("", repr=False, description="Secret that signs tokens (HS256), at least 32 bytes.")
    jwt_secret_file: str = Field("", description="File with the secret that signs tokens.")
    jwt_keys: str = Field("", description="JWKS with the public keys of tokens: a file or an `https` URL.")
    jwt_algorithms: str = Field(
        "RS256,ES256", description="Accepted signature algorithms with a JWKS, comma-separated."
    )
    jwt_issuer: str = Field("", description="Required issuer of tokens (`iss`); mandatory with a JWKS.")
    jwt_audience: str = Field("", description="Required audience of tokens (`aud`); mandatory with a JWKS.")
    jwt_grants_claim: str = Field("grants", description="Claim with the grants of a token, a list of strings.")
    move_wait_seconds: float = Field(
        5.0,
        ge=0,
        description="Maximum time for which a mutation waits for a move of several transactions before it returns the "
        "move as running, in seconds; at most half of `CLADE_REQUEST_SECONDS`.",
    )
    max_inflight: int = Field(
        256,
        ge=1,
        description="Maximum number of concurrent requests per process; others are rejected with `OVERLOADED`.",
    )
    max_connections: int = Field(
        4_096,
        ge=1,
        description="Maximum number of client connections per process; those idle longest are closed.",
    )
    max_body_bytes: int = Field(262_144, ge=1, description="Maximum size of a request body, in bytes.")
    plan_cache_documents: int = Field(
        1_000, ge=1, description="Maximum number of cached documents, parsed, validated and compiled."
    )
    federation_expose: str = Field(
        "",
        description="Additional fields in the subgraph schema, comma-separated: `node`, `nodes`, `changes`, `history`, "
        "`moves`, `mutations`.",
    )

    production: bool = Field(
        False,
        description="Production mode: introspection, suggestions and GraphiQL are off unless set, and any `Host` is "
        "accepted.",
    )
    introspection: bool = Field(True, description="Introspection, and the schema in `_service`.")
    suggestions: bool = Field(True, description="Suggestions of similar names in error messages.")
    graphiql: bool = Field(True, description="GraphiQL for browsers at `/graphql`.")

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info",
        description="Log level: `info` logs each request, `warning` only slow and failed requests, `debug` also their "
        "documents, `error` only internal errors.",
    )
    log_format: Literal["auto", "json", "text"] = Field(
        "auto", description="Log format: `json`, `text`, or `auto`: text on a terminal, else JSON."
    )
    slow_seconds: float = Field(1.0, gt=0, description="Duration from which a request is logged as slow, in seconds.")
    metrics: str = Field(
        "", description="Address of the Prometheus metrics, `HOST:PORT` such as `127.0.0.1:9464`; empty disables them."
    )
    traces: Literal["off", "on"] = Field(
        "off", description="OpenTelemetry traces, configured by its own variables; `on` needs the extra `traces`."
    )
    drain_seconds: float = Field(
        2.0,
        ge=0,
        le=600,
        description="Time between SIGTERM and the closing of the port, in seconds: `/readyz` returns 503 so that load "
        "balancers notice, and requests are still served.",
    )
    stop_seconds: int = Field(
        20,
        ge=1,
        le=600,
        description="Maximum time for running requests after the port is closed, in seconds; then they are cancelled.",
    )

    trusted_documents: str = Field(
        "", description="JSON file of trusted documents by id; clients may send the id instead of the document."
    )
    trusted_mode: Literal["only", "prefer"] = Field(
        "only",
        description="Accepted documents if there are trusted ones: `only` these, or `prefer`: others too.",
    )
    cors_origins: str = Field(
        "", description="Allowed CORS origins, comma-separated, such as `https://shop.example`; `*` for any."
    )

    def shows(self, name: Literal["introspection", "suggestions", "graphiql"]) -> bool:
        """Whether this development feature is on; in production mode only if it is set explicitly."""
        return getattr(self, name) and (not self.production or name in self.model_fields_set)

    @property
    def keep_bytes(self) -> int:
        """The size in bytes of the record cache, and of the page cache, which only SQLite uses."""
        return self.record_cache_mb * (500_000 if isinstance(parse_store_url(self.store), SQLiteUrl) else 1_000_000)

    @property
    def move_timing(self) -> MoveTiming:
        """The waits of background moves; commands need the same settings as the servers that read meanwhile."""
        return MoveTiming.of(self.request_seconds, self.settle_seconds, self.move_wait_seconds)

    @field_validator("federation_expose")
    @classmethod
    def _is_exposable(cls, words: str) -> str:
        exposed(words)
        return words

    @field_validator("traces")
    @classmethod
    def _is_installed(cls, traces: str) -> str:
        if traces == "on" and find_spec("opentelemetry.instrumentation") is None:
            raise ValueError("install clade-graphql[traces] first")
        return traces

    @field_validator("metrics")
    @classmethod
    def _is_address(cls, address: str) -> str:
        if address:
            host_and_port(address)
        return address

    @field_validator("trusted_documents")
    @classmethod
    def _is_readable(cls, file: str) -> str:
        read_trusted(file)
        return file


def ignored_variables() -> list[str]:
    """Environment variables with the prefix of settings that resemble no setting."""
    return ignored(os.environ, _names())


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


def _names() -> list[str]:
    return [name.upper() for name in Settings.model_fields]


def host_and_port(address: str) -> tuple[str, int]:
    """The parts of `HOST:PORT`; an IPv6 address stands in brackets. Raises ValueError."""
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdigit() and int(port) < 65_536):
        raise ValueError("it must be HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)
