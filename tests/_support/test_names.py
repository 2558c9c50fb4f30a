"""Tables that have names are matched by them or refused, wherever two of them meet."""

import itertools

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from clml import CLMLClassifier, LebesgueTunedClassifier
from clml._support.names import column_names, in_order, label_names_of, match_names
from clml.baselines import GaussianNBRelevance
from clml.cli import main
from clml.datasets import RowPartitions, as_dataset
from clml.experiments import rank_biserial
from clml.losses import loss_values
from clml.plots import (
    CalibrationCurvesDisplay,
    CriticalDifferenceDisplay,
    FrontDisplay,
    LabelProbabilityDisplay,
)
from clml.report import estimator_data

NAMES = ["rain", "wind", "sun", "snow"]


def quick(**changes):
    settings = {"search": "cma", "n_members": 1, "max_epochs": 2, "random_state": 0}
    return CLMLClassifier(**settings | changes)


@pytest.fixture(scope="module")
def rows(small_data):
    """Features, and labels with names."""
    X, Y = small_data
    return X, pd.DataFrame(Y, columns=NAMES)


@pytest.fixture(scope="module")
def network(rows):
    return quick().fit(*rows)


@pytest.fixture(scope="module")
def counts(rows):
    return GaussianNBRelevance().fit(*rows)


# Each is a second table of labels, in a place where there was a first one; what it
# returns is the same for the same labels.


def validation(X, Y, other, **fitted):
    return quick().fit(X, Y, X_val=X, y_val=other).front_.losses


def warm_start(X, Y, other, **fitted):
    clf = quick(warm_start=True, validation_fraction=0).fit(X, Y)
    return clf.fit(X, other).front_.losses


def score(X, Y, other, counts, **fitted):
    return counts.score(X, other)


def page(X, Y, other, network, **fitted):
    return estimator_data(network, X, other)["runs"][0]["front"]["test"]


def curves(X, Y, other, counts, **fitted):
    return CalibrationCurvesDisplay.from_estimator(counts, X, other).after


def curves_before(X, Y, other, counts, **fitted):
    before = GaussianNBRelevance().fit(X, other)
    made = CalibrationCurvesDisplay.from_estimator(counts, X, Y, before=before)
    return made.before


def histograms_before(X, Y, other, counts, **fitted):
    before = GaussianNBRelevance().fit(X, other)
    made = LabelProbabilityDisplay.from_estimator(counts, X, Y, before=before)
    return made.before


def curves_of_a_pipeline(X, Y, other, **fitted):
    model = make_pipeline(StandardScaler(), GaussianNBRelevance()).fit(X, Y)
    return CalibrationCurvesDisplay.from_estimator(model, X, other).after


def curves_of_frames(X, Y, other, **fitted):
    return CalibrationCurvesDisplay.from_probabilities(Y, other * 0.5 + 0.2).after


def losses_of_scores(X, Y, other, **fitted):
    return loss_values(Y, other - 0.4)


def dataset_like_another(X, Y, other, **fitted):
    return as_dataset(X, other, like=as_dataset(X, Y)).Y


def tuned(X, Y, other, counts, **fitted):
    clf = LebesgueTunedClassifier(
        counts, prefit=True, shrinkage=0.5, max_epochs=2, random_state=0
    )
    return clf.fit(X, other).front_.losses


def tuned_frozen_search(X, Y, other, **fitted):
    search = GridSearchCV(GaussianNBRelevance(), {"var_smoothing": [1e-9]}, cv=2)
    frozen = FrozenEstimator(search.fit(X, Y))
    clf = LebesgueTunedClassifier(
        frozen, shrinkage=0.5, max_epochs=2, population_size=8, random_state=0
    )
    return clf.fit(X, other).front_.losses


def loaders(X, Y, other, **fitted):
    parts = [lambda: (X[:60], Y[:60], None), lambda: (X[60:], other[60:], None)]
    return quick().fit(RowPartitions(parts)).front_.losses


def loaders_to_judge(X, Y, other, **fitted):
    train, judge = (RowPartitions([lambda y=y: (X, y, None)]) for y in (Y, other))
    return quick().fit(train, X_val=judge).front_.losses


def loaders_under_names(X, Y, other, **fitted):
    parts = RowPartitions([lambda: (X, other, None)], label_names=Y.columns)
    return quick().fit(parts).front_.losses


def delayed(X, Y, other, **fitted):
    delay = pytest.importorskip("dask").delayed
    parts = [delay((X[:60], Y[:60])), delay((X[60:], other[60:]))]
    return quick().fit(parts).front_.losses


