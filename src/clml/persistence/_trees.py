"""Decision trees of scikit-learn, whose code follows their branches unchecked."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble._forest import BaseForest
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree

_NO_CHILD = -1


def check_trees(value: Any) -> None:
    """Refuse a tree, or what is made of trees, that would read beyond its rows.

    Parameters
    ----------
    value : any object
        What it holds is to be given on its own.

    Raises
    ------
    ValueError
    """
    if isinstance(value, Tree):
        check_tree(value)
    elif isinstance(value, BaseDecisionTree) and hasattr(value, "tree_"):
        _check_columns(value, value.tree_, Tree, "n_features")
    elif isinstance(value, BaseForest | BaseGradientBoosting):
        # Their rows are counted once, for all trees.
        for each in np.ravel(getattr(value, "estimators_", ())):
            _check_columns(value, each, BaseDecisionTree, "n_features_in_")


def _check_columns(owner: Any, part: Any, kind: type, name: str) -> None:
    n_features = getattr(owner, "n_features_in_", None)
    if not isinstance(part, kind) or getattr(part, name, None) != n_features:
        raise ValueError(
            f"a {type(owner).__name__} of {n_features} features holds a "
            f"{type(part).__name__} of another number"
        )


def check_tree(tree: Tree) -> None:
    """Refuse a tree whose branches lead out of it, or back.

    Every child comes after its parent in the trees that scikit-learn grows: one that
    does not could lead round for ever.

    Parameters
    ----------
    tree : sklearn.tree._tree.Tree

    Raises
    ------
    ValueError
    """
    nodes: Any = tree.__getstate__()["nodes"]
    left, right = nodes["left_child"], nodes["right_child"]
    inner = (left != _NO_CHILD) | (right != _NO_CHILD)
    place = np.flatnonzero(inner)
    for children in (left[inner], right[inner]):
        if ((children <= place) | (children >= len(nodes))).any():
            raise ValueError("a branch of a tree leads nowhere")
    feature = nodes["feature"][inner]
    if ((feature < 0) | (feature >= tree.n_features)).any():
        raise ValueError(f"a tree asks for a feature beyond its {tree.n_features}")
    if len(nodes) == 0:
        raise ValueError("a tree has no nodes")
