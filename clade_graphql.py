"""Entry point of the command `clade`, in a module that imports nothing before Ctrl-C is handled."""

import sys


def run() -> None:
    """Run the command line."""
    try:
        from commands.main import run_process

        run_process()
    except KeyboardInterrupt:  # while the modules were imported, before commands.interrupt catches it
        print("clade: Stopped.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    run()
