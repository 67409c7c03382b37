"""Content negotiation: the media type of a response by the Accept header (RFC 9110)."""

from collections.abc import Sequence
from functools import lru_cache

JSON = "application/json"
GRAPHQL = "application/graphql-response+json"
HTML = "text/html"

EXACT, SUBTYPES, ANYTHING = 2, 1, 0


@lru_cache(maxsize=256)
def choose(accept: str, offers: Sequence[str]) -> str | None:
    """The offer with the highest quality in the Accept header; None if it accepts none.

    Of offers with the same quality, the first one that the client names is chosen, otherwise JSON: a client that sends
    `*/*` may not know GraphQL's own media type.
    """
    ranges = [parse(part) for part in accept.split(",") if part.strip()]
    if not ranges:
        return JSON
    best, best_rank = None, (0.0, -1, False)
    for offer in offers:
        specificity, quality = preference(offer, ranges)
        rank = (quality, specificity, specificity < EXACT and offer == JSON)
        if quality > 0 and rank > best_rank:
            best, best_rank = offer, rank
    return best


@lru_cache(maxsize=256)
def is_json(content_type: str) -> bool:
    """Whether this Content-Type is JSON in UTF-8, the default charset."""
    media_type, parameters = parse(content_type)
    return media_type == JSON and parameters.get("charset", "utf-8").lower() in ("utf-8", "utf8")


def preference(offer: str, ranges: Sequence[tuple[str, dict[str, str]]]) -> tuple[int, float]:
    """Specificity and quality of the most specific media range that includes the offer."""
    specificities = {offer: EXACT, offer.split("/")[0] + "/*": SUBTYPES, "*/*": ANYTHING}
    found = [
        (specificities[media_range], quality_of(parameters))
        for media_range, parameters in ranges
        if media_range in specificities
    ]
    return max(found, default=(ANYTHING, 0.0))


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
