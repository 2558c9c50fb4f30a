import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from clml._scores import label_scores

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
    scores = label_scores(estimator.fit(X, Y), X)
    assert scores.shape == Y.shape
    # At exactly 0.5 (votes that tie) either prediction is right.
    clear = scores != 0
    assert (estimator.predict(X) == (scores > 0))[clear].all()


@pytest.mark.parametrize("constant", [0, 1])
def test_constant_label(constant, small_data):
    X, Y = small_data[0], small_data[1].copy()
    Y[:, 1] = constant
    scores = label_scores(RandomForestClassifier(5, random_state=0).fit(X, Y), X)
    assert (scores[:, 1] == constant - 0.5).all()


def test_one_dimensional_target_is_refused(small_data):
    X, Y = small_data
    with pytest.raises(ValueError, match="fitted on a 1-D y"):
        label_scores(LogisticRegression().fit(X, Y[:, 0]), X)
