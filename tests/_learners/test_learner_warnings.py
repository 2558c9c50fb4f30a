import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier

from clml import CLMLClassifier, LebesgueStackingClassifier
from clml._learners.learner_warnings import LearnerWarnings, heard_warnings

QUICK = {"cv": 3, "shrinkage": 0.5, "random_state": 0}


@pytest.fixture
def rare_data(small_data):
    """A label of one row, which varies in two of three training parts."""
    pandas = pytest.importorskip("pandas")
    X, Y = small_data[0], small_data[1].copy()
    Y[:, 2] = 0
    Y[5, 2] = 1
    return X, pandas.DataFrame(Y, columns=["calm", "glad", "moved", "sad"])


def said(fit):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        # Of scikit-learn, where SciPy is newer than it.
        warnings.simplefilter("ignore", DeprecationWarning)
        fit()
    return [(record.category, str(record.message), record.filename) for record in heard]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_label_that_a_fold_does_not_know_is_named_once(n_jobs, rare_data):
    small = CLMLClassifier(network="paper", n_members=2, max_epochs=1, random_state=0)
    learners = [
        ("linear", OneVsRestClassifier(LogisticRegression(max_iter=1000))),
        ("clml", small),
    ]
    clf = LebesgueStackingClassifier(learners, n_jobs=n_jobs, **QUICK)
    ((category, message, place),) = said(lambda: clf.fit(*rare_data))
    assert category is UserWarning
    assert message == (
        "1 of 4 labels are constant in the training part of a fold, where some "
        "learners cannot learn them: ['moved']."
    )
    assert place == __file__


def test_a_label_that_never_varies_is_named_once(rare_data):
    X, Y = rare_data
    Y = Y.assign(moved=0)
    clf = LebesgueStackingClassifier([("linear", LogisticRegression())], **QUICK)
    ((_, message, _),) = said(lambda: clf.fit(X, Y))
    assert message.endswith("cannot be learnt: moved.")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_other_warnings_are_said_once_a_learner(n_jobs, small_data):
    learners = [
        ("short", LogisticRegression(max_iter=1)),
        ("near", KNeighborsClassifier()),
    ]
    clf = LebesgueStackingClassifier(learners, n_jobs=n_jobs, **QUICK)
    ((category, message, _),) = said(lambda: clf.fit(*small_data))
    assert category is ConvergenceWarning
    assert message.startswith("lbfgs failed to converge")
    assert message.endswith("(the learner 'short', in 4 fits)")


def test_what_was_warned_of_before_an_error_is_said():
    def fit():
        with pytest.raises(RuntimeError), heard_warnings(True):
            warnings.warn("mind", stacklevel=1)
            raise RuntimeError

    assert [message for _, message, _ in said(fit)] == ["mind"]


def test_it_does_not_listen_among_threads():
    def fit():
        with heard_warnings(False) as heard:
            warnings.warn("mind", stacklevel=1)
        assert heard == []

    assert [message for _, message, _ in said(fit)] == ["mind"]


def test_nothing_to_say():
    told = LearnerWarnings(["a"], ["b"], [], np.zeros((2, 1)))
    told.add(0, [(UserWarning, "Label 0 is present in all training examples.")])
    assert said(told.tell) == []
