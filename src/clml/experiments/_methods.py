"""What a plan calls a method: an estimator by name, by its import path, or itself."""

from __future__ import annotations

import base64
import difflib
import importlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from .._classifier import PAPER_SETTINGS
from .._learners.scale_columns import ScaleNonIndicators
from .._support.fingerprint import Describer, as_json, canonical, is_plain
from .._support.pickling import cloudpickle, refuse_unpicklable
from .._training.written_values import (
    is_written,
    read_value,
    with_values_read,
    with_values_written,
)

__all__ = [
    "MethodSpec",
    "as_json",
    "build_estimator",
    "canonical",
    "check_packages",
    "find_class",
    "list_methods",
]

_FOREST = "sklearn.ensemble:RandomForestClassifier"
# One thread each: a job has those that its plan grants, and the same result on any
# machine.
_XGBOOST = {"n_estimators": 200, "tree_method": "hist", "n_jobs": 1}
# Name to the entries of a method's table. Scales are all one to forests, and the
# learners of CLML scale their features themselves.
REGISTERED: dict[str, dict[str, Any]] = {
    "CLML": {"estimator": "clml:CLMLClassifier", "scale": False},
    "CLML-paper": {
        "estimator": "clml:CLMLClassifier",
        "scale": False,
        "settings": {
            **{name: with_values_written(v) for name, v in PAPER_SETTINGS.items()},
            "losses": list(PAPER_SETTINGS["losses"]),
        },
    },
    "GNB-BR": {"estimator": "clml.baselines:GaussianNBRelevance"},
    "GNB-CC": {"estimator": "clml.baselines:GaussianNBChain"},
    "MLkNN": {"estimator": "clml.baselines:MLkNNClassifier"},
    "LIFT": {"estimator": "clml.baselines:LIFTClassifier"},
    "LLSF": {"estimator": "clml.baselines:LLSFClassifier"},
    "C2AE": {"estimator": "clml.baselines:C2AEClassifier"},
    "CLIF": {"estimator": "clml.baselines:CLIFClassifier"},
    "DELA": {"estimator": "clml.baselines:DELAClassifier"},
    "MPVAE": {"estimator": "clml.baselines:MPVAEClassifier"},
    "MLP": {"estimator": "clml.baselines:MLPRelevanceClassifier"},
    "RandomForest": {
        "estimator": _FOREST,
        "scale": False,
        "settings": {"n_estimators": 300},
    },
    "ExtraTrees": {
        "estimator": "sklearn.ensemble:ExtraTreesClassifier",
        "scale": False,
        "settings": {"n_estimators": 300},
    },
    "XGBoost": {
        "estimator": "xgboost:XGBClassifier",
        "scale": False,
        "settings": {**_XGBOOST, "multi_strategy": "one_output_per_tree"},
    },
    "XGBoost-multi": {
        "estimator": "xgboost:XGBClassifier",
        "scale": False,
        "settings": {**_XGBOOST, "multi_strategy": "multi_output_tree"},
    },
    "LightGBM": {
        "estimator": "lightgbm:LGBMClassifier",
        "one_vs_rest": True,
        "scale": False,
        "settings": {"n_estimators": 200, "n_jobs": 1, "verbose": -1},
    },
    "CatBoost": {
        "estimator": "clml.experiments._varying_labels:VaryingLabels",
        "scale": False,
        "settings": {
            "estimator": {
                "class": "catboost:CatBoostClassifier",
                "settings": {
                    "iterations": 200,
                    "loss_function": "MultiLogloss",
                    "thread_count": 1,
                    "allow_writing_files": False,
                    "verbose": False,
                },
            }
        },
    },
    "LogisticRegression": {
        "estimator": "sklearn.linear_model:LogisticRegression",
        "one_vs_rest": True,
        "settings": {"max_iter": 2000},
    },
    "kNN": {
        "estimator": "sklearn.neighbors:KNeighborsClassifier",
        "settings": {"n_neighbors": 10},
    },
    "Tuned-forest": {
        "estimator": "clml:LebesgueTunedClassifier",
        "scale": False,
        "settings": {
            "estimator": {"class": _FOREST, "settings": {"n_estimators": 300}}
        },
    },
    "Stacking": {"estimator": "clml:LebesgueStackingClassifier", "scale": False},
}
# What installs the packages of registered methods that the library does without.
_INSTALLED_BY = {
    "xgboost": "pip install xgboost",
    "lightgbm": "pip install 'clml[boosting]'",
    "catboost": "pip install catboost",
}
_KEYS = ("estimator", "settings", "one_vs_rest", "scale", "presets", "datasets")
_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def list_methods() -> list[str]:
    """Return the names that a plan may use without saying more.

    Examples
    --------
    >>> from clml.experiments._methods import list_methods
    >>> list_methods()[:3]
    ['CLML', 'CLML-paper', 'GNB-BR']
    """
    return list(REGISTERED)


