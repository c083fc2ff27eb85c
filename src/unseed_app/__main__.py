"""Entry point of the ``unseed`` command: faults in the input end as one line, never as a traceback."""

import os
import sys
from typing import NoReturn

_INTERRUPTED = 130  # what shells expect of a command that was stopped with Ctrl-C
_EXTRAS = {
    "typer": ("the command line needs", "cli,plots"),
    "pandas": ("tables need", "frames"),
    "pyarrow": ("Parquet files need", "parquet"),
    "openpyxl": ("Excel workbooks need", "excel"),
    "matplotlib": ("figures need", "plots"),
}


def main() -> None:
    """Run the command line."""
    try:
        from unseed.errors import UnseedError
        from unseed_app.cli import app

        app()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except UnseedError as fault:
        _stop(str(fault))
    except ModuleNotFoundError as missing:
        if missing.name not in _EXTRAS:
            raise
        what, extra = _EXTRAS[missing.name]
        _stop(f"{what} {missing.name}; install it with: pip install 'unseed[{extra}]'")
    except OSError as fault:
        if fault.filename is not None:
            raise
        # Files are looked after where they are used; one without a name is the screen, or what stands for it.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - Python writes what is left when it ends, and would fail again
        _stop(f"standard output could not be written: {fault.strerror or fault}")


def _stop(sentence: str) -> NoReturn:
    print(f"unseed: {sentence}", file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    main()
