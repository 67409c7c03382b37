"""Figures of one request, and the bounds that they must keep."""

from dataclasses import dataclass

from resolvers.session.budget import BudgetLimits
from store.engine.usage import PAGE_UNITS, REQUESTS_A_UNIT


@dataclass(frozen=True)
class Measured:
    """What one request cost the server. Where it was `ended` by the client's limit, the figures are the least."""

    cpu: float
    """Seconds of CPU, of all threads."""
    blocked: float
    """The most CPU that the event loop's thread took before another had its turn, in seconds."""
    stalled: float
    """The longest time that the event loop did nothing else, in seconds; on a busy machine others had the core."""
    health: float
    """The longest wait of another client for `/healthz`, in seconds."""
    seconds: float
    peak_mb: float
    """How much its memory grew at most."""
    left_mb: float
    """How much of that stayed, after garbage was collected."""
    answer_bytes: int
    requests: int
    """To the store."""
    units: float
    """Of DynamoDB, read."""
    status: int | None
    """Of the answer; None where none came."""
    ended: bool = False

    @property
    def is_refused(self) -> bool:
        return self.status is not None and self.status >= 400


@dataclass(frozen=True)
class Bounds:
    """The most that one request may cost by default."""

    cpu: float = 0.5
    blocked: float = 0.1
    peak_mb: float = 100.0
    left_mb: float = 100.0
    answer_bytes: float = 20_000_000
    units: float = BudgetLimits.read_units + 4 * PAGE_UNITS  # a gateway's 1,000 entities take 1,502; some are under way
    requests: float = BudgetLimits.read_units * REQUESTS_A_UNIT + 32  # which are under way
    refusal_cpu: float = 0.02

    def shares(self, measured: Measured) -> dict[str, float]:
        """How much of each bound is taken; above 1 is too much."""
        shares = {
            "cpu": measured.cpu / self.cpu,
            "blocked": measured.blocked / self.blocked,
            "peak_mb": measured.peak_mb / self.peak_mb,
            "left_mb": measured.left_mb / self.left_mb,
            "answer_bytes": measured.answer_bytes / self.answer_bytes,
            "units": measured.units / self.units,
            "requests": measured.requests / self.requests,
        }
        return shares | ({"refusal": measured.cpu / self.refusal_cpu} if measured.is_refused else {})

    def over(self, measured: Measured) -> list[str]:
        """The bounds that do not hold, in words."""
        over = [f"{name} {share:.1f} times its bound" for name, share in self.shares(measured).items() if share > 1]
        return (
            over
            + (["ended by the client"] if measured.ended else [])
            + (["no answer"] if measured.status is None and not measured.ended else [])
        )


DEFAULT = Bounds()
# Where others use the same cores: a second of CPU does less there, so what is timed gets more room. Counts do not.
CROWDED = Bounds(cpu=1.25, blocked=0.3, refusal_cpu=0.1)