@dataclass(frozen=True, eq=False)
class MethodSpec:
    """A method of a plan.

    Attributes
    ----------
    name : str
        As the tables call it.
    estimator : str or estimator
        ``"package.module:Class"``, or an unfitted estimator.
    settings : dict
        Arguments of the class. A table with the entry ``class`` (and perhaps
        ``settings``) stands for an estimator inside the estimator, one with the entry
        ``kind`` for a search, a network or an encoding, see
        `clml._training.written_values`.
        ``search__sigma0`` is one parameter of such a value.
    one_vs_rest : bool
        Whether one such estimator is fitted for each label.
    scale : bool
        Whether the columns of numbers are standardised by the training rows first.
    presets : bool
        Whether datasets that the class has ``PRESETS`` for, the settings that its
        authors published, have those. ``settings`` go before them.
    datasets : tuple of str or None
        The datasets that it is for; None: all.
    group : str
        "main", or "ablation" for the variants of an ablation, which the tables of
        methods leave out.
    """

    name: str
    estimator: Any
    settings: dict[str, Any] = field(default_factory=dict)
    one_vs_rest: bool = False
    scale: bool = True
    presets: bool = False
    datasets: tuple[str, ...] | None = None
    group: str = "main"

    @classmethod
    def of(cls, name: str, value: Any = None) -> MethodSpec:
        """Return the method that an entry of a plan stands for.

        Parameters
        ----------
        name : str
        value : None, str, mapping or estimator
            None: the registered method of that name. A str: its import path. A
            mapping: ``estimator`` (a registered name, an import path or an
            estimator; by default the name), ``settings`` on top of the registered
            ones, ``one_vs_rest``, ``scale``, ``presets``, ``datasets``.
        """
        if not isinstance(name, str) or not name:
            raise TypeError(f"methods must have names, got {name!r}.")
        if value is None:
            value = {}
        elif not isinstance(value, Mapping):
            value = {"estimator": value}
        unknown = sorted(set(value) - set(_KEYS))
        if unknown:
            raise ValueError(
                f"methods.{name} may have the entries {list(_KEYS)}, got {unknown}."
            )
        chosen = value.get("estimator", name)
        base: Mapping[str, Any] = {"estimator": chosen}
        if isinstance(chosen, str) and not _PATH.fullmatch(chosen):
            base = _registered(chosen)
        datasets = value.get("datasets")
        if value.get("presets") and not isinstance(base["estimator"], str):
            raise ValueError(
                f"methods.{name}.presets is for classes by name, whose settings are "
                f"not there yet, got the estimator {base['estimator']!r}."
            )
        return cls(
            name=name,
            estimator=_check_estimator(name, base["estimator"]),
            settings={
                **base.get("settings", {}),
                **check_settings(name, value.get("settings", {})),
            },
            one_vs_rest=_flag(name, "one_vs_rest", value, base, False),
            scale=_flag(name, "scale", value, base, True),
            presets=_flag(name, "presets", value, base, False),
            datasets=None if datasets is None else tuple(datasets),
        )

    def lacking(self) -> list[str]:
        """Return the packages of registered methods that it needs and are not here."""
        paths = list(_class_paths(list(self.settings.values())))
        if isinstance(self.estimator, str):
            paths.append(self.estimator)
        needed = {re.split("[.:]", path)[0] for path in paths}
        return [p for p in _INSTALLED_BY if p in needed and find_spec(p) is None]

    def description(self) -> dict[str, Any]:
        """Return what decides the results of the method, as JSON has it.

        Installed packages count by their versions, under ``packages``; code of one's
        own as a digest, under ``code``; what an estimator was fitted to that stays so
        in a clone, under ``state``.
        """
        describer = Describer()
        settings = describer.of(self.settings)
        named = _class_paths(list(self.settings.values()))
        code = {path: _code_at(path, describer) for path in named}
        state = None
        if isinstance(self.estimator, str):
            path = self.estimator
            code[path] = _code_at(path, describer)
        else:
            own = describer.of(self.estimator)
            path, state = own["class"], own.get("state")
            code[path] = own.get("code")
            settings = {**own["settings"], **settings}
        more = {
            "code": {path: told for path, told in code.items() if told is not None},
            "state": state,
            "packages": describer.packages,
        }
        return {
            "name": self.name,
            "estimator": path,
            "settings": settings,
            "one_vs_rest": self.one_vs_rest,
            "scale": self.scale,
            # Plans of before had none, and their jobs keep their keys.
            **({"presets": True} if self.presets else {}),
            **{name: told for name, told in more.items() if told},
        }

    def order(self) -> dict[str, Any]:
        """Return what a process needs to build the estimator, as JSON has it.

        Settings that JSON would change, such as NaN, arrays or estimators, are pickled.
        """
        order: dict[str, Any] = {
            "name": self.name,
            "one_vs_rest": self.one_vs_rest,
            "scale": self.scale,
            **({"presets": True} if self.presets else {}),
            "code": self.description().get("code", {}),
        }
        if isinstance(self.estimator, str) and is_plain(self.settings):
            return {**order, "estimator": self.estimator, "settings": self.settings}
        # From this process to its own child, through a pipe: never to a file.
        refuse_unpicklable((self.estimator, self.settings), f"methods.{self.name}")
        pickled = cloudpickle().dumps((self.estimator, self.settings))
        return {**order, "pickled": base64.b64encode(pickled).decode("ascii")}


