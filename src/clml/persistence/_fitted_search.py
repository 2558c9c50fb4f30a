"""What a Lebesgue search leaves: the front, who predicts, networks, maps, learners."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from .._learners.leaderboard import Leaderboard
from .._maps.front import ParetoFront
from .._maps.row_rules import fits_labels
from .._training.ensemble import Ensemble
from ..encoding import FittedEncoding, FittedKernel
from ..network import Layout, Scaling, WideLayout, WideNetwork
from ._checks import (
    check_array,
    check_finite,
    check_history,
    check_positive,
    find,
    find_a,
    find_number,
    require,
)
from ._registry import ESTIMATORS, find_class


def check_clml(estimator: Any, lengths: dict[str, int]) -> None:
    """Check a CLMLClassifier: its networks, and what the search found."""
    if hasattr(estimator, "ensemble_"):
        candidate = _check_ensemble(estimator, lengths)
    else:
        candidate = _check_weights(estimator, lengths)
        _check_layout(estimator, lengths)
    alternatives = find_a(dict, estimator, "_alternatives")
    require(set(alternatives) == {"final", "mean"}, "_alternatives is not complete")
    _check_found(estimator, candidate, lengths)


def _check_layout(estimator: Any, lengths: dict[str, int]) -> None:
    """Check networks of the paper's kind."""
    layout = find_a(Layout, estimator, "layout_")
    find_a(Scaling, estimator, "scaling_")
    for name in ("mean", "scale"):
        array = find(estimator, f"scaling_.{name}")
        check_array(f"scaling_.{name}", array, "f", ("D",), lengths)
    check_finite("scaling_.mean", estimator.scaling_.mean)
    check_positive("scaling_.scale", estimator.scaling_.scale)
    # Sizes of as many layers as a file says would take any amount of memory.
    require(
        bool not in map(type, vars(layout).values())
        and layout.n_layers < lengths["n"]
        and layout.size == lengths["n"]
        and (layout.n_features, layout.n_labels) == (lengths["D"], lengths["K"]),
        f"{layout} does not fit theta_, the features and labels",
    )


def _check_encoding(encoding: Any) -> None:
    """Check an encoding of columns, or features of a kernel."""
    is_kernel = isinstance(encoding, FittedKernel)
    columns = encoding.columns if is_kernel else encoding
    require(
        isinstance(columns, FittedEncoding), "each encoding must be a fitted encoding"
    )
    type(encoding).from_state(encoding.state())


def _check_ensemble(estimator: Any, lengths: dict[str, int]) -> int:
    """Check wide networks and their encodings; return the size of a map."""
    ensemble = find_a(Ensemble, estimator, "ensemble_")
    for name in ("encodings", "layouts", "chosen"):
        require(
            isinstance(find(ensemble, name), tuple), f"ensemble_.{name} must be a tuple"
        )
    n_kinds = len(ensemble.encodings)
    require(
        0 < n_kinds == len(ensemble.layouts)
        and all(type(i) is int and 0 <= i < n_kinds for i in ensemble.chosen),
        "ensemble_ does not say which encoding each member has",
    )
    for encoding, layout in zip(ensemble.encodings, ensemble.layouts, strict=True):
        _check_encoding(encoding)
        require(encoding.n_inputs == lengths["D"], "an encoding is of other features")
        _check_wide_layout(layout)
        require(
            (layout.n_inputs, layout.n_labels) == (encoding.n_columns, lengths["K"]),
            f"{layout} does not fit its encoding and the labels",
        )
    require(
        type(ensemble.n_labels) is int and ensemble.n_labels == lengths["K"],
        "ensemble_ is one of other labels",
    )
    sizes = [ensemble.layouts[i].size for i in ensemble.chosen]
    require(len(sizes) > 0, "ensemble_ holds no members")
    networks = find_a(tuple, estimator, "networks_")
    require(len(networks) == len(sizes), f"networks_ must hold {len(sizes)} networks")
    for i, (network, size) in enumerate(zip(networks, sizes, strict=True)):
        require(
            isinstance(network, np.ndarray)
            and network.dtype == np.float32
            and network.shape == (size,)
            and network.flags.c_contiguous,
            f"networks_[{i}] must be a float32 array of {size} weights",
        )
        check_finite(f"networks_[{i}]", network)
    candidate = 2 * lengths["K"]
    lengths["members"] = len(sizes)
    shapes: dict[str, tuple[str | int, ...]] = {
        "member_scale_": ("members",),
        "theta_": (candidate,),
        "front_.theta": ("m", candidate),
    }
    for name, shape in shapes.items():
        array = find(estimator, name)
        check_array(name, array, "f", shape, lengths)
        check_finite(name, array)
    scale = estimator.member_scale_
    require(bool((scale >= 0).all()), "member_scale_ is negative")
    for name in ("shrinkage_", "shift_"):
        find_number(estimator, name)
    return candidate


