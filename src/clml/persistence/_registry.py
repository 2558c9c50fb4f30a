"""The classes that a file may name. Nothing else is ever imported for a file."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

#: Estimators by name, with the module of each.
ESTIMATORS: Mapping[str, str] = {
    "C2AEClassifier": "clml.baselines._c2ae",
    "CLIFClassifier": "clml.baselines._clif",
    "CLMLClassifier": "clml._classifier",
    "DELAClassifier": "clml.baselines._dela",
    "GaussianNB": "sklearn.naive_bayes",
    "GaussianNBChain": "clml.baselines._naive_bayes",
    "GaussianNBRelevance": "clml.baselines._naive_bayes",
    "LIFTClassifier": "clml.baselines._lift",
    "LLSFClassifier": "clml.baselines._llsf",
    "LebesgueStackingClassifier": "clml._stacking",
    "LebesgueTunedClassifier": "clml._tuned",
    "MLPRelevanceClassifier": "clml.baselines._mlp",
    "MLkNNClassifier": "clml.baselines._mlknn",
    "MPVAEClassifier": "clml.baselines._mpvae",
}

#: Dataclasses that fitted attributes hold.
DATACLASSES: Mapping[str, str] = {
    "C2AENetwork": "clml.baselines._c2ae",
    "CLIFNetwork": "clml.baselines._clif",
    "DELANetwork": "clml.baselines._dela",
    "Ensemble": "clml._training.ensemble",
    "FittedEncoding": "clml.encoding._fitted",
    "FittedKernel": "clml.encoding._landmark_kernel",
    "Layout": "clml.network._layout",
    "Leaderboard": "clml._learners.leaderboard",
    "MLPNetwork": "clml.baselines._mlp",
    "MPVAENetwork": "clml.baselines._mpvae_network",
    "ParetoFront": "clml._maps.front",
    "Scaling": "clml.network._scaling",
    "WideLayout": "clml.network.wide",
}

#: Descriptions that parameters hold.
VALUES: Mapping[str, str] = {
    "Ascent": "clml._training.searches",
    "Bins": "clml.encoding._bins",
    "CMA": "clml._training.searches",
    "GaussianKernel": "clml.encoding._landmark_kernel",
    "LaplaceKernel": "clml.encoding._landmark_kernel",
    "PaperNetwork": "clml.network._paper",
    "Quantiles": "clml.encoding._quantiles",
    "RankGradient": "clml._training.searches",
    "Robust": "clml.encoding._robust",
    "Standardized": "clml.encoding._standardized",
    "WideNetwork": "clml.network.wide",
}


def is_registered(table: Mapping[str, str], kind: type) -> bool:
    """Return whether a table holds this very class; subclasses are other classes."""
    name = kind.__name__
    return name in table and find_class(table, name) is kind


def find_class(table: Mapping[str, str], name: Any) -> Any:
    """Return the class of a table that a file names.

    Examples
    --------
    >>> from clml.persistence._registry import DATACLASSES, find_class
    >>> find_class(DATACLASSES, "Layout")
    <class 'clml.network._layout.Layout'>
    >>> find_class(DATACLASSES, "Popen")
    Traceback (most recent call last):
    ...
    ValueError: the class 'Popen' is not one that a file may hold
    """
    if not isinstance(name, str) or name not in table:
        raise ValueError(f"the class {name!r} is not one that a file may hold")
    try:
        return getattr(import_module(table[name]), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"the class {name!r} is not available here: {error}"
        ) from error
