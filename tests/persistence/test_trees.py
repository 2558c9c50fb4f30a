"""Decision trees whose branches were bent."""

import numpy as np
import pytest
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier
from sklearn.tree._tree import Tree

from clml.persistence._trees import check_tree, check_trees
from clml.persistence.skops import dump_foreign, load_foreign


def bent(tree, node, **values):
    """Return a tree of which one node is another."""
    state = tree.__getstate__()
    nodes = state["nodes"].copy()
    for name, value in values.items():
        nodes[name][node] = value
    kind, arguments, _ = tree.__reduce__()
    found = kind(*arguments)
    found.__setstate__({**state, "nodes": nodes})
    return found


@pytest.fixture(scope="module")
def model(small_data):
    """The root of its tree has two children, 1 and another."""
    return DecisionTreeClassifier(max_depth=3, random_state=0).fit(*small_data)


@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeClassifier(),
        DecisionTreeClassifier(max_leaf_nodes=5),  # grown best first
        DecisionTreeClassifier(min_samples_split=1000),  # a leaf alone
        RandomForestClassifier(3),
        ExtraTreesClassifier(3, max_leaf_nodes=5),
    ],
    ids=str,
)
def test_what_fit_leaves_is_accepted(estimator, small_data):
    estimator.fit(*small_data)
    for each in getattr(estimator, "estimators_", [estimator]):
        check_tree(each.tree_)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"left_child": 10**9}, "leads nowhere"),
        ({"right_child": 10**9}, "leads nowhere"),
        ({"left_child": -2}, "leads nowhere"),
        ({"left_child": -1}, "leads nowhere"),  # while there is a right one
        ({"left_child": 0}, "leads nowhere"),  # round and round
        ({"feature": 8}, "a feature beyond its 8"),
        ({"feature": -2}, "a feature beyond its 8"),
    ],
    ids=str,
)
def test_bent_branches(values, message, model):
    assert isinstance(model.tree_, Tree)
    with pytest.raises(ValueError, match=message):
        check_tree(bent(model.tree_, 0, **values))


def test_a_leaf_may_be_bent_into_nothing_worse(model):
    leaf = int(np.flatnonzero(model.tree_.children_left == -1)[-1])
    check_tree(bent(model.tree_, leaf, feature=10**9))
    with pytest.raises(ValueError, match="leads nowhere"):
        check_tree(bent(model.tree_, leaf, left_child=leaf))


def test_trees_are_found_in_forests(small_data):
    forest = RandomForestClassifier(3, random_state=0).fit(*small_data)
    forest.estimators_[2].tree_ = bent(forest.estimators_[2].tree_, 0, feature=99)
    content = dump_foreign(forest)
    with pytest.raises(ValueError, match="a feature beyond its 8"):
        load_foreign(content)


ENSEMBLES = [
    RandomForestClassifier(2, random_state=0),
    GradientBoostingClassifier(n_estimators=2, random_state=0),
]


@pytest.mark.parametrize(
    "estimator",
    [*ENSEMBLES, BaggingClassifier(n_estimators=2, max_features=3)],
    ids=str,
)
def test_ensembles_come_back(estimator, small_data):
    X, Y = small_data
    estimator.fit(X, Y[:, 0])
    found = load_foreign(dump_foreign(estimator))
    np.testing.assert_array_equal(found.predict_proba(X), estimator.predict_proba(X))


@pytest.mark.parametrize("estimator", ENSEMBLES, ids=str)
def test_trees_of_more_columns(estimator, small_data):
    """Rows are counted for the ensemble, not for each of its trees."""
    X, Y = small_data
    estimator.fit(X, Y[:, 0])
    wide = np.hstack([X, X])
    other = estimator.__class__(**estimator.get_params()).fit(wide, Y[:, 0])
    estimator.estimators_ = other.estimators_
    with pytest.raises(ValueError, match="of 8 features holds a DecisionTree"):
        check_trees(estimator)
    first = np.ravel(other.estimators_)[0]
    first.n_features_in_ = 8
    with pytest.raises(ValueError, match="of 8 features holds a Tree of another"):
        check_trees(first)
