"""The package from outside: what it imports, what it exports, what is in its wheel."""

import ast
import pkgutil
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

import clml

SOURCE = Path(clml.__file__).parent
ROOT = Path(__file__).parents[1]
OPTIONAL = (
    "torch",
    "triton",
    "matplotlib",
    "jinja2",
    "plotly",
    "dask",
    "distributed",
    "skops",
    "safetensors",
    "onnx",
    "onnxruntime",
    "skl2onnx",
    "mlflow",
    "pooch",
    "pyarrow",
    "pandas",
    "cma",
    "lightgbm",
    "xgboost",
    "catboost",
)
# Hides the optional packages and everything of the library but the wheel.
HIDE = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {optional!r}:
            raise ImportError(f"{{name}} is not installed")

sys.meta_path.insert(0, Hidden())
import clml
assert clml.__file__.startswith({where!r}), clml.__file__
"""


def run_python(code, **keywords):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        **keywords,
    )


def modules():
    return [
        module.name
        for module in pkgutil.walk_packages([str(SOURCE)], prefix="clml.")
        if not module.name.endswith("__main__")
    ]


@pytest.mark.parametrize("name", ["clml", *modules()])
def test_exports_exist_and_are_sorted(name):
    module = import_module(name)
    exported = getattr(module, "__all__", [])
    assert all(hasattr(module, item) for item in exported)
    # Constants first, then classes, then functions: the order of the linter.
    ranked = sorted(exported, key=lambda s: (not s.isupper(), not s[0].isupper(), s))
    assert list(exported) == ranked


def test_public_surface():
    assert set(clml.__all__) >= {"CLMLClassifier", "PAPER_SETTINGS", "ParetoFront"}


# Modules of one optional package alone: others import them where they are used.
OF_AN_OPTIONAL_PACKAGE = ("_triton.py",)


@pytest.mark.parametrize(
    "path",
    [p for p in sorted(SOURCE.rglob("*.py")) if p.name not in OF_AN_OPTIONAL_PACKAGE],
    ids=lambda p: p.name,
)
def test_no_module_imports_an_optional_package_at_the_top(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    # Modules of ours may have the name of what they are for.
    ours = [node for node in top if isinstance(node, ast.ImportFrom) and node.level]
    of_ours = {part for node in ours for part in (node.module or "").split(".")}
    of_ours |= {alias.name for node in ours for alias in node.names}
    top = [node for node in top if node not in ours]
    names = {
        name
        for node in top
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or "", *(alias.name for alias in node.names)]
        )
    }
    assert not {name.partition(".")[0] for name in names} & set(OPTIONAL)
    assert not of_ours & {x.removesuffix(".py") for x in OF_AN_OPTIONAL_PACKAGE}


# Arrows point one way: what each room may import of the others. The estimators, which
# lie beside the rooms, are one of them.
ESTIMATORS = "estimators"
NUMERICS = {"_support", "losses", "network", "engine", "lebesgue", "evolution"}
BELOW_ESTIMATORS = {
    *NUMERICS,
    "encoding",
    "splits",
    "_base",
    "_training",
    "_maps",
    "_learners",
    "_distributed",
    "persistence",
}
ARROWS = {
    "_support": set(),
    "losses": {"_support"},
    "lebesgue": {"_support"},
    "evolution": {"_support"},
    "encoding": {"_support"},
    "network": {"_support"},
    "splits": {"_support"},
    "datasets": {"_support", "lebesgue", "splits"},
    "engine": {"_support", "losses", "network"},
    "_base": {"_support", "losses", "splits"},
    "baselines": {"_support", "_base", "losses"},
    "_training": {*NUMERICS, "_base", "encoding", "splits"},
    "_maps": {*NUMERICS, "_training", "splits"},
    "_learners": {*NUMERICS, "_base", "_training", "_maps", "splits"},
    "_distributed": {*NUMERICS, "_base", "_training", "datasets"},
    "persistence": {
        "_support",
        "losses",
        "network",
        "encoding",
        "_base",
        "_training",
        "_maps",
        "_learners",
    },
    ESTIMATORS: BELOW_ESTIMATORS,
    "experiments": {*BELOW_ESTIMATORS, "datasets", ESTIMATORS},
    "plots": {"_support", "lebesgue", "experiments"},
    "report": {"_support", "losses", "_maps", "experiments", ESTIMATORS},
    "_commands": {
        *BELOW_ESTIMATORS,
        "datasets",
        "experiments",
        "plots",
        "report",
        ESTIMATORS,
    },
    "cli": {"_commands", "losses", "datasets", ESTIMATORS},
}
# A method that is short for a function of a room above: imported when it is called.
WHEN_CALLED = {
    ("_base", "persistence"),  # save
    (ESTIMATORS, "report"),
}
ALONE = {"cli": "cli", "__main__": "cli"}


def room_of(module):
    """Return the room of a module, given by the parts of its name after clml."""
    return module[0] if len(module) > 1 else ALONE.get(module[0], ESTIMATORS)


def imports_of(path):
    """Return for each import of the library: parts after clml, whether it is late."""
    module = path.relative_to(SOURCE).with_suffix("").parts
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    late = {node for function in functions for node in ast.walk(function)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        folder = module[: len(module) - node.level]
        named = (*folder, *(node.module or "").split(".")) if node.module else folder
        for alias in node.names:
            parts = named
            below = SOURCE.joinpath(*named, alias.name)
            if below.with_suffix(".py").exists() or below.is_dir():
                parts = (*named, alias.name)
            # The room itself: what its __init__ exports.
            if len(parts) == 1 and SOURCE.joinpath(parts[0]).is_dir():
                parts = (*parts, "")
            yield parts, node in late


MODULES = [p for p in sorted(SOURCE.rglob("*.py")) if p != SOURCE / "__init__.py"]


def test_every_room_has_its_arrows():
    rooms = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert rooms == set(ARROWS) - {ESTIMATORS, "cli"}


def test_no_arrows_lead_back():
    above = {room: set(below) for room, below in ARROWS.items()}
    while above:
        lowest = {room for room, below in above.items() if not below & set(above)}
        assert lowest, f"these import each other: {sorted(above)}"
        above = {room: below for room, below in above.items() if room not in lowest}


@pytest.mark.parametrize(
    "path", MODULES, ids=lambda p: p.relative_to(SOURCE).as_posix()
)
def test_arrows_point_one_way(path):
    own = room_of(path.relative_to(SOURCE).with_suffix("").parts)
    for parts, late in imports_of(path):
        other = room_of(parts) if parts else ESTIMATORS
        if other == own or parts == ("_version",):
            continue
        known = other in ARROWS[own] or (late and (own, other) in WHEN_CALLED)
        assert known, f"imports {'.'.join(parts)}"
        # What other rooms use has no underscore.
        assert not (len(parts) > 1 and parts[-1].startswith("_")), parts


def test_few_modules_lie_beside_the_rooms():
    assert len(list(SOURCE.glob("*.py"))) <= 14


def test_import_adds_little(tmp_path):
    """At most 0.3 s on top of scikit-learn, numba and moocore."""
    code = """
import time
import moocore, numba, sklearn.base, sklearn.utils.validation
began = time.perf_counter()
import clml
print(time.perf_counter() - began)
"""
    seconds = [float(run_python(code).stdout) for _ in range(5)]
    assert min(seconds) < 0.3  # the least: others compute beside this test


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    where = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(where)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (found,) = where.glob("*.whl")
    return found


def test_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "clml/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert all(name.startswith("clml") for name in names)
    assert {n for n in names if n.endswith(".py")} == {
        f"clml/{path.relative_to(SOURCE).as_posix()}" for path in SOURCE.rglob("*.py")
    }


def test_wheel_works_with_the_core_dependencies_alone(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    hide = HIDE.format(optional=OPTIONAL, where=str(tmp_path))
    code = hide + (ROOT / ".ci" / "smoke.py").read_text(encoding="utf-8")
    result = run_python(code, env={"PYTHONPATH": str(tmp_path), "PATH": ""})
    assert result.stdout.strip() == "smoke test passed", result.stderr
