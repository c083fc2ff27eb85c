"""Entry point of the ``unseed`` command: faults in the input end as one line, never as a traceback."""

import os
import sys

_INTERRUPTED = 130  # what shells expect of a command that was stopped with Ctrl-C


def main() -> None:
    """Run the command line."""
    try:
        _run()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


def _run() -> None:
    try:
        from unseed_app.cli import app
    except ModuleNotFoundError as missing:
        if missing.name != "typer":
            raise
        sys.exit("unseed: the command line needs typer; install it with: pip install 'unseed[cli,plots]'")
    from unseed.errors import UnseedError

    try:
        app()
    except UnseedError as fault:
        print(f"unseed: {fault}", file=sys.stderr)
        sys.exit(1)
    except OSError as fault:
        if fault.filename is not None:
            raise
        # Files are looked after where they are used; one without a name is the screen, or what stands for it.
        print(f"unseed: standard output could not be written: {fault.strerror or fault}", file=sys.stderr)
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - Python writes what is left when it ends, and would fail again
        sys.exit(1)


if __name__ == "__main__":
    main()
