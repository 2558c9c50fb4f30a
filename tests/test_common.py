"""scikit-learn's own checks, and ours in the same form, for every estimator."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import has_fit_parameter

from clml import (
    CMA,
    Ascent,
    CLMLClassifier,
    LebesgueStackingClassifier,
    LebesgueTunedClassifier,
)
from clml.baselines import (
    C2AEClassifier,
    CLIFClassifier,
    DELAClassifier,
    GaussianNBChain,
    GaussianNBRelevance,
    LIFTClassifier,
    LLSFClassifier,
    MLkNNClassifier,
    MLPRelevanceClassifier,
    MPVAEClassifier,
)
from clml.network import PaperNetwork, WideNetwork

# Each with what makes it quick enough for a hundred fits on tiny data.
ESTIMATORS = [
    CLMLClassifier(network=PaperNetwork(), max_epochs=30, random_state=0),
    CLMLClassifier(
        network=WideNetwork((32,)),
        n_members=5,
        search=Ascent(learning_rate=0.01),
        shrinkage=0.5,
        max_epochs=30,
        random_state=0,
    ),
    CLMLClassifier(
        search=CMA(population_size=16),
        network=PaperNetwork(embedding_dim=8),
        n_members=1,
        max_epochs=60,
        random_state=0,
    ),
    GaussianNBRelevance(),
    GaussianNBChain(),
    MLkNNClassifier(n_neighbors=5),
    LIFTClassifier(random_state=0),
    LLSFClassifier(),
    C2AEClassifier(
        n_units=32,
        max_epochs=40,
        batch_size=50,
        learning_rate=3e-4,
        random_state=0,
    ),
    CLIFClassifier(embedding_dim=16, max_epochs=15, learning_rate=3e-3, random_state=0),
    DELAClassifier(latent_dim=8, max_epochs=10, batch_size=32, random_state=0),
    MPVAEClassifier(
        latent_dim=4, n_samples=2, max_epochs=8, batch_size=50, random_state=0
    ),
    MLPRelevanceClassifier(n_units=64, max_epochs=30, batch_size=32, random_state=0),
    LebesgueTunedClassifier(
        ExtraTreesClassifier(10, max_depth=6, random_state=0),
        cv=2,
        max_epochs=3,
        population_size=8,
        random_state=0,
    ),
    LebesgueStackingClassifier(
        [
            ("tree", DecisionTreeClassifier(max_depth=4, random_state=0)),
            ("trees", ExtraTreesClassifier(10, max_depth=6, random_state=0)),
        ],
        cv=2,
        shrinkage=0.5,
        max_epochs=3,
        population_size=8,
        random_state=0,
    ),
]

# Learners look at rows themselves: what they refuse is theirs to say.
TAKE_WHAT_LEARNERS_TAKE = (LebesgueTunedClassifier, LebesgueStackingClassifier)

SPLITS = "an internal split into validation rows or folds is not weight-equivalent"


def expected_failures(estimator):
    failures = {
        "check_classifier_multioutput": "classes_ is a list, as elsewhere for labels"
    }
    if {"validation_fraction", "cv"} & set(estimator.get_params()):
        for kind in ("dense", "sparse"):
            failures[f"check_sample_weight_equivalence_on_{kind}_data"] = SPLITS
    return failures


@pytest.mark.filterwarnings("ignore:.*labels are constant in the training rows")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def encodes(estimator):
    """Whether it reads columns by encodings."""
    given = estimator.get_params(deep=False)
    ascends = given.get("search") == "auto" or isinstance(given.get("search"), Ascent)
    return ascends and not isinstance(given["network"], PaperNetwork)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_tags(estimator):
    tags = estimator.__sklearn_tags__()
    assert tags.estimator_type == "classifier"
    assert tags.target_tags.single_output
    assert tags.target_tags.multi_output
    assert tags.target_tags.required
    assert tags.classifier_tags.multi_label
    assert not tags.classifier_tags.multi_class
    assert tags.input_tags.sparse
    # Of the tags that take checks away one alone, whose check is among ours.
    if not isinstance(estimator, TAKE_WHAT_LEARNERS_TAKE):
        assert tags.input_tags.allow_nan == encodes(estimator)
    assert not tags.no_validation
    assert not tags._skip_test
    assert not tags.non_deterministic
    assert not tags.classifier_tags.poor_score


def check_indicator_output(estimator, X, Y):
    fitted = clone(estimator).fit(X, Y)
    assert fitted.predict(X).shape == Y.shape
    assert set(np.unique(fitted.predict(X))) <= {0, 1}
    probability = fitted.predict_proba(X)
    assert probability.shape == Y.shape
    np.testing.assert_array_equal(fitted.predict(X), probability > 0.5)
    np.testing.assert_array_equal(fitted.predict(X), fitted.decision_function(X) > 0)
    assert [c.tolist() for c in fitted.classes_] == [[0, 1]] * Y.shape[1]


def check_column_order(estimator, X, Y):
    """Labels keep their columns: each follows the feature of the same number."""
    X = np.random.default_rng(0).normal(size=(150, 4))
    estimator = clone(estimator)
    if "max_epochs" in estimator.get_params():
        estimator.set_params(max_epochs=100)
    fitted = estimator.fit(X, (X > 0).astype(int))
    agreement = (fitted.predict(X)[:, :, None] == (X > 0)[:, None, :]).mean(axis=0)
    assert (agreement.argmax(axis=1) == np.arange(4)).all()


def check_label_never_positive(estimator, X, Y):
    Y = Y.copy()
    Y[:, 1] = 0
    with pytest.warns(UserWarning, match="1 of 4 labels are constant"):
        fitted = clone(estimator).fit(X, Y)
    assert fitted.predict(X).shape == Y.shape


def check_sparse_equals_dense(estimator, X, Y):
    X = np.where(X > 4, X, 0.0)
    dense = clone(estimator).fit(X, Y)
    if encodes(estimator):
        # Sparse rows are encoded without centring: another model, which takes both.
        dense = clone(estimator).fit(sp.csr_array(X), Y)
    for kind in (sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.coo_array):
        sparse = clone(estimator).fit(kind(X), Y)
        np.testing.assert_allclose(
            sparse.decision_function(kind(X)), dense.decision_function(X), atol=1e-4
        )


def check_same_seed_same_model(estimator, X, Y):
    a, b = (clone(estimator).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(a.decision_function(X), b.decision_function(X))
    if a.get_params().get("random_state") is not None:
        other = clone(estimator).set_params(random_state=1).fit(X, Y)
        assert (other.decision_function(X) != a.decision_function(X)).any()


def check_inputs_not_modified(estimator, X, Y):
    X, Y = X.copy(), Y.copy()
    weight = np.linspace(0, 1, len(X))
    before = X.copy(), Y.copy(), weight.copy()
    weighted = has_fit_parameter(estimator, "sample_weight")
    arguments = {"sample_weight": weight} if weighted else {}
    clone(estimator).fit(X, Y, **arguments).predict(X)
    for now, then in zip((X, Y, weight), before, strict=True):
        np.testing.assert_array_equal(now, then)


def check_lists_of_labels(estimator, X, Y):
    """A natural mistake, which says what to do."""
    with pytest.raises(ValueError, match="MultiLabelBinarizer"):
        clone(estimator).fit(X[:3], [[0, 1], [2], []])


def check_names_of_labels(estimator, X, Y):
    """Labels of a second frame are those of the first, in whatever order they stand."""
    Y = pd.DataFrame(Y, columns=["rain", "wind", "sun", "snow"])
    turned, other = Y[Y.columns[::-1]], Y.rename(columns={"sun": "fog"})
    fitted = clone(estimator).fit(X, Y)
    assert fitted.label_names_.tolist() == Y.columns.tolist()
    expected = fitted.score(X, Y.to_numpy())
    assert fitted.score(X, Y) == fitted.score(X, turned) == expected
    with pytest.raises(ValueError, match=r"y must have .*\['fog'\] are unknown"):
        fitted.score(X, other)
    with pytest.raises(ValueError, match="y must have the 4 labels"):
        fitted.score(X, Y.to_numpy()[:, :3])
    if not has_fit_parameter(estimator, "y_val"):
        return
    judged, as_well = (
        clone(estimator).fit(X[:80], Y[:80], X_val=X[80:], y_val=y_val[80:])
        for y_val in (Y, turned)
    )
    np.testing.assert_array_equal(
        judged.decision_function(X), as_well.decision_function(X)
    )
    with pytest.raises(ValueError, match=r"y_val must have .*\['fog'\] are unknown"):
        clone(estimator).fit(X, Y, X_val=X, y_val=other)


def check_classes_of_another_coding(estimator, X, Y):
    y = np.array(["no", "yes"])[Y[:, 0]]
    estimator = clone(estimator)
    if "losses" in estimator.get_params():
        estimator.set_params(losses=("hamming", "micro_f1"))
    fitted = estimator.fit(X, y)
    with pytest.raises(ValueError, match=r"y must hold the classes \['no', 'yes'\]"):
        fitted.score(X, Y[:, 0])
    if has_fit_parameter(estimator, "y_val"):
        with pytest.raises(ValueError, match="y_val must hold the classes"):
            clone(estimator).fit(X, y, X_val=X, y_val=Y[:, 0])


def check_infinity_and_missing_values(estimator, X, Y):
    """Infinity is refused by all, a missing value by those that do not take any."""
    fitted = clone(estimator).fit(X, Y)
    for value in (np.nan, np.inf, -np.inf):
        bad = X.copy()
        bad[5, 1] = value
        if np.isnan(value) and estimator.__sklearn_tags__().input_tags.allow_nan:
            assert np.isfinite(clone(estimator).fit(bad, Y).predict_proba(bad)).all()
            assert np.isfinite(fitted.predict_proba(bad)).all()
            continue
        if isinstance(estimator, TAKE_WHAT_LEARNERS_TAKE):
            continue
        for form in (np.asarray, sp.csr_array):
            with pytest.raises(ValueError, match=r"NaN|inf"):
                clone(estimator).fit(form(bad), Y)
            with pytest.raises(ValueError, match=r"NaN|inf"):
                fitted.predict(form(bad))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    "check",
    [
        check_indicator_output,
        check_column_order,
        check_label_never_positive,
        check_sparse_equals_dense,
        check_same_seed_same_model,
        check_inputs_not_modified,
        check_lists_of_labels,
        check_names_of_labels,
        check_classes_of_another_coding,
        check_infinity_and_missing_values,
    ],
)
def test_our_checks(estimator, check, small_data):
    check(estimator, *small_data)
