"""Clade from outside: what its documentation promises, tried on real processes, files and sockets.

Nothing of Clade is imported here. The parts start the command `clade`, speak HTTP, read and write files, and take what
is right from `docs/` alone, so they can be read as a specification. `python -m tests.outside --help` runs them for any
time.
"""
