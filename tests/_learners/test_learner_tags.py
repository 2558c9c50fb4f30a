import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.ensemble import StackingClassifier as Stacking
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectFromModel, SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags

from clml import CLMLClassifier
from clml._learners.learner_tags import for_labels, refuses_missing
from clml._stacking import default_learners

LINEAR = LogisticRegression()


class Silent(ClassifierMixin, BaseEstimator):
    """Says nothing of what it takes."""

    def fit(self, X, y):
        return self


class Telling(Silent):
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = False
        return tags


class Own(LogisticRegression):
    """Of a class of scikit-learn, which says it for this one."""


@pytest.mark.parametrize(
    "learner",
    [
        RandomForestClassifier(),
        KNeighborsClassifier(),
        MLPClassifier(),
        OneVsRestClassifier(LINEAR),
        MultiOutputClassifier(LINEAR),
        ClassifierChain(LINEAR),
        make_pipeline(StandardScaler(), OneVsRestClassifier(LINEAR)),
        make_pipeline(SelectFromModel(LINEAR), DecisionTreeClassifier()),
        GridSearchCV(OneVsRestClassifier(LINEAR), {}),
        GridSearchCV(make_pipeline(KNeighborsClassifier()), {}),
        Stacking([("tree", DecisionTreeClassifier())]),
        FrozenEstimator(LINEAR),
        CLMLClassifier(),
        Silent(),
        *(learner for _, learner in default_learners()),
    ],
    ids=lambda e: type(e).__name__,
)
def test_learners_of_several_labels_are_left_as_they_are(learner):
    assert for_labels(learner) is learner


@pytest.mark.parametrize(
    "learner",
    [
        LINEAR,
        SVC(),
        GradientBoostingClassifier(),
        GridSearchCV(LINEAR, {}),
        GridSearchCV(make_pipeline(LINEAR), {}),
        make_pipeline(SelectKBest(), LINEAR),
        make_pipeline(SelectFromModel(LINEAR), LINEAR),
        Telling(),
        Own(),
    ],
    ids=lambda e: type(e).__name__,
)
def test_learners_of_one_label_are_copied_for_each(learner):
    several = for_labels(learner)
    assert isinstance(several, OneVsRestClassifier)
    assert several.estimator is learner


def test_a_learner_of_another_library():
    xgboost = pytest.importorskip("xgboost")
    learner = xgboost.XGBClassifier()
    several = get_tags(learner).classifier_tags.multi_label
    assert (for_labels(learner) is learner) == several


def test_the_last_step_of_a_pipeline_is_copied():
    given = make_pipeline(StandardScaler(), make_pipeline(SVC(C=3.0)))
    several = for_labels(given)
    assert isinstance(several[0], StandardScaler)
    assert isinstance(several[-1][-1], OneVsRestClassifier)
    assert several[-1][-1].estimator.C == 3.0
    assert isinstance(given[-1][-1], SVC)


@pytest.mark.parametrize(
    "learner, refuses",
    [
        (LINEAR, True),
        (DecisionTreeClassifier(), False),
        (KNeighborsClassifier(), True),
        (OneVsRestClassifier(LINEAR), True),
        (OneVsRestClassifier(HistGradientBoostingClassifier()), False),
        (make_pipeline(StandardScaler(), LINEAR), True),
        (make_pipeline(StandardScaler(), HistGradientBoostingClassifier()), False),
        (make_pipeline(SimpleImputer(), LINEAR), False),
        (make_pipeline(FunctionTransformer(np.nan_to_num), LINEAR), False),
        (make_pipeline(ColumnTransformer([]), LINEAR), False),
        (make_pipeline("passthrough", LINEAR), True),
        (make_pipeline(TfidfVectorizer(), LINEAR), False),  # text may be mended
        (SVC(), True),
        (SVC(kernel=np.dot), False),  # which sees rows as they are
        (GridSearchCV(LINEAR, {}), False),  # nobody knows
        (Silent(), False),
        (CLMLClassifier(), False),
        (CLMLClassifier(network="paper"), True),
    ],
    ids=lambda e: type(e).__name__,
)
def test_who_refuses_missing_values(learner, refuses):
    assert refuses_missing(learner) == refuses


def test_default_learners_take_missing_values():
    assert not any(refuses_missing(learner) for _, learner in default_learners())