def partitions_of_a_frame(X, Y, other, **fitted):
    dd = pytest.importorskip("dask.dataframe")
    delay = pytest.importorskip("dask").delayed
    frame = pd.DataFrame(X).add_prefix("x")
    parts = [delay(Y[:60]), delay(other[60:])]
    labels = dd.from_delayed(parts, meta=Y[:0], verify_meta=False)
    features = dd.from_delayed([delay(frame[:60]), delay(frame[60:])], meta=frame[:0])
    return quick().fit(features, labels).front_.losses


def frames_to_judge(X, Y, other, **fitted):
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X).add_prefix("x")
    features, labels, judges = (
        dd.from_pandas(one, npartitions=1) for one in (frame, Y, other)
    )
    return quick().fit(features, labels, X_val=features, y_val=judges).front_.losses


PLACES = [
    validation,
    warm_start,
    score,
    page,
    curves,
    curves_before,
    histograms_before,
    curves_of_a_pipeline,
    curves_of_frames,
    losses_of_scores,
    dataset_like_another,
    tuned,
    tuned_frozen_search,
    loaders,
    loaders_to_judge,
    loaders_under_names,
    delayed,
    partitions_of_a_frame,
    frames_to_judge,
]
# Where scikit-learn's learners, or nothing at all, say what the labels were.
NAMELESS_BEFORE = (dataset_like_another, frames_to_judge, partitions_of_a_frame)


@pytest.fixture
def meet(rows, network, counts):
    """Return what lets a table of labels meet the first one at a place."""

    def meeting(place, other):
        found = place(*rows, other, network=network, counts=counts)
        return np.asarray(found, dtype=float)

    return meeting


@pytest.mark.parametrize("place", PLACES)
def test_another_order_changes_nothing_or_is_refused(place, rows, meet):
    Y = rows[1]
    expected = meet(place, Y)
    try:
        found = meet(place, Y[["snow", "rain", "sun", "wind"]])
    except ValueError as error:
        assert "rain" in str(error) or "order" in str(error)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("place", PLACES)
def test_other_names_are_refused(place, rows, meet):
    with pytest.raises(ValueError, match="fog"):
        meet(place, rows[1].rename(columns={"wind": "fog"}))


@pytest.mark.parametrize("place", PLACES)
def test_names_that_stand_twice_are_refused(place, rows, meet):
    with pytest.raises(ValueError, match="rain"):
        meet(place, rows[1].set_axis(["rain", "rain", "sun", "snow"], axis=1))


@pytest.mark.parametrize("place", [p for p in PLACES if p not in NAMELESS_BEFORE])
def test_labels_without_names_are_taken_by_their_place(place, rows, meet):
    Y = rows[1]
    expected = meet(place, Y)
    for other in (Y.to_numpy(), pd.DataFrame(Y.to_numpy())):
        np.testing.assert_array_equal(meet(place, other), expected)
    with pytest.raises(ValueError, match=r"3|shape|matching"):
        meet(place, Y.to_numpy()[:, :3])


@pytest.mark.parametrize("classes", [["no", "yes"], [0, 1], [1, 2]])
def test_classes_of_another_coding_are_refused(classes, rows):
    X, y = rows[0], rows[1]["rain"].to_numpy()
    clf = GaussianNBRelevance().fit(X, np.array(classes)[y])
    assert clf.score(X, np.array(classes)[y]) > 0.5
    for other in (["off", "on"], ["0", "1"], [0, 2], [-1, 1]):
        with pytest.raises(ValueError, match="must hold the classes"):
            clf.score(X, np.array(other)[y])


def test_text_is_no_number(rows):
    X, y = rows[0], rows[1]["rain"].to_numpy()
    with pytest.raises(ValueError, match=r"y_val must hold the classes \[0, 1\]"):
        quick(losses=("hamming", "micro_f1")).fit(X, y, X_val=X, y_val=y.astype(str))


def test_a_series_has_the_name_of_its_label(rows):
    X, Y = rows
    clf = GaussianNBRelevance().fit(X, Y["rain"])
    assert clf.score(X, Y["rain"]) == clf.score(X, Y["rain"].to_numpy())
    with pytest.raises(ValueError, match=r"lacks \['rain'\].*\['wind'\] are unknown"):
        clf.score(X, Y["wind"])


def test_names_that_stand_twice_cannot_be_fitted(rows):
    X, Y = rows
    with pytest.raises(ValueError, match="'a'"):
        GaussianNBRelevance().fit(X, Y.set_axis(list("aabc"), axis=1))
    with pytest.raises(ValueError, match="label_names"):
        RowPartitions([lambda: None], label_names=["a", "a"])