def _check_wide_layout(layout: Any) -> None:
    require(
        isinstance(layout, WideLayout),
        "networks that are not clml.network.WideNetwork cannot be kept in a file, got "
        f"a layout of {type(layout).__name__}",
    )
    require(
        all(type(n) is int for n in (layout.n_inputs, layout.n_labels))
        and type(layout.hidden) is tuple
        and type(layout.linear_path) is bool,
        f"{layout} is no layout of a network",
    )
    # What builds layouts for users checks the rest.
    described = WideNetwork(
        layout.hidden,
        activation=layout.activation,
        dropout=layout.dropout,
        linear_path=layout.linear_path,
    )
    require(
        described.build(layout.n_inputs, layout.n_labels) == layout,
        f"{layout} is no layout of a network",
    )


def _check_weights(estimator: Any, lengths: dict[str, int]) -> int:
    """Check what networks are made of; return the size of a candidate of the front.

    Candidates are networks, or, with members, maps: scales and biases of the labels.
    """
    network: tuple[str | int, ...] = ("n",)
    candidate: str | int = "n"
    if hasattr(estimator, "networks_"):
        networks = estimator.networks_
        check_array("networks_", networks, "f", ("members", "n"), lengths)
        check_finite("networks_", networks)
        require(lengths["members"] > 0, "networks_ holds no members")
        network = ("n",) if lengths["members"] == 1 else ("members", "n")
        candidate = 2 * lengths["K"]
        for name in ("shrinkage_", "shift_"):
            find_number(estimator, name)
    theta = find(estimator, "theta_")
    check_array("theta_", theta, "f", network, lengths)
    check_finite("theta_", theta)
    maps = find(estimator, "front_.theta")
    check_array("front_.theta", maps, "f", ("m", candidate), lengths)
    check_finite("front_.theta", maps)
    return int(maps.shape[1])


def check_tuned(estimator: Any, lengths: dict[str, int]) -> None:
    """Check a LebesgueTunedClassifier: its learner, and the map of its scores."""
    learner = find(estimator, "estimator_")
    _check_learner("estimator_", learner, lengths)
    _check_map(estimator, 1, lengths)
    require(not hasattr(estimator, "leaderboard_"), "one learner has no leaderboard_")


def check_stacking(estimator: Any, lengths: dict[str, int]) -> None:
    """Check a LebesgueStackingClassifier: its learners, and the map of their scores."""
    learners = find_a(list, estimator, "estimators_")
    require(len(learners) > 0, "estimators_ holds no learners")
    for i, learner in enumerate(learners):
        _check_learner(f"estimators_[{i}]", learner, lengths)
    named = find_a(Bunch, estimator, "named_estimators_")
    require(
        list(map(id, named.values())) == list(map(id, learners)),
        "named_estimators_ are others than estimators_",
    )
    _check_map(estimator, len(learners), lengths)
    if hasattr(estimator, "distilled_"):
        _check_distilled(estimator)
    if hasattr(estimator, "leaderboard_"):  # which models of before have not
        _check_leaderboard(estimator, list(named))


def _check_distilled(estimator: Any) -> None:
    """Check what learnt from a stack: its own parts have been."""
    kind, student = find_class(ESTIMATORS, "CLMLClassifier"), estimator.distilled_
    require(
        type(student) is kind and hasattr(student, "front_"),
        "distilled_ is no fitted CLMLClassifier",
    )
    for name in ("n_features_in_", "label_names_", "classes_"):
        require(
            np.array_equal(find(student, name), find(estimator, name)),
            f"{name} of distilled_ is another",
        )


