"""What learners take: an indicator of several labels, missing values."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

# Scalers hand missing values on to the next step; of other steps nobody knows.
_HANDING_ON = (
    "MaxAbsScaler",
    "MinMaxScaler",
    "PowerTransformer",
    "QuantileTransformer",
    "RobustScaler",
    "StandardScaler",
)


def for_labels(learner: Any) -> Any:
    """Return a learner of several labels: one copy a label where it has but one.

    Of a pipeline the last step is copied, unless a step before learns from the labels
    and takes but one, too.

    Parameters
    ----------
    learner : classifier, not fitted
        One whose class says nothing of labels is returned as it is.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from clml._learners.learner_tags import for_labels
    >>> for_labels(LogisticRegression())
    OneVsRestClassifier(estimator=LogisticRegression())
    >>> for_labels(KNeighborsClassifier())
    KNeighborsClassifier()
    """
    # Imported here: it takes as long as all of this library.
    from sklearn.multiclass import OneVsRestClassifier

    if takes_indicator(learner):
        return learner
    if not isinstance(learner, Pipeline) or _learns_one_label(learner):
        return OneVsRestClassifier(learner)
    twin = clone(learner)
    name, last = twin.steps[-1]
    twin.steps[-1] = (name, for_labels(last))
    return twin


def takes_indicator(learner: Any) -> bool:
    """Tell whether a classifier takes several labels, as far as that can be known."""
    if isinstance(learner, Pipeline):
        return takes_indicator(learner.steps[-1][1])
    if isinstance(learner, FrozenEstimator) or not _states_tags(learner):
        return True
    if _is_search(learner):
        return takes_indicator(learner.estimator)
    if type(learner).__name__ == "StackingClassifier":  # it does, its tags do not say
        return True
    tags = get_tags(learner)
    if tags.classifier_tags is None:
        return True
    return bool(tags.classifier_tags.multi_label or tags.target_tags.multi_output)


def _states_tags(learner: Any) -> bool:
    """Whether tags are those of the class, and not what any classifier begins with."""
    for kind in type(learner).__mro__:
        package, _, rest = kind.__module__.partition(".")
        if package != "sklearn":
            if "__sklearn_tags__" in vars(kind):
                return True
        elif rest != "base" and issubclass(kind, ClassifierMixin | _search_kind()):
            return True
    return False


def _search_kind() -> type:
    from sklearn.model_selection._search import BaseSearchCV

    return BaseSearchCV


def _is_search(learner: Any) -> bool:
    return isinstance(learner, _search_kind())


def _learns_one_label(pipeline: Pipeline) -> bool:
    """Whether a step before the last learns from one label."""
    for _, step in pipeline.steps[:-1]:
        if not isinstance(step, BaseEstimator):
            continue
        inner = getattr(step, "estimator", None)
        if inner is not None and hasattr(inner, "fit"):
            if not takes_indicator(inner):
                return True
        # Selections by a score say that they need no labels: one score needs none.
        elif get_tags(step).target_tags.required or hasattr(step, "score_func"):
            return True
    return False


def refuses_missing(learner: Any) -> bool:
    """Tell whether it is certain that a learner fails on rows with missing values.

    Parameters
    ----------
    learner : estimator

    Examples
    --------
    >>> from sklearn.impute import SimpleImputer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from clml._learners.learner_tags import refuses_missing
    >>> refuses_missing(LogisticRegression())
    True
    >>> refuses_missing(make_pipeline(SimpleImputer(), LogisticRegression()))
    False
    """
    if not isinstance(learner, BaseEstimator):
        return False
    if isinstance(learner, Pipeline):
        for _, step in learner.steps[:-1]:
            if isinstance(step, BaseEstimator):
                if refuses_missing(step):
                    return True
                if type(step).__name__ not in _HANDING_ON:
                    return False
        return refuses_missing(learner.steps[-1][1])
    kind = type(learner)
    # Nobody looks at rows before the estimators inside do.
    if isinstance(learner, FrozenEstimator) or kind.__name__ in (
        "MultiOutputClassifier",
        "OneVsRestClassifier",
    ):
        return refuses_missing(learner.estimator)
    known = kind.__module__.partition(".")[0] in ("sklearn", "clml")
    values = learner.get_params().values()
    # ColumnTransformer and FeatureUnion may hold names of transformers alone.
    holds_others = any(isinstance(value, BaseEstimator) for value in values) or any(
        hasattr(learner, name) for name in ("transformers", "transformer_list")
    )
    if not known or holds_others:
        return False
    tags = get_tags(learner)
    # Text may be mended by what the user gave, and his kernel sees rows unchecked.
    if not tags.input_tags.two_d_array or callable(getattr(learner, "kernel", None)):
        return False
    return not (tags.input_tags.allow_nan or tags.no_validation)