@given(order=st.permutations(NAMES), seed=st.integers(0, 9))
def test_scores_in_any_order_have_the_same_losses(order, seed):
    generator = np.random.default_rng(seed)
    Y = pd.DataFrame(generator.integers(0, 2, (6, 4)), columns=NAMES)
    scores = pd.DataFrame(generator.normal(size=(6, 4)), columns=NAMES)
    expected = loss_values(Y.to_numpy(), scores.to_numpy(), ["hamming", "macro_f1"])
    for Y_, S in itertools.product((Y, Y[order]), (scores, scores[order])):
        # Sums over labels in another order are rounded otherwise.
        np.testing.assert_allclose(
            loss_values(Y_, S, ["hamming", "macro_f1"]), expected, rtol=1e-14
        )


@given(
    wanted=st.lists(st.sampled_from("abcdef"), unique=True, min_size=1),
    given_=st.lists(st.sampled_from("abcdef"), min_size=1),
)
def test_matching_finds_every_name_or_says_no(wanted, given_):
    try:
        order = match_names(wanted, given_, "this", "that")
    except ValueError:
        assert sorted(wanted) != sorted(given_)
    else:
        found = given_ if order is None else [given_[place] for place in order]
        assert found == wanted


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (np.eye(2), None),
        ([[1, 0]], None),
        (pd.DataFrame(np.eye(2)), ["0", "1"]),
        (pd.Series([1], name="rain"), ["rain"]),
        (pd.Series([1], name=""), None),
        (pd.Series([1], name=3), None),
        (pd.Series([1]), None),
    ],
    ids=str,
)
def test_names_of_columns(data, names):
    assert column_names(data) == names


def test_an_array_of_a_file_is_no_series():
    class Stored(np.ndarray):
        name = "/group/labels"

    assert column_names(np.eye(3).view(Stored)) is None


def test_numbers_of_columns_are_matched_as_names():
    frame = pd.DataFrame([[0, 1, 2]])
    assert in_order(frame[[2, 0, 1]], ["0", "1", "2"], "Y", "X").tolist() == [[0, 1, 2]]
    assert in_order(frame, ["a", "b", "c"], "Y", "X") is frame


def test_names_of_what_predicts(rows, counts):
    X, Y = rows
    search = GridSearchCV(
        make_pipeline(StandardScaler(), GaussianNBRelevance()),
        {"gaussiannbrelevance__var_smoothing": [1e-9]},
        cv=2,
    )
    for model in (counts, search.fit(X, Y), FrozenEstimator(search)):
        assert label_names_of(model) == NAMES
    assert label_names_of(StandardScaler().fit(X)) is None


# Tables of results


def test_losses_of_a_front_have_names():
    losses = pd.DataFrame({"lrap": [0.1, 0.4], "hamming": [0.3, 0.2]})
    shown = FrontDisplay(losses, ["hamming", "lrap"]).losses
    assert shown.tolist() == [[0.3, 0.1], [0.2, 0.4]]
    with pytest.raises(ValueError, match="micro_f1"):
        FrontDisplay(losses, ["hamming", "micro_f1"])


def test_tables_of_methods_have_names():
    table = pd.DataFrame({"B": [0.2, 0.3, 0.4], "A": [0.1, 0.2, 0.3]})
    ranks = CriticalDifferenceDisplay.from_table(table, ["A", "B"]).mean_ranks
    assert ranks.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="'C'"):
        CriticalDifferenceDisplay.from_table(table, ["A", "C"])


def test_pairs_of_series_are_those_of_their_names():
    first = pd.Series([0.1, 0.5, 0.9], index=["x", "y", "z"])
    assert rank_biserial(first, first[["z", "y", "x"]]) == 0
    assert rank_biserial(first, first[["z", "y", "x"]] + 0.01) == -1
    with pytest.raises(ValueError, match="'w'"):
        rank_biserial(first, first.rename({"z": "w"}))


def test_files_are_matched_where_a_model_has_the_names_of_arrays(tmp_path, rows):
    """These may be real ones."""
    X, Y = rows
    frame = pd.DataFrame(X).add_prefix("x")
    labels = Y.set_axis([f"label{k}" for k in range(4)], axis=1)
    model, first, second = (tmp_path / name for name in ("m.clml", "1.csv", "2.csv"))
    pd.concat([frame, labels], axis=1).to_csv(first, index=False)
    pd.concat([frame, labels.iloc[:, ::-1]], axis=1).to_csv(second, index=False)
    GaussianNBRelevance().fit(frame, labels).save(model)
    found = []
    for path, given_ in ((first, "4"), (second, "4")):
        order = ["evaluate", str(model), str(path), "--labels", f"-{given_}"]
        result = CliRunner().invoke(main, order)
        assert result.exit_code == 0, result.output
        found.append(result.output)
    assert found[0] == found[1]
