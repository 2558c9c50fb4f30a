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
    names = {
        name
        for node in top
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or "", *(alias.name for alias in node.names)]
        )
    }
    unwanted = {
        *OPTIONAL,
        *(name.removesuffix(".py") for name in OF_AN_OPTIONAL_PACKAGE),
    }
    assert not {name.partition(".")[0] for name in names} & unwanted


# Arrows point one way: what each folder may import of the library.
ARROWS = {
    "losses": {"_compiled", "_indicator", "_names", "_simd"},
    "lebesgue": {"_compiled"},
    "evolution": {"_threads", "_torch"},
    "encoding": {
        "_compiled",
        "_csr_format",
        "_rowwise",
        "_simd",
        "_simd_tiles",
        "_value",
    },
    "network": {
        "_compiled",
        "_csr_format",
        "_memory",
        "_products",
        "_simd",
        "_simd_tiles",
        "_value",
    },
    "datasets": {
        "_atomic",
        "_compiled",
        "_csr_format",
        "_indicator",
        "_names",
        "_paths",
        "lebesgue",
    },
    "engine": {
        "_cluster",
        "_compiled",
        "_memory",
        "_simd",
        "_torch",
        "losses",
        "network",
    },
    "baselines": {
        "_forks",
        "_multilabel",
        "_rows",
        "_sklearn_compat",
        "_torch",
        "_transaction",
        "datasets",
        "losses",
    },
    "experiments": {
        "_atomic",
        "_classifier",
        "_cluster",
        "_cross_entropy",
        "_csv_cells",
        "_fingerprint",
        "_indicator",
        "_json_text",
        "_machine",
        "_names",
        "_paths",
        "_pickling",
        "_scale_columns",
        "_scores",
        "_transaction",
        "_version",
        "_written_values",
        "datasets",
        "lebesgue",
        "losses",
    },
    "persistence": {
        "_atomic",
        "_csr_format",
        "_ensemble",
        "_fingerprint",
        "_front",
        "_json_text",
        "_leaderboard",
        "_machine",
        "_multilabel",
        "_paths",
        "_row_rules",
        "_scale_columns",
        "_score_map",
        "_scores",
        "_sklearn_compat",
        "_transaction",
        "_version",
        "network",
        "encoding",
        "losses",
    },
    "plots": {"_atomic", "_names", "_paths", "experiments", "lebesgue"},
    "report": {
        "_atomic",
        "_front",
        "_names",
        "_paths",
        "_version",
        "experiments",
        "losses",
    },
}


@pytest.mark.parametrize("folder", ARROWS)
def test_arrows_point_one_way(folder):
    for path in (SOURCE / folder).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 2:
                part = (node.module or "").partition(".")[0]
                assert part in ARROWS[folder], f"{path.name} imports {part}"
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
                assert not any(name.startswith("clml") for name in names), path.name


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
