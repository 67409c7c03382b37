"""Fork server of workers: multiprocessing imports this module in a process of its own, and forks the workers from it.

The process has no threads, and ends with the last of those that may ask it for a fork.
"""

import contextlib
import os
import signal

from commands.server import make_app
from graph.settings import Settings

for ignored in (signal.SIGINT, signal.SIGTERM):  # which may be sent to all processes; only workers obey
    signal.signal(ignored, signal.SIG_IGN)
os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))

with contextlib.suppress(Exception):  # each fork raises it again
    settings = Settings()
    if settings.traces == "off":  # their exporter has a thread
        make_app()
        if settings.metrics:
            from graph.server.metrics import discard_gauges

            discard_gauges()
