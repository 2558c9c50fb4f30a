"""Classifiers that are fitted on partitions, for the tests of such fits."""

from nested_settings import nested
from numpy.testing import assert_array_equal

from clml import CLMLClassifier

ONE = {"search": "cma", "n_members": 1, "embedding_dim": 4}


def make(**settings):
    given = ONE | {"max_epochs": 4, "random_state": 0} | settings
    if given["search"] in ("cma", "rank_gradient"):
        given.setdefault("population_size", 8)
    return CLMLClassifier(**nested(given))


def assert_same_fit(one, other):
    """Compare fitted models to the last bit."""
    assert_array_equal(one.theta_, other.theta_)
    for name in ("losses", "theta", "temperature"):
        assert_array_equal(getattr(one.front_, name), getattr(other.front_, name))
    assert one.history_.keys() == other.history_.keys()
    for name, values in one.history_.items():
        if name != "seconds":
            assert_array_equal(values, other.history_[name], name)
    assert_array_equal(one.archive_losses_, other.archive_losses_)
    for name in ("n_epochs_", "temperature_", "incumbent_", "interrupted_"):
        assert getattr(one, name) == getattr(other, name), name
    assert_array_equal(one.scaling_.mean, other.scaling_.mean)
    assert_array_equal(one.scaling_.scale, other.scaling_.scale)
    assert_array_equal(one.label_names_, other.label_names_)
