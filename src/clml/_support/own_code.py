"""Whose code something is, and what a function does, whatever its lines look like."""

from __future__ import annotations

import builtins
import dis
import importlib
import importlib.util
import platform
import sys
import sysconfig
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

_HERE = Path(__file__).parents[1]
_FOLDERS_OF_PACKAGES = ("site-packages", "dist-packages")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
#: What a class says about its text, not about what it does.
ABOUT_THE_TEXT = frozenset(
    {"__doc__", "__firstlineno__", "__static_attributes__", "__annotations__"}
)
# *args, **keywords, generators, coroutines.
_FLAGS = 0x4 | 0x8 | 0x20 | 0x80 | 0x100 | 0x200
MISSING = object()


def package_of(module: str) -> tuple[str, str] | None:
    """Return the installed package of a module and its version; None: there is none.

    Installed is what lies in a folder of packages or of Python itself. Any other module
    is somebody's own, and known by its code; so is an installed one without a version.
    This library counts as installed wherever it lies.

    Parameters
    ----------
    module : str
        Its full name. It need not have been imported.

    Examples
    --------
    >>> from clml._support.own_code import package_of
    >>> package_of("sklearn.linear_model")[0], package_of("json.decoder")[0]
    ('sklearn', 'python')
    >>> package_of("__main__") is None
    True
    """
    if module == "__main__":
        return None
    module = getattr(sys.modules.get(module), "__name__", module)  # os.path
    file = module_file(module)
    top = module.partition(".")[0]
    if file is None and top != module:
        return package_of(top)
    if file is None:
        is_python = top in sys.stdlib_module_names
        return ("python", platform.python_version()) if is_python else None
    above = module.count(".") + (file.stem == "__init__")
    root = file.parents[min(above, len(file.parents) - 1)]
    if root == _HERE.parent and top == _HERE.name:
        return top, _version(top) or "unknown"
    if root in _folders_of_python():
        return "python", platform.python_version()
    version = _version(top) if _holds_packages(root) else None
    return None if version is None else (top, version)


def module_file(module: str) -> Path | None:
    """Return where a module was, or would be, read from; None: from no file."""
    found: Any = sys.modules.get(module)
    if found is not None:
        name = getattr(found, "__file__", None)
    else:
        try:
            spec = importlib.util.find_spec(module)
        except Exception:  # whatever the package says that it is in
            return None
        name = spec.origin if spec is not None and spec.has_location else None
    return Path(name).absolute() if isinstance(name, str) else None


@cache
def _folders_of_python() -> frozenset[Path]:
    given = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
    given |= {folder.resolve() for folder in given}
    return frozenset(given | {folder / "lib-dynload" for folder in given})


@cache
def _holds_packages(folder: Path) -> bool:
    """Whether an installer put packages there; pip can be told of any folder."""
    if folder.name in _FOLDERS_OF_PACKAGES:
        return True
    return any(folder.glob("*.dist-info"))


def _version(top: str) -> str | None:
    told = getattr(sys.modules.get(top), "__version__", None)
    if isinstance(told, str):
        return told
    try:
        return metadata.version(top)
    except metadata.PackageNotFoundError:
        names = sorted(set(_distributions().get(top, ())))
        if len(names) == 1:  # as its module says once it is imported
            return metadata.version(names[0])
        return ", ".join(f"{n} {metadata.version(n)}" for n in names) or None


@cache
def _distributions() -> Mapping[str, list[str]]:
    """Return which packages hold a module; all of them are looked through for that."""
    return metadata.packages_distributions()


def find(module: str, qualname: str) -> Any:
    """Return what a loaded module has under a name, ``MISSING`` if nothing."""
    found: Any = sys.modules.get(module, MISSING)
    for part in qualname.split("."):
        found = getattr(found, part, MISSING)
    return found


def instructions(code: CodeType) -> list[tuple[str, Any]]:
    """Return what code does: operations and what they work on, constants by value.

    Names of files, lines, comments and docstrings leave no trace.
    """
    found: list[tuple[str, Any]] = []
    for step in dis.get_instructions(code):
        if step.opname == "STORE_NAME" and step.argval in ABOUT_THE_TEXT:
            found.pop()  # the text, or the number of a line, that is stored there
        elif step.opname != "NOP":
            named = step.opcode in dis.hasname
            found.append((step.opname, step.argrepr if named else step.argval))
    return found


def signature(code: CodeType) -> list[Any]:
    """Return how code is called, and where it catches errors."""
    arguments = code.co_argcount + code.co_kwonlyargcount
    arguments += sum(bool(code.co_flags & flag) for flag in (0x4, 0x8))
    return [
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
        code.co_flags & _FLAGS,
        code.co_varnames[:arguments],
        code.co_exceptiontable,
    ]


def used_globals(code: CodeType, namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return what code uses of its module, and of those that it imports, by name.

    Of a module that is somebody's own it is the attribute that is used, not all of it:
    ``{"helpers.scale": <function>}``.
    """
    found: dict[str, Any] = {}
    steps = list(dis.get_instructions(code))
    for i, step in enumerate(steps):
        if step.opname in _GLOBALS and step.argval in namespace:
            name, value = step.argval, namespace[step.argval]
            for following in steps[i + 1 :]:
                is_own = isinstance(value, ModuleType) and is_own_module(value)
                if not is_own or following.opname not in _ATTRIBUTES:
                    break
                name = f"{name}.{following.argval}"
                value = getattr(value, following.argval, "not there")
            found[name] = value
        elif step.opname == "IMPORT_NAME":
            level, names = steps[i - 2].argval, steps[i - 1].argval
            found |= _imported(step.argval, level, names, namespace)
        elif isinstance(step.argval, CodeType):
            found |= used_globals(step.argval, namespace)
    return found


def is_own_module(module: ModuleType) -> bool:
    """Whether a module belongs to no installed package."""
    return module is not builtins and package_of(module.__name__) is None


def _imported(
    name: str, level: int, names: tuple[str, ...] | None, namespace: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what an import inside of a function gives."""
    if level:
        try:
            package = namespace.get("__package__") or ""
            name = importlib.util.resolve_name("." * level + name, package)
        except ImportError:
            return {f"import {name}": "not there"}
    if package_of(name) is not None:  # need not be imported yet
        return {f"import {name}": {"module": name}}
    try:
        module = importlib.import_module(name)
    except ImportError:
        return {f"import {name}": "not there"}
    if names is None or "*" in names:
        return {f"import {name}": module}
    for part in names:
        if not hasattr(module, part):  # a module of a package, perhaps
            with suppress(ImportError):
                importlib.import_module(f"{name}.{part}")
    found = {part: getattr(module, part, "not there") for part in names}
    return {f"import {name}.{part}": value for part, value in found.items()}
