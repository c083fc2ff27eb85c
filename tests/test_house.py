"""The house rules, read from the syntax trees: who asks for whose type, how long things are, what is private."""

import ast
import importlib
import pkgutil
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import unseed.engines
import unseed.networks

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
FILES = sorted(SRC.rglob("*.py"))
OWNERS = (unseed.engines, unseed.networks)  # packages whose classes nobody else asks for

# Ceilings that only come down: what still breaks a rule today. Lower them whenever the tree allows it.
TYPE_QUESTIONS = 0
LONG_FILES = 0
LONG_FUNCTIONS = 0
REGISTRIES = 0
LINES_OF_LIBRARY_AND_APPLICATION = 22_900  # goal: 12,000

LINES_OF_A_FILE, LINES_OF_A_FUNCTION = 300, 50
DISTRIBUTIONS = {"sklearn": "scikit-learn", "laplace": "laplace-torch", "dask": "distributed"}  # where the name differs
PUBLIC = {"costs", "engines", "errors", "intervals", "kernels", "losses", "networks", "plots", "report", "tasks"}


@cache
def tree(path):
    return ast.parse(path.read_text())


def name_of(path):
    return path.relative_to(SRC).as_posix()


def package_of(module):
    return SRC.joinpath(*module.__name__.split("."))


