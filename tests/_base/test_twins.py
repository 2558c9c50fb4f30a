import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from clml import (
    CLMLClassifier,
    LebesgueStackingClassifier,
    LebesgueTunedClassifier,
)
from clml._base.twins import told_of_twins, warn_of_twins

GENERATOR = np.random.default_rng(0)
FEATURES = GENERATOR.normal(size=(60, 4))
NOISE = GENERATOR.integers(0, 2, size=(60, 3))
GROUPS = np.tile(np.arange(60), 2)
WORDS = [f"word{a:.3f} and word{b:.3f}" for a, b in FEATURES[:, :2]]


def warnings_of(X, parts=None):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_twins(X, "leave them out", parts)
    return [str(one.message) for one in caught]


FORMS = {
    "array": np.asarray,
    "integers": lambda X: (X * 1000).astype(int),
    "single": lambda X: X.astype(np.float32),
    "columns first": np.asfortranarray,
    "objects": lambda X: X.astype(object),
    "images": lambda X: X.reshape(-1, 2, 2),
    "lists": lambda X: X.tolist(),
    "sparse": lambda X: sp.csr_array(np.where(X > 0, X, 0)),
    "columns of sparse": lambda X: sp.csc_matrix(np.where(X > 0, X, 0)),
    "frame": pd.DataFrame,
    "text in a frame": lambda X: pd.DataFrame(X).assign(t=X[:, 0].astype(str)),
    "sparse frame": lambda X: pd.DataFrame(X).astype(pd.SparseDtype(float, 0.0)),
    "texts": lambda X: [str(row) for row in X.tolist()],
    "series of texts": lambda X: pd.Series([str(row) for row in X.tolist()]),
    "words": lambda X: [list(map(str, row[row > -0.5])) for row in X],
}


@pytest.mark.parametrize("form", FORMS)
def test_copies_are_told_of_whatever_the_rows_are(form):
    make = FORMS[form]
    (message,) = warnings_of(make(np.vstack([FEATURES, FEATURES])))
    assert message.startswith("120 of 120 rows have the same features as another row")
    assert message.endswith("Leave copies out, or leave them out.")
    assert not warnings_of(make(GENERATOR.normal(size=(60, 4))))


def test_some_copies_do_not_matter():
    assert not warnings_of(np.vstack([FEATURES, FEATURES[:15]]))
    many = GENERATOR.normal(size=(1000, 4))
    assert not warnings_of(np.vstack([many, many[:40]]))
    (message,) = warnings_of(np.vstack([many, many[:100]]))
    assert message.startswith("200 of 1100 rows")


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, pd.DataFrame])
@pytest.mark.parametrize("n_columns", [1, 3, 8])
def test_rows_of_few_values_are_alike_by_chance(kind, n_columns):
    assert not warnings_of(kind(GENERATOR.integers(0, 2, size=(300, n_columns))))


def test_columns_of_few_values_that_go_together_are_not_chance():
    rows = GENERATOR.integers(0, 2, size=(100, 20))
    assert warnings_of(np.vstack([rows, rows]))


def test_zeros_of_either_sign_are_the_same():
    copies = np.where(FEATURES > 0, FEATURES, 0.0)
    assert warnings_of(np.vstack([copies, np.where(copies == 0, -0.0, copies)]))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_missing_values_are_the_same_whatever_their_bits(form):
    holes = np.where(FEATURES > 1, np.nan, FEATURES)
    others = np.where(FEATURES > 1, -np.nan, FEATURES)
    assert np.signbit(others[FEATURES > 1]).all()
    assert warnings_of(form(np.vstack([holes, others])))
    assert not warnings_of(form(holes))


def test_twins_of_the_same_part_are_together():
    X = np.vstack([FEATURES, FEATURES])
    assert not warnings_of(X, GROUPS % 5)
    assert warnings_of(X, np.repeat([0, 1], 60))


def test_nothing_inside_of_those_who_told():
    with told_of_twins():
        assert not warnings_of(np.vstack([FEATURES, FEATURES]))
    assert warnings_of(np.vstack([FEATURES, FEATURES]))


# Fits

TREE = DecisionTreeClassifier(random_state=0)
QUICK = {"max_epochs": 2, "population_size": 8, "shrinkage": 0.5, "random_state": 0}
NETWORK = CLMLClassifier(n_members=2, max_epochs=2, shrinkage=0.0, random_state=0)
ONE = CLMLClassifier(search="cma", n_members=1, max_epochs=2, random_state=0)
LEARNERS = [
    NETWORK,
    ONE,
    LebesgueTunedClassifier(TREE, **QUICK),
    LebesgueStackingClassifier([("a", TREE), ("b", ONE)], **QUICK),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda one: type(one).__name__)
def test_a_fit_warns_once(learner):
    X, Y = np.vstack([FEATURES, FEATURES]), np.vstack([NOISE, NOISE])
    with pytest.warns(UserWarning) as caught:
        learner.fit(X, Y)
    (message,) = [str(one.message) for one in caught]
    assert re.match(r"\d+ of 120 rows have the same features", message)
    learner.fit(FEATURES, NOISE)


def test_copies_that_are_kept_together_are_no_matter():
    X, Y = np.vstack([FEATURES, FEATURES]), np.vstack([NOISE, NOISE])
    apart = list(GroupKFold(3).split(X, Y, GROUPS))
    LebesgueTunedClassifier(TREE, cv=apart, **QUICK).fit(X, Y)
    NETWORK.fit(FEATURES, NOISE, X_val=X, y_val=Y)
    ONE.set_params(validation_fraction=0).fit(X, Y)
    fitted = TREE.fit(FEATURES, NOISE)
    LebesgueTunedClassifier(fitted, prefit=True, **QUICK).fit(X, Y)
    ONE.set_params(validation_fraction=0.2)


def test_texts_that_are_copies():
    model = make_pipeline(CountVectorizer(), TREE)
    with pytest.warns(UserWarning, match="of 120 rows"):
        LebesgueTunedClassifier(model, **QUICK).fit(2 * WORDS, np.vstack([NOISE] * 2))


def test_what_copies_do():
    """Why there is a warning: of noise the front says that it is understood."""
    X, Y = np.vstack([FEATURES] * 4), np.vstack([NOISE] * 4)
    forest = RandomForestClassifier(10, random_state=0)
    with pytest.warns(UserWarning, match="of 240 rows"):
        clf = LebesgueTunedClassifier(forest, **QUICK).fit(X, Y)
    assert clf.front_.losses[:, 0].min() < 0.1
