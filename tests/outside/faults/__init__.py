"""Faults: large moves, killed servers, full disks, engines that fail or lag, two versions of a class, and files."""

from tests.outside.faults import engine_faults, files, full_disk, kills, large_move, late_indexes, two_versions
from tests.outside.parts import Part

PARTS = (
    Part("faults/large-move", large_move.run, large_move.PROMISES),
    Part("faults/kills", kills.run, kills.PROMISES),
    Part("faults/full-disk", full_disk.run, full_disk.PROMISES),
    Part("faults/engine", engine_faults.run, engine_faults.PROMISES),
    Part("faults/late-indexes", late_indexes.run, late_indexes.PROMISES),
    Part("faults/two-versions", two_versions.run, two_versions.PROMISES),
    Part("faults/files", files.run, files.PROMISES),
)
