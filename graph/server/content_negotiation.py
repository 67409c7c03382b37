"""Content negotiation: the media type of a response by the Accept header (RFC 9110)."""

from collections.abc import Sequence
from functools import lru_cache

JSON = "application/json"
GRAPHQL = "application/graphql-response+json"
EVENT_STREAM = "text/event-stream"
HTML = "text/html"

EXACT, SUBTYPES, ANYTHING = 2, 1, 0


@lru_cache(256)
def choose(accept: str, offers: Sequence[str]) -> str | None:
    """The offer with the highest quality in the Accept header; None if it accepts none.

    Of offers with the same quality, the first one that the client names is chosen, otherwise JSON: a client that sends
    `*/*` may not know GraphQL's own media type.
    """
    ranges = [parse(part) for part in accept.split(",") if part.strip()]
    if not ranges:
        return JSON
    ranks = {offer: rank_of(offer, ranges) for offer in offers}
    best = max(offers, key=ranks.__getitem__)
    return best if ranks[best][0] > 0 else None


@lru_cache(256)
def is_json(content_type: str) -> bool:
    """Whether this Content-Type is JSON in UTF-8, the default charset."""
    media_type, parameters = parse(content_type)
    return media_type == JSON and parameters.get("charset", "utf-8").lower() in ("utf-8", "utf8")


def rank_of(offer: str, ranges: Sequence[tuple[str, dict[str, str]]]) -> tuple[float, int, bool]:
    """Quality and specificity of the most specific media range that includes the offer, and whether it is JSON by a
    wildcard.
    """
    specificities = {offer: EXACT, offer.split("/")[0] + "/*": SUBTYPES, "*/*": ANYTHING}
    specificity, quality = max(
        [(specificities[name], quality_of(parameters)) for name, parameters in ranges if name in specificities],
        default=(ANYTHING, 0.0),
    )
    return quality, specificity, specificity < EXACT and offer == JSON


def quality_of(parameters: dict[str, str]) -> float:
    try:
        return min(max(float(parameters.get("q", "1")), 0.0), 1.0)
    except ValueError:
        return 0.0


def parse(value: str) -> tuple[str, dict[str, str]]:
    """A media type or range with its parameters; names in lower case, values without quotes."""
    media_type, *rest = value.split(";")
    pairs = (parameter.partition("=") for parameter in rest)
    return media_type.strip().lower(), {name.strip().lower(): text.strip().strip('"') for name, _, text in pairs}
