"""Which tests go first."""

# Modules with few but long tests: begun last, one of them would keep a single core busy when all else is done.
LONG = ("test_tutorials", "test_documents", "test_truth_coverage", "test_paper_tables", "test_theorems", "test_reproduction")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not item.path.stem.startswith(LONG))