def _check_leaderboard(estimator: Any, names: list[str]) -> None:
    """Check the table of a stack's learners."""
    board = find_a(Leaderboard, estimator, "leaderboard_")
    require(
        isinstance(board.names, tuple)
        and all(type(name) is str for name in board.names)
        and sorted(board.names) == sorted(names),
        "leaderboard_.names are not those of the learners",
    )
    require(
        isinstance(board.loss_names, tuple)
        and board.loss_names == estimator.front_.loss_names,
        "leaderboard_.loss_names are not those of front_",
    )
    lengths = {"M": len(names), "o": len(board.loss_names)}
    shapes: dict[str, tuple[str | int, ...]] = {
        "losses": ("M", "o"),
        "together": ("o",),
        "cost_without": ("M", "o"),
        "seconds": ("M",),
    }
    for name, shape in shapes.items():
        path = f"leaderboard_.{name}"
        check_array(path, find(board, name), "f", shape, lengths)
    check_finite("leaderboard_.seconds", board.seconds)
    require(bool((board.seconds >= 0).all()), "leaderboard_.seconds is negative")


def _check_learner(path: str, learner: Any, lengths: dict[str, int]) -> None:
    # Some have no scores of their own but those of their estimators of each label.
    scores = ("decision_function", "predict_proba", "estimators_")
    require(
        not isinstance(learner, type) and any(hasattr(learner, s) for s in scores),
        f"{path} is no fitted learner",
    )
    # Text has no columns, and then neither has the learner to have as many.
    n_features = getattr(learner, "n_features_in_", None)
    require(
        n_features is None or n_features == lengths.get("D", n_features),
        f"{path} was fitted on {n_features} features",
    )


def _check_map(estimator: Any, n_learners: int, lengths: dict[str, int]) -> None:
    """Check the maps, each of weights and then biases."""
    n_labels = lengths["K"]
    mixing = find_a(bool, estimator, "_mixing")
    require(not mixing or n_learners == 1, "the scores of several learners are mixed")
    size = ((n_labels if mixing else n_learners) + 1) * n_labels
    for name, shape in (("theta_", (size,)), ("front_.theta", ("m", size))):
        maps = find(estimator, name)
        check_array(name, maps, "f", shape, lengths)
        check_finite(name, maps)
    for name in ("shrinkage_", "shift_"):
        find_number(estimator, name)
    path = find_a(dict, estimator, "shrinkage_path_")
    require(
        all(isinstance(value, Real) for value in path.values()),
        "shrinkage_path_ holds other values than numbers",
    )
    names = set(find_a(dict, estimator, "_alternatives"))
    # What nothing was evolved for has no distribution that would have a mean.
    require(names in (set(), {"final", "mean"}), "_alternatives is not complete")
    _check_found(estimator, size, lengths)


def _check_found(estimator: Any, candidate: int, lengths: dict[str, int]) -> None:
    """Check what a search found, whatever its candidates stand for."""
    front = find_a(ParetoFront, estimator, "front_")
    require(
        isinstance(front.loss_names, tuple)
        and all(type(name) is str for name in front.loss_names),
        "front_.loss_names are not names",
    )
    require(not np.isnan(front.losses).any(), "front_.losses holds NaN")
    for name in ("standard_error", "difference_error"):
        errors = find(front, name)
        require(not (errors < 0).any(), f"front_.{name} is negative")
    require(
        front.default is None
        or (type(front.default) is int and 0 <= front.default < len(front.losses)),
        f"front_.default is {front.default!r}, which is no model of the front",
    )
    for rule in find_a(tuple, front, "rules"):  # the front knows what rules there are
        require(
            rule is None or fits_labels(rule, lengths["K"]),
            f"front_.rules holds {rule!r}, with {lengths['K']} label(s)",
        )
    check_positive("temperature_", find_number(estimator, "temperature_"))
    check_history(estimator)
    alternatives = find_a(dict, estimator, "_alternatives")
    for name, pair in alternatives.items():
        require(
            isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[1], Real),
            f"_alternatives has no weights and temperature of {name}",
        )
        check_array(f"weights of {name}", pair[0], "f", (candidate,), lengths)
        check_finite(f"weights of {name}", pair[0])
        check_positive(f"the temperature of {name}", pair[1])
    chosen = find_a((str, Integral), estimator, "incumbent_")
    require(
        chosen in alternatives
        if isinstance(chosen, str)
        else 0 <= chosen < len(front.losses),
        f"incumbent_ is {chosen!r}, which is no model of the run",
    )
