"""Faults: large moves, killed servers, full disks, engines that fail or lag, and files that are replaced."""

from tests.outside.faults import kills, large_move
from tests.outside.parts import Part

PARTS = (
    Part("faults/large-move", large_move.run, large_move.PROMISES),
    Part("faults/kills", kills.run, kills.PROMISES),
)