def check_packages(methods: Iterable[MethodSpec]) -> None:
    """Refuse methods whose packages are not installed, before any job is begun.

    Only packages of registered methods are looked for: other classes that are not
    there are left to their jobs, whose records then say why.
    """
    lacking = {method.name: method.lacking() for method in methods}
    told = [
        _needs(f"methods.{name}", package)
        for name, packages in lacking.items()
        for package in packages
    ]
    if told:
        raise ImportError(" ".join(told))


def _needs(what: str, package: str) -> str:
    return f"{what} needs the package {package}: {_INSTALLED_BY[package]}."


def _class_paths(value: Any) -> Iterator[str]:
    """Yield the paths of the classes that settings name, as ``_built`` finds them."""
    if isinstance(value, Mapping) and "class" in value:
        yield str(value["class"])
        yield from _class_paths(list(value.get("settings", {}).values()))
    elif isinstance(value, list):
        for item in value:
            yield from _class_paths(item)


def _code_at(path: str, describer: Describer) -> Any:
    """Return what tells the code of a class; None of an installed one.

    A class of one's own is imported for that. One that cannot be is left to its jobs,
    whose records then say why.
    """
    if describer.knows(path.partition(":")[0]):
        return None
    try:
        found = find_class(path)
    except Exception:
        return "not there"
    told = describer.of(found)
    return told["code"] if isinstance(told, dict) else told


def _check_code(code: Mapping[str, Any]) -> None:
    """Refuse classes that are not those of the process which made the plan."""
    describer = Describer()
    for path, told in code.items():
        module, _, name = path.partition(":")
        # Of other classes the code itself came through the pipe.
        is_imported = module != "__main__" and "." not in name and told != "not there"
        if is_imported and _code_at(path, describer) != told:
            raise ValueError(
                f"the code of {path} is not that of the process that runs the plan. "
                "Start that again after a change of the file; what it changes in a "
                "module while it runs does not reach its jobs"
            )


def _registered(name: str) -> Mapping[str, Any]:
    if name in REGISTERED:
        return REGISTERED[name]
    spelled = {known.lower(): known for known in REGISTERED}
    near = difflib.get_close_matches(name.lower(), spelled, n=1, cutoff=0.5)
    hint = f" Did you mean {spelled[near[0]]!r}?" if near else ""
    raise ValueError(
        f"methods must be registered names, one of {list_methods()}, or have an "
        f"estimator such as 'package.module:Class', got {name!r}.{hint}"
    )


def _check_estimator(name: str, estimator: Any) -> Any:
    if isinstance(estimator, str):
        if not _PATH.fullmatch(estimator):
            raise ValueError(
                f"methods.{name}.estimator must be 'package.module:Class', got "
                f"{estimator!r}."
            )
    elif isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise TypeError(
            f"methods.{name} must be the name of a method, an import path or an "
            f"estimator with get_params, got {estimator!r}."
        )
    return estimator


def check_settings(name: str, settings: Any) -> dict[str, Any]:
    """Return the settings of a method, values among them as tables."""
    if not isinstance(settings, Mapping):
        raise TypeError(
            f"methods.{name}.settings must map arguments to values, got {settings!r}."
        )
    # Values as tables, which JSON takes as they are; tables that stand for none are
    # refused here, not in the jobs.
    written = {key: with_values_written(value) for key, value in settings.items()}
    for key, value in written.items():
        try:
            with_values_read(value)
        except ValueError as error:
            raise ValueError(f"methods.{name}.settings.{key}: {error}") from None
    return written


