import sys
from importlib.metadata import version
from types import ModuleType

import pytest

import clml
from clml._support.fingerprint import as_json
from clml._support.own_code import package_of


@pytest.fixture
def placed(tmp_path, monkeypatch):
    """Return what loads a module from a folder, with a version or without."""

    def place(folder, name, version=None, file=None):
        module = ModuleType(name)
        path = tmp_path / folder / (file or f"{name.replace('.', '/')}.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        module.__file__ = str(path)
        if version is not None:
            module.__version__ = version
        monkeypatch.setitem(sys.modules, name, module)
        return module

    return place


def test_packages_have_versions():
    assert package_of("numpy.linalg") == ("numpy", sys.modules["numpy"].__version__)
    assert package_of("clml._training.search") == ("clml", clml.__version__)
    for module in ("json", "os.path", "builtins", "itertools", "_thread", "zipimport"):
        assert package_of(module)[0] == "python", module


def test_a_version_is_the_same_before_an_import_and_after(monkeypatch):
    """Of a package that has another name than its module, too."""
    imported = package_of("sklearn")
    monkeypatch.delitem(sys.modules, "sklearn")
    assert package_of("sklearn") == imported == ("sklearn", version("scikit-learn"))


def test_what_is_nobodys_package_is_ones_own(placed):
    placed("project/src", "own_module", "1.0")
    assert package_of("own_module") is None
    for name in (__name__, "__main__", "no_such_module", "no_such.module"):
        assert package_of(name) is None, name


@pytest.mark.parametrize("folder", ["venv/site-packages", "lib/dist-packages"])
def test_where_a_module_lies_tells_whose_it_is(placed, folder):
    placed(folder, "own_package", "1.5", "own_package/__init__.py")
    placed(folder, "own_package.part")
    assert package_of("own_package") == ("own_package", "1.5")
    assert package_of("own_package.part") == ("own_package", "1.5")
    # Of these nobody knows a version.
    placed(folder, "own_single")
    assert package_of("own_single") is None


def test_packages_may_be_put_anywhere(placed, tmp_path):
    placed("target", "own_package", "1.5")
    (tmp_path / "target" / "own_package-1.5.dist-info").mkdir()
    assert package_of("own_package") == ("own_package", "1.5")


def test_ones_own_module_may_have_the_name_of_another(placed):
    placed("project", "statistics")
    assert package_of("statistics") is None


def test_compiled_code_is_known_by_its_file(placed):
    module = placed("project", "own_compiled", file="own_compiled.so")

    class Compiled:
        """Stands for a function without Python code."""

        def __call__(self):
            return 1

    function = module.function = Compiled()
    function.__module__, function.__qualname__ = "own_compiled", "function"
    told = []
    for content in (b"one", b"two", b"one"):
        with open(module.__file__, "wb") as file:
            file.write(content)
        told.append(as_json(function))
        assert as_json(module)["code"]
    assert told[0] == told[2] != told[1]
