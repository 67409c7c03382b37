"""Every setting, with its unit, its default and what it is for; nothing else reads the environment."""

import os
from importlib.util import find_spec
from typing import Any, Literal, get_args, get_origin

from pydantic import Field, ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, SettingsConfigDict

from graph.federation_exposure import exposed
from graph.operation.document_limits import DocumentLimits
from graph.operation.persisted_documents import read_trusted
from graph.unknown_settings import PREFIX, ignored, refuse_misspelt
from resolvers.session.budget import RELATION_FIELDS, BudgetLimits
from store.errors import BadInput
from store.store_url import SQLiteUrl, parse_store_url
from store.text import shorten

_BOUNDS = {"ge": "at least", "gt": "above", "le": "at most"}


class Settings(BaseSettings):
    """Read from environment variables that begin with `CLADE_`, of which an empty one is none.

    Raises BadInput for a value that cannot be taken, and for a variable with nearly the name of a setting.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, allow_inf_nan=False, frozen=True)

    def __init__(self, **values: Any) -> None:
        refuse_misspelt(os.environ, _names())
        try:
            super().__init__(**values)
        except ValidationError as error:
            wrong = error.errors()[0]
            name, value = str(wrong["loc"][0]), shorten(str(wrong["input"]))
            told = wrong.get("ctx", {}).get("error")  # by a check of ours
            reason = told or f"it must be {taken_by(type(self).model_fields[name])}"
            raise BadInput(f'{PREFIX}{name.upper()} cannot be "{value}": {reason}.') from None

    store: str = Field(
        "sqlite:///clade.db",
        description="Where the hierarchies lie: `sqlite:///FILE` or `dynamodb://TABLE?region=REGION&endpoint=URL`.",
    )
    hierarchies: str = Field(
        "graph.hierarchies.locations,graph.hierarchies.categories",
        description="The modules that define the hierarchies to serve, the full list, divided by commas.",
    )
    max_nodes: int = Field(10_000, ge=1, description="How many nodes one request may return, in nodes.")
    max_response_fields: int = Field(
        BudgetLimits.fields,
        ge=1,
        description="How much one response may hold, in fields of all its objects; one that leads to nodes counts as "
        f"{RELATION_FIELDS}.",
    )
    max_response_bytes: int = Field(
        BudgetLimits.bytes, ge=1, description="How long one response may be, in bytes of JSON."
    )
    max_read_units: float = Field(
        BudgetLimits.read_units,
        gt=0,
        description="How much one request may read, in DynamoDB's read units, by at most half as many requests to the "
        "store; with SQLite they are reckoned alike.",
    )
    max_entities: int = Field(
        1_000, ge=1, description="How many entities a gateway may ask for in one request, in representations."
    )
    max_tokens: int = Field(
        DocumentLimits.max_tokens,
        ge=1,
        description="How long the query of a request may be, in tokens and in comments.",
    )
    max_depth: int = Field(
        DocumentLimits.max_depth,
        ge=1,
        description="How deep a query may go, in fields within fields; `edges`, `node`, `nodes` and what asks for the "
        "schema are not counted.",
    )
    max_fields: int = Field(
        DocumentLimits.max_fields,
        ge=1,
        description="How much a query may ask for with its fragments written out, in fields and fragments.",
    )
    max_repeats: int = Field(
        DocumentLimits.max_repeats, ge=1, description="How often a query may ask for one field at one place, in times."
    )
    max_aliases: int = Field(
        DocumentLimits.max_aliases,
        ge=0,
        description="How many fields of a query may have another name, in aliases; those of `_entities` are not "
        "counted.",
    )
    max_root_fields: int = Field(
        DocumentLimits.max_root_fields,
        ge=1,
        description="How many fields a query may have at its root, in fields; `_entities` is not counted.",
    )
    max_directives: int = Field(
        DocumentLimits.max_directives, ge=0, description="How many directives a query may have, in directives."
    )
    max_directives_at_once: int = Field(
        DocumentLimits.max_directives_at_once,
        ge=0,
        description="How many directives may stand at one place of a query, in directives.",
    )
    request_seconds: float = Field(
        DocumentLimits.request_seconds,
        gt=0,
        description="How long a request may take to arrive, and then to be answered, in seconds.",
    )
    max_parallel_reads: int = Field(
        32, ge=1, description="How many reads of one request may run at a time, in requests to the store."
    )
    keep_mb: int = Field(
        64,
        ge=0,
        description="How much of the nodes read last is kept decoded in memory, in MB; 0 for nothing. With SQLite half "
        "of it is for whole lists, which are kept until something changes.",
    )
    cache_mb: int = Field(
        64, ge=0, description="How many whole answers are kept while they are proven to be current, in MB; 0 for none."
    )
    settle_seconds: float = Field(
        2.0, ge=0, description="How long DynamoDB's indexes may trail behind its table, in seconds."
    )
    reads: Literal["open", "granted"] = Field(
        "open", description="Who may read: everybody everything (`open`), or each caller what is `granted`."
    )
    writes: Literal["off", "on", "granted"] = Field(
        "off",
        description="Who may write: nobody (`off`), whom it is `granted`, or also everybody on this machine while the "
        "server listens on it alone (`on`).",
    )
    jwt_secret: str = Field(
        "", repr=False, description="The secret that tokens are signed with (HS256), of 32 bytes at least."
    )
    jwt_secret_file: str = Field("", description="A file that holds this secret.")
    jwt_keys: str = Field(
        "", description="A JWKS file, or its `https` address: the public keys that tokens are signed with."
    )
    jwt_algorithms: str = Field(
        "RS256,ES256", description="The algorithms that tokens may be signed with by these keys, divided by commas."
    )
    jwt_issuer: str = Field("", description="Who must have issued a token (`iss`); with a JWKS it must be set.")
    jwt_audience: str = Field("", description="Whom a token must be for (`aud`); with a JWKS it must be set.")
    jwt_grants_claim: str = Field("grants", description="The claim of a token that holds its grants, a list of texts.")
    move_wait_seconds: float = Field(
        5.0,
        ge=0,
        description="How long a mutation waits for a move that takes several transactions before it answers that it is "
        "under way, in seconds; half of `CLADE_REQUEST_SECONDS` at most.",
    )
    max_inflight: int = Field(
        256,
        ge=1,
        description="How many requests one process may answer at a time, in requests; others are told to come again.",
    )
    max_connections: int = Field(
        4_096,
        ge=1,
        description="Maximum number of clients of one process, in connections; those that wait longest are closed.",
    )
    max_body_bytes: int = Field(262_144, ge=1, description="How large the body of a request may be, in bytes.")
    plan_cache_documents: int = Field(
        1_000, ge=1, description="How many parsed and validated documents are kept, in documents."
    )
    federation_expose: str = Field(
        "",
        description="What the subgraph's schema shows beyond the usual, divided by commas: `node`, `nodes`, `changes`, "
        "`history`, `moves`, `mutations`.",
    )

    production: bool = Field(
        False,
        description="Whether the next three are off unless they are set themselves: a server in the open needs none.",
    )
    introspection: bool = Field(True, description="Whether clients may ask for the schema, also by `_service`.")
    suggestions: bool = Field(True, description="Whether the error for an unknown name tells names that are like it.")
    graphiql: bool = Field(True, description="Whether browsers find GraphiQL at `/graphql`.")

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info",
        description="What is logged: `info` has a line for each request, `warning` only slow and failed ones, `debug` "
        "their queries too; `error` is for mistakes of ours.",
    )
    log_format: Literal["auto", "json", "text"] = Field(
        "auto", description="How it is logged: `json`, `text`, or text at a terminal alone."
    )
    slow_seconds: float = Field(1.0, gt=0, description="From when on a request is a slow one, in seconds.")
    metrics: str = Field(
        "", description="Where Prometheus finds metrics, as `HOST:PORT`, like `127.0.0.1:9464`; empty for none."
    )
    traces: Literal["off", "on"] = Field(
        "off", description="Whether OpenTelemetry gets spans, as its own variables say: `on` needs the extra `traces`."
    )
    drain_seconds: float = Field(
        2.0,
        ge=0,
        le=600,
        description="How long a server that was told to stop (SIGTERM) still serves while `/readyz` says no, in "
        "seconds: as long as a load balancer takes to notice.",
    )
    stop_seconds: int = Field(
        20, ge=1, le=600, description="How long what runs then may take before it is cancelled, in seconds."
    )

    trusted_documents: str = Field(
        "", description="A JSON file of documents by their ids, which clients may send instead of the documents."
    )
    trusted_mode: Literal["only", "prefer"] = Field(
        "only",
        description="Whether `only` trusted documents are answered, where there are any, or others too: `prefer`.",
    )
    cors_origins: str = Field(
        "",
        description="The origins of pages that may ask this server, like `https://shop.example`, divided by commas; "
        "`*` for any.",
    )

    def shows(self, name: Literal["introspection", "suggestions", "graphiql"]) -> bool:
        """Whether one of these is on."""
        return getattr(self, name) and (not self.production or name in self.model_fields_set)

    @property
    def keep_bytes(self) -> int:
        """How much may be kept of nodes, and of lists as much again: these are kept with SQLite alone."""
        return self.keep_mb * (500_000 if isinstance(parse_store_url(self.store), SQLiteUrl) else 1_000_000)

    @field_validator("federation_expose")
    @classmethod
    def _known(cls, words: str) -> str:
        exposed(words)
        return words

    @field_validator("traces")
    @classmethod
    def _installed(cls, traces: str) -> str:
        if traces == "on" and find_spec("opentelemetry.instrumentation") is None:
            raise ValueError("install clade-graphql[traces] first")
        return traces

    @field_validator("metrics")
    @classmethod
    def _address(cls, address: str) -> str:
        if address:
            host_and_port(address)
        return address

    @field_validator("trusted_documents")
    @classmethod
    def _readable(cls, file: str) -> str:
        read_trusted(file)
        return file


def ignored_variables() -> list[str]:
    """The variables of the environment that begin like settings and are nothing like one."""
    return ignored(os.environ, _names())


def taken_by(field: FieldInfo) -> str:
    """What a setting takes, if not any text, as words for a sentence."""
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
    """The parts of `HOST:PORT`, where a host with colons stands in brackets. Raises ValueError."""
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdigit() and int(port) < 65_536):
        raise ValueError("it must be HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)
