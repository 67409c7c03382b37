"""How long the moves of a command wait."""

from graph.settings import Settings
from store.background_moves.timing import MoveTiming


def move_timing() -> MoveTiming:
    """By the settings, which must be those of the servers that read meanwhile."""
    settings = Settings()
    return MoveTiming.of(settings.request_seconds, settings.settle_seconds, settings.move_wait_seconds)
