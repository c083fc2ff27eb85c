"""Entry point of the ``unseed`` command: faults in the input end as one line, never as a traceback."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from unseed.cli import app
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


if __name__ == "__main__":
    main()
