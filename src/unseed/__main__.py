"""``python -m unseed``: the command line, which stands beside the library."""

from importlib import import_module

if __name__ == "__main__":
    import_module("unseed_app.__main__").main()
