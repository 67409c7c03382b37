"""Figures of one request, and their bounds."""

from dataclasses import dataclass, replace

from bench.cost.machine import slowness
from resolvers.session.budget import BudgetLimits
from store.engine.usage import PAGE_UNITS, REQUESTS_A_UNIT


@dataclass(frozen=True)
class Measured:
    """The cost of one request. If the client `ended` it, the figures are lower bounds."""

    cpu: float
    """Seconds of CPU, of all threads."""
    blocked: float
    """The longest CPU time of the event loop's thread without yielding, in seconds."""
    stalled: float
    """The longest time without yielding, in seconds; on a busy machine it includes other processes."""
    health: float
    """The longest wait of another client for `/healthz`, in seconds."""
    seconds: float
    peak_mb: float
    """Peak growth of memory."""
    left_mb: float
    """Growth of memory after garbage collection."""
    answer_bytes: int
    requests: int
    """Requests to the store."""
    units: float
    """Read units of DynamoDB."""
    status: int | None
    """HTTP status; None without a response."""
    ended: bool = False

    @property
    def is_refused(self) -> bool:
        return self.status is not None and self.status >= 400


@dataclass(frozen=True)
class Bounds:
    """Bounds of the cost of one request with default settings."""

    cpu: float = 0.5
    blocked: float = 0.1
    peak_mb: float = 100.0
    left_mb: float = 100.0
    answer_bytes: float = 20_000_000
    units: float = BudgetLimits.read_units + 4 * PAGE_UNITS  # a gateway's 1,000 entities take 1,502; some are under way
    requests: float = BudgetLimits.read_units * REQUESTS_A_UNIT + 32  # which are under way
    refusal_cpu: float = 0.02

    def shares(self, measured: Measured) -> dict[str, float]:
        """Each figure divided by its bound; above 1 is too much."""
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

    def slower(self, factor: float) -> "Bounds":
        """The same bounds with so many times the room for what is timed."""
        return replace(
            self, cpu=self.cpu * factor, blocked=self.blocked * factor, refusal_cpu=self.refusal_cpu * factor
        )

    def over(self, measured: Measured) -> list[str]:
        """Messages about the bounds that were exceeded."""
        over = [f"{name} {share:.1f} times its bound" for name, share in self.shares(measured).items() if share > 1]
        return (
            over
            + (["ended by the client"] if measured.ended else [])
            + (["no answer"] if measured.status is None and not measured.ended else [])
        )


DEFAULT = Bounds()
# Where others use the same cores: a second of CPU does less there, so what is timed gets more room. Counts do not.
CROWDED = Bounds(cpu=1.8, blocked=0.3, refusal_cpu=0.1)
CROWDED_SLOWNESS = 2.0  # up to which CROWDED has room; a slower machine gets more, in proportion


def crowded() -> Bounds:
    """CROWDED, with more room on a machine that is slower than it is meant for. The machine is measured now."""
    return CROWDED.slower(max(1.0, slowness() / CROWDED_SLOWNESS))
