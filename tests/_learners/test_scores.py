import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from clml._learners.scores import check_same_labels, label_logits, label_scores
from clml.baselines import MLkNNClassifier

ESTIMATORS = [
    KNeighborsClassifier(3),
    RandomForestClassifier(5, random_state=0),
    MultiOutputClassifier(GaussianNB()),
    OneVsRestClassifier(LogisticRegression()),
    make_pipeline(StandardScaler(), RandomForestClassifier(5, random_state=0)),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_positive_scores_are_predictions(estimator, small_data):
    X, Y = small_data
    scores = label_scores(estimator.fit(X, Y), X, 4)
    assert scores.shape == Y.shape
    # At exactly 0.5 (votes that tie) either prediction is right.
    clear = scores != 0
    assert (estimator.predict(X) == (scores > 0))[clear].all()


@pytest.mark.parametrize("constant", [0, 1])
def test_constant_label(constant, small_data):
    X, Y = small_data[0], small_data[1].copy()
    Y[:, 1] = constant
    scores = label_scores(RandomForestClassifier(5, random_state=0).fit(X, Y), X, 4)
    assert (scores[:, 1] == constant - 0.5).all()


def check_one_label(estimator, X, Y):
    scores = label_scores(estimator.fit(X, Y), X, 1)
    assert scores.shape == Y.shape
    clear = scores != 0
    predicted = np.reshape(estimator.predict(X), Y.shape)
    assert (predicted == (scores > 0))[clear].all()


@pytest.mark.parametrize(
    "estimator",
    [*ESTIMATORS, MLPClassifier(max_iter=5), MLkNNClassifier()],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.filterwarnings("ignore")  # that a column vector was passed, and the like
def test_one_label(estimator, small_data):
    X, Y = small_data
    check_one_label(estimator, X, Y[:, :1])


@pytest.mark.parametrize(
    "estimator",
    # One class makes no target for the others.
    [KNeighborsClassifier(3), RandomForestClassifier(5), MLkNNClassifier()],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize("constant", [0, 1])
@pytest.mark.filterwarnings("ignore")
def test_one_label_that_is_constant(estimator, constant, small_data):
    X, Y = small_data
    check_one_label(estimator, X, np.full_like(Y[:, :1], constant))


def test_other_targets_and_estimators_are_refused(small_data):
    X, Y = small_data
    with pytest.raises(ValueError, match=r"shape \(rows, 4\), got \(120,\)"):
        label_scores(LogisticRegression().fit(X, Y[:, 0]), X, 4)
    with pytest.raises(TypeError, match="neither decision_function nor predict_proba"):
        label_scores(LinearRegression().fit(X, Y), X, 4)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_logits_are_finite_and_rank_as_scores_do(estimator, small_data):
    X, Y = small_data
    scores, logits = (
        f(estimator.fit(X, Y), X, 4) for f in (label_scores, label_logits)
    )
    assert np.isfinite(logits).all()
    np.testing.assert_array_equal(logits > 0, scores > 0)
    order = np.argsort(scores, axis=None)
    assert (np.diff(logits.ravel()[order]) >= 0).all()


def test_logits_are_those_of_clipped_probabilities(small_data):
    X, Y = small_data
    neighbours = KNeighborsClassifier(4).fit(X, Y)
    p = label_scores(neighbours, X, 4) + 0.5
    logits = label_logits(neighbours, X, 4)
    inside = (p > 0) & (p < 1)
    np.testing.assert_allclose(1 / (1 + np.exp(-logits[inside])), p[inside])
    assert logits[p == 0] == pytest.approx(-np.log(599))
    assert logits[p == 1] == pytest.approx(np.log(599))


def test_logits_of_decisions_are_the_decisions(small_data):
    X, Y = small_data
    model = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    np.testing.assert_array_equal(label_logits(model, X, 4), model.decision_function(X))


@pytest.mark.parametrize("classes", [("no", "yes"), (1, 2), (-1, 1)], ids=str)
def test_two_classes_of_any_name(classes, small_data):
    """The second is the positive one, as in a decision function."""
    X, y = small_data[0], np.array(classes)[small_data[1][:, 0]]
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    np.testing.assert_array_equal(
        label_scores(forest, X, 1)[:, 0], forest.predict_proba(X)[:, 1] - 0.5
    )


@pytest.fixture
def with_constant_labels(small_data):
    X, Y = small_data
    Y = Y.copy()
    Y[:, 1], Y[:, 2] = 0, 1
    return X, Y


@pytest.mark.filterwarnings("ignore:Label")
@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: model,
        lambda model: make_pipeline(StandardScaler(), model),
        lambda model: GridSearchCV(model, {"estimator__C": [1.0]}, cv=2),
    ],
    ids=["alone", "pipeline", "search"],
)
@pytest.mark.parametrize("frozen", [False, True])
def test_one_vs_rest_is_certain_of_labels_that_never_varied(
    wrap, frozen, with_constant_labels
):
    """Its own decision for them, 0, would rank above all that are unlikely."""
    X, Y = with_constant_labels
    fitted = wrap(OneVsRestClassifier(LogisticRegression())).fit(X, Y)
    own = fitted.decision_function(X)
    scores = label_scores(FrozenEstimator(fitted) if frozen else fitted, X, Y.shape[1])
    np.testing.assert_array_equal(scores[:, 1], scores.min(axis=1))
    np.testing.assert_array_equal(scores[:, 2], scores.max(axis=1))
    assert scores[0, 1] < -6
    np.testing.assert_array_equal(scores[:, 0], own[:, 0])


@pytest.mark.filterwarnings("ignore:Label")
@pytest.mark.parametrize("constant", [0, 1])
def test_one_vs_rest_of_learners_without_decisions(constant, small_data):
    """Its first label never varied, and decides; the others have probabilities."""
    X, Y = small_data
    Y = Y.copy()
    Y[:, 0] = constant
    model = OneVsRestClassifier(KNeighborsClassifier()).fit(X, Y)
    expected = model.predict_proba(X) - 0.5
    np.testing.assert_array_equal(label_scores(model, X, Y.shape[1]), expected)


@pytest.mark.filterwarnings("ignore:Label")
def test_scores_of_a_row_do_not_depend_on_others(with_constant_labels):
    X, Y = with_constant_labels
    X = X * np.linspace(1, 1000, len(X))[:, None]
    model = OneVsRestClassifier(LogisticRegression()).fit(X, Y)
    together = label_scores(model, X, Y.shape[1])
    alone = [label_scores(model, row[None], Y.shape[1])[0] for row in X]
    np.testing.assert_allclose(together, alone)


def test_decisions_of_single_labels_are_taken_where_there_are_no_others(small_data):
    X, Y = small_data
    model = MultiOutputClassifier(RidgeClassifier()).fit(X, Y)
    expected = np.column_stack([e.decision_function(X) for e in model.estimators_])
    np.testing.assert_array_equal(label_scores(model, X, Y.shape[1]), expected)


# Fitted learners


X_OF_LABELS = np.random.default_rng(0).normal(size=(40, 3))
LABELS = (X_OF_LABELS @ np.ones((3, 4)) + np.arange(4) > 1).astype(int)
INDICATOR = [np.array([0, 1])] * 4


@pytest.mark.parametrize(
    "learner",
    [
        RandomForestClassifier(3),
        KNeighborsClassifier(),
        RidgeClassifier(),
        MLPClassifier((4,), max_iter=2),
        OneVsRestClassifier(LogisticRegression()),
        MultiOutputClassifier(LogisticRegression()),
        make_pipeline(StandardScaler(), MLkNNClassifier(3)),
    ],
    ids=lambda learner: type(learner).__name__,
)
@pytest.mark.parametrize("n_labels", [4, 2, 1])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_learners_of_the_same_labels(learner, n_labels):
    names = [f"label{k}" for k in range(n_labels)]
    fitted = clone(learner).fit(X_OF_LABELS, LABELS[:, :n_labels])
    for given in (fitted, FrozenEstimator(fitted)):
        check_same_labels(given, X_OF_LABELS, INDICATOR[:n_labels], names)


@pytest.mark.parametrize(
    ("y", "classes", "message"),
    [
        (
            LABELS[:, 0],
            np.array(["no", "yes"]),
            r"\[0, 1\], and .* are \['no', 'yes'\]",
        ),
        (
            np.array(["no", "yes"])[LABELS[:, 0]],
            np.array([0, 1]),
            "the classes of y are",
        ),
        (LABELS[:, 0] + 1, np.array([0, 1]), r"on the classes \[1, 2\]"),
        (LABELS[:, 0] * 0, np.array([0, 1]), r"on the classes \[0\]"),
        (LABELS, np.array([0, 1]), "on 4 labels, and y has 1"),
        (
            LABELS[:, 0],
            INDICATOR[:2],
            r"one column of the classes \[0, 1\], and y has 2",
        ),
        (LABELS.argmax(axis=1), INDICATOR, "one column of the classes .* y has 4"),
        (LABELS[:, :3], INDICATOR, "on 3 labels, and y has 4"),
        (LABELS + 1, INDICATOR, r"classes \[1, 2\] of the label 'rain'"),
        (LABELS[:, 0] + 1, INDICATOR[:1], r"classes \[1, 2\] of the label 'rain'"),
    ],
    ids=str,
)
@pytest.mark.parametrize("frozen", [False, True])
def test_learners_of_other_labels_are_refused(y, classes, message, frozen):
    fitted = RandomForestClassifier(3, random_state=0).fit(X_OF_LABELS, y)
    given = FrozenEstimator(fitted) if frozen else fitted
    names = ["rain", "wind", "sun", "snow"]
    with pytest.raises(ValueError, match=f"^RandomForestClassifier was .*{message}"):
        check_same_labels(given, X_OF_LABELS, classes, names)


def test_learners_that_say_nothing_of_classes_are_asked_for_scores():
    check_same_labels(LinearRegression(), X_OF_LABELS, INDICATOR, list("abcd"))