def setting_of(settings: Mapping[str, Any], name: str) -> Any:
    """Return one of the settings, ``a__b`` that of the value a; KeyError if not there.

    Examples
    --------
    >>> from clml.experiments._methods import setting_of
    >>> setting_of({"search": {"kind": "cma", "sigma0": 0.5}}, "search__sigma0")
    0.5
    """
    if name in settings:
        return settings[name]
    outer, _, inner = name.partition("__")
    held = settings[outer]
    if not inner or not is_written(held):
        raise KeyError(name)
    return held[inner]


def _flag(
    name: str,
    key: str,
    value: Mapping[str, Any],
    base: Mapping[str, Any],
    default: bool,
) -> bool:
    flag = value.get(key, base.get(key, default))
    if not isinstance(flag, bool):
        raise TypeError(f"methods.{name}.{key} must be true or false, got {flag!r}.")
    return flag


def find_class(path: str) -> type:
    """Return the estimator class of an import path.

    Examples
    --------
    >>> from clml.experiments._methods import find_class
    >>> find_class("clml.baselines:MLkNNClassifier").__name__
    'MLkNNClassifier'
    """
    module_name, _, class_name = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name not in _INSTALLED_BY:
            raise
        raise ImportError(_needs(class_name, error.name)) from error
    found = getattr(module, class_name, None)
    # Nothing but estimators: a plan is data, and must not call other functions.
    if not (isinstance(found, type) and hasattr(found, "fit")):
        raise TypeError(f"{path!r} must name a class with fit, got {found!r}.")
    return found


def _built(value: Any) -> Any:
    """Return a setting, the estimators that it describes built."""
    if isinstance(value, Mapping) and "class" in value:
        settings = value.get("settings", {})
        return _instance(value["class"], settings)
    if is_written(value):
        return read_value(value)
    if isinstance(value, list):
        return [_built(v) for v in value]
    return value


def _instance(path: str, settings: Mapping[str, Any]) -> Any:
    """Return an estimator; settings of what it holds are set after its own."""
    built = {name: _built(value) for name, value in settings.items()}
    own = {name: value for name, value in built.items() if "__" not in name}
    model = find_class(path)(**own)
    inner = {name: value for name, value in built.items() if name not in own}
    return model.set_params(**inner) if inner else model


def preset_of(path: str, dataset: str | None) -> dict[str, Any]:
    """Return the settings that a class has for a dataset, none if it has none.

    Examples
    --------
    >>> from clml.experiments._methods import preset_of
    >>> preset_of("clml.baselines:CLIFClassifier", "CAL500")["embedding_dim"]
    64
    >>> preset_of("clml.baselines:CLIFClassifier", "emotions")
    {}
    """
    presets = getattr(find_class(path), "PRESETS", {})
    return dict(presets.get((dataset or "").lower(), {}))


def build_estimator(
    order: Mapping[str, Any], random_state: int, dataset: str | None = None
) -> Any:
    """Return the unfitted estimator of an order.

    Parameters
    ----------
    order : mapping
        Of :meth:`MethodSpec.order`.
    random_state : int
        For every ``random_state`` in it that is None.
    dataset : str, default=None
        Whose preset counts, where the order asks for presets.
    """
    if "pickled" in order:
        given, settings = cloudpickle().loads(base64.b64decode(order["pickled"]))
    else:
        given, settings = order["estimator"], order["settings"]
    if isinstance(given, str):
        if order.get("presets"):
            settings = {**preset_of(given, dataset), **settings}
        model = _instance(given, settings)
    else:
        from sklearn.base import clone

        model = clone(given)
        if settings:
            model.set_params(**{k: _built(v) for k, v in settings.items()})
    _check_code(order["code"])
    if hasattr(model, "get_params"):
        seeds = {
            name: random_state
            for name, value in model.get_params(deep=True).items()
            if value is None and name.rpartition("__")[2] == "random_state"
        }
        if seeds:
            model.set_params(**seeds)
    if order["one_vs_rest"]:
        from sklearn.multiclass import OneVsRestClassifier

        model = OneVsRestClassifier(model)
    if order["scale"]:
        from sklearn.pipeline import make_pipeline

        model = make_pipeline(ScaleNonIndicators(), model)
    return model