def classes_of(package):
    """Every class that the modules of a package define."""
    names = [found.name for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    members = [(name, one) for name in names for one in vars(importlib.import_module(name)).values()]
    return {one for name, one in members if isinstance(one, type) and one.__module__ == name}


def asked_for_by_nobody_else(one):
    """Engines, trained networks, batches of networks, and the protocols of these packages."""
    is_engine = hasattr(one, "fit") and hasattr(one, "converges")
    is_trained = hasattr(one, "predict") and hasattr(one, "numbers_per_point")
    is_batch = hasattr(one, "draw") and hasattr(one, "outputs")
    return is_engine or is_trained or is_batch or getattr(one, "_is_protocol", False)


def terminal(node):
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


def parts(node):
    """Names that a tuple or a union of types is made of."""
    if isinstance(node, ast.Tuple):
        return [name for entry in node.elts for name in parts(entry)]
    if isinstance(node, ast.BinOp):
        return parts(node.left) + parts(node.right)
    return [terminal(node)]


def with_aliases(names, trees):
    """The names, and all others that stand for them or for a choice among them: imports as …, A = B, A = (B, C), A = B | C."""
    known, size = set(names), -1
    while size != len(known):
        size = len(known)
        for node in (node for one in trees for node in ast.walk(one)):
            if isinstance(node, ast.ImportFrom):
                known |= {entry.asname for entry in node.names if entry.asname and entry.name in known}
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and known & set(parts(node.value)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                known |= {target.id for target in targets if isinstance(target, ast.Name)}
    return known


def type_questions(path_tree, names):
    """Lines that ask whether something is of one of these types, in whatever way."""
    for node in ast.walk(path_tree):
        asked = []
        if isinstance(node, ast.Call) and terminal(node.func) in ("isinstance", "issubclass") and len(node.args) == 2:
            asked = parts(node.args[1])
        elif isinstance(node, ast.Compare) and any(
            isinstance(side, ast.Call) and terminal(side.func) == "type" for side in (node.left, *node.comparators)
        ):
            asked = [name for side in (node.left, *node.comparators) for name in parts(side)]
        elif isinstance(node, ast.MatchClass):
            asked = parts(node.cls)
        if names & set(asked):
            yield node.lineno


def test_only_a_package_itself_asks_for_the_types_of_its_engines_networks_and_batches():
    asked = []
    for owner in OWNERS:
        names = {one.__name__ for one in classes_of(owner) if asked_for_by_nobody_else(one)}
        assert names, owner
        names = with_aliases(names, [tree(path) for path in FILES])
        outside = [path for path in FILES if package_of(owner) not in path.parents]
        asked += [f"{name_of(path)}:{line}" for path in outside for line in type_questions(tree(path), names)]
    assert len(asked) <= TYPE_QUESTIONS, asked


def test_the_question_about_types_is_found_in_every_form():
    asks = """
from somewhere import Engine as E, other
BOTH = (E, int)
ONE: type = Trained
isinstance(x, E); isinstance(x, BOTH); isinstance(x, int | other.Trained); issubclass(x, ONE); type(x) is Engine; x is Engine
isinstance(x, other.Harmless)
match x:
    case Engine(a=1): pass
"""
    found = ast.parse(asks)
    names = with_aliases({"Engine", "Trained"}, [found])
    assert names == {"Engine", "Trained", "E", "BOTH", "ONE"}
    assert sorted(type_questions(found, names)) == [5, 5, 5, 5, 5, 8]


def test_files_are_short():
    too_long = {name_of(path): lines for path in FILES if (lines := len(path.read_text().splitlines())) > LINES_OF_A_FILE}
    assert len(too_long) <= LONG_FILES, too_long


def test_functions_are_short():
    too_long = {}
    for path in FILES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[0]
                docstring = first.end_lineno - first.lineno + 1 if ast.get_docstring(node) is not None else 0
                if (lines := node.end_lineno - node.lineno + 1 - docstring) > LINES_OF_A_FUNCTION:
                    too_long[f"{name_of(path)}:{node.name}"] = lines
    assert len(too_long) <= LONG_FUNCTIONS, too_long


def test_library_and_application_stay_within_their_lines():
    lines = sum(len(path.read_text().splitlines()) for path in FILES if SRC / "unseed_paper" not in path.parents)
    assert lines <= LINES_OF_LIBRARY_AND_APPLICATION


def test_activations_are_registered_in_one_place():
    home = SRC / "unseed/networks/_activations.py"
    from unseed.networks._activations import ACTIVATION_NAMES

    def strings(nodes):
        return {node.value for node in nodes if isinstance(node, ast.Constant)} & set(ACTIVATION_NAMES)

    found = []
    for path in FILES:
        for node in ast.walk(tree(path)) if path != home else ():
            is_table = isinstance(node, ast.Dict) and len(strings(key for key in node.keys if key)) > 1
            listed = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            is_list = isinstance(listed, ast.Tuple | ast.List | ast.Set) and len(strings(listed.elts)) > 1
            sides = (node.left, *node.comparators) if isinstance(node, ast.Compare) else ()
            sides = [part for side in sides for part in (side, *getattr(side, "elts", ()))]
            is_case = isinstance(node, ast.MatchValue) and bool(strings([node.value]))
            if is_table or is_list or strings(sides) or is_case:
                found.append(f"{name_of(path)}:{node.lineno}")
    assert len(found) <= REGISTRIES, found


def test_modules_of_the_library_are_public_on_purpose():
    names = [path.relative_to(SRC / "unseed").with_suffix("").parts for path in FILES if SRC / "unseed" in path.parents]
    open_ones = [name for name in names if not any(part.startswith("_") and not part.startswith("__") for part in name)]
    public = {name[0] for name in open_ones if name[0] not in ("__init__", "__main__")}
    assert public <= PUBLIC
    assert [name for name in open_ones if len(name) > 1 and name[1:] != ("__init__",)] == []


def modules_asked_for(path):
    """Modules that a file imports: those at once, and those inside of functions or for the type checker alone."""
    at_once, later = set(), set()

    def visit(node, *, now):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [entry.name for entry in node.names] if isinstance(node, ast.Import) else [node.module]
            assert isinstance(node, ast.Import) or node.level == 0, f"{path}: a relative import"
            (at_once if now else later).update(name.split(".")[0] for name in names)
        is_later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        is_later |= isinstance(node, ast.If) and terminal(node.test) == "TYPE_CHECKING"
        for child in ast.iter_child_nodes(node):
            visit(child, now=now and not is_later)

    visit(tree(path), now=True)
    return at_once, later


def declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    def names(requirements):
        return {re.match(r"[\w-]+", requirement)[0].lower() for requirement in requirements}

    extras = {extra: names(listed) - {"unseed"} for extra, listed in project["optional-dependencies"].items()}
    return names(project["dependencies"]), extras


def distributions(modules):
    """Distributions that modules of other people come from."""
    others = {module for module in modules if module not in sys.stdlib_module_names and not module.startswith("unseed")}
    return {DISTRIBUTIONS.get(module, module) for module in others}


@pytest.mark.parametrize(
    ("package", "needed", "friends"),
    [
        ("unseed", (), {"unseed"}),
        ("unseed_app", ("cli", "frames"), {"unseed", "unseed_app", "unseed_paper"}),
        ("unseed_paper", ("frames",), {"unseed", "unseed_paper"}),
    ],
)
def test_imports_are_declared(package, needed, friends):
    required, extras = declared()
    allowed = required | {name for extra in needed for name in extras[extra]}
    optional = {name for extra, listed in extras.items() if extra not in ("dev", "docs") for name in listed}
    used = set()
    for path in (SRC / package).rglob("*.py"):
        at_once, later = modules_asked_for(path)
        assert {name for name in at_once | later if name.startswith("unseed")} <= friends, path
        assert distributions(at_once) <= allowed, path
        assert distributions(later) <= required | optional, path
        used |= distributions(at_once | later)
    assert package != "unseed" or required <= used  # nothing is asked of a user's machine for nothing


def asserts(node, helpers):
    """Whether a test checks anything, itself or through a helper that does."""
    for part in ast.walk(node):
        if isinstance(part, ast.Assert):
            return True
        if isinstance(part, ast.Call):
            name = terminal(part.func) or ""
            if name.startswith("assert") or name in helpers or name in ("raises", "warns", "fail", "check"):
                return True
    return False


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.relative_to(ROOT / "tests").as_posix())
def test_every_test_asserts(path):
    functions = [node for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef)]
    helpers = set()
    while found := {one.name for one in functions if one.name not in helpers and asserts(one, helpers)}:
        helpers |= found
    tests = [one for one in functions if one.name.startswith("test")]
    assert tests
    assert [one.name for one in tests if one.name not in helpers] == []
