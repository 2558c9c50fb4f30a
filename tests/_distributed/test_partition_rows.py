"""One partition's way to rows that are computed with: split, surveyed, sampled."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from clml._base.rows import Part
from clml._distributed import partition_rows as _partition_rows
from clml._distributed.partition_rows import (
    TRAIN,
    VALIDATION,
    EnginePlan,
    SplitPlan,
    Survey,
    checked_part,
    digest_of,
    joined,
    sample_of,
    split_rows,
    survey_of,
)
from clml.engine import NumpyEngine, TorchEngine
from clml.losses import get_losses
from clml.network import Layout, Scaling


def make_rows(n, seed=0, weighted=False, sparse=False):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 3))
    Y = (generator.random((n, 2)) < 0.5).astype(np.uint8)
    weight = generator.random(n) if weighted else None
    return sp.csr_array(X) if sparse else X, Y, weight


def dense(X):
    return X.toarray() if sp.issparse(X) else X


# Checks


def test_a_partition_by_hand():
    X = [[1, 2], [3, 4], [5, 6]]
    part = checked_part((X, [[1, 0], [0, 0], [1, 1]], [2.0, 0.0, 1.0]), 0)
    assert_array_equal(part.X, [[1.0, 2.0], [5.0, 6.0]])
    assert_array_equal(part.Y, [[1, 0], [1, 1]])
    assert_array_equal(part.weight, [2.0, 1.0])
    assert part.X.dtype == np.float64
    assert part.Y.dtype == np.uint8


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_order_in_memory_does_not_matter(dtype):
    X, Y, _ = make_rows(5)
    part = checked_part((np.asfortranarray(X.astype(dtype)), Y, None), 0)
    assert part.X.flags.c_contiguous
    assert part.X.dtype == dtype


@pytest.mark.parametrize("labels", [np.empty((0, 2)), np.empty(0), []])
@pytest.mark.parametrize("weight", [None, np.empty(0)])
def test_no_rows(labels, weight):
    plan = SplitPlan(0.5, (1,), 9)
    assert split_rows((np.empty((0, 3)), labels, weight), 0, plan) == {}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (([[np.nan]], [[1]], None), "X contains NaN"),
        (([[np.inf]], [[1]], None), "X contains infinity"),
        (([["a"]], [[1]], None), "could not convert"),
        (([1.0], [[1]], None), "2D array"),
        (([[1.0]], [[2]], None), "y must"),
        (([[1.0]], [[0.5]], None), "y must"),
        (([[1.0]], [1], None), "y must"),
        (([[1.0]], [[1], [0]], None), "X has 1 rows and y has 2"),
        (([[1.0]], [[1]], [1.0, 2.0]), "2 weights for 1 rows"),
        (([[1.0]], [[1]], [-1.0]), "weights must be finite and not negative"),
        (([[1.0]], [[1]], [np.nan]), "weights must be finite and not negative"),
        (([[1.0]], [[1]], ["a"]), "could not convert"),
        (([[1.0]],), "not enough values"),
        (None, "NoneType"),
    ],
)
def test_what_is_no_partition(rows, message):
    with pytest.raises(ValueError, match=f"Partition 7 is no rows to fit: .*{message}"):
        checked_part(rows, 7)


# Splits


@given(
    n=st.integers(0, 40),
    fraction=st.floats(0, 0.9),
    index=st.integers(0, 4),
    sparse=st.booleans(),
    weighted=st.booleans(),
)
def test_rows_are_parted(n, fraction, index, sparse, weighted):
    X, Y, weight = make_rows(n, n, weighted, sparse)
    X = X + np.arange(n)[:, None] * 100 if not sparse else X
    plan = SplitPlan(fraction, (1, 2), 3)
    parts = split_rows((X, Y, weight), index, plan)
    assert all(len(part.Y) for part in parts.values())
    assert sum(len(part.Y) for part in parts.values()) == n
    if index >= 3:
        assert set(parts) <= {VALIDATION}
    elif fraction == 0:
        assert set(parts) <= {TRAIN}
    else:
        judging = len(parts[VALIDATION].Y) if VALIDATION in parts else 0
        assert abs(judging - fraction * n) < 1
    # Every row is somewhere, once.
    if n:
        found = np.vstack([dense(part.X) for part in parts.values()])
        assert_array_equal(_in_order(found), _in_order(dense(X)))
    again = split_rows((X, Y, weight), index, plan)
    for name, part in parts.items():
        assert_array_equal(dense(part.X), dense(again[name].X))
        assert (part.weight is None) == (weight is None)


def _in_order(X):
    return X[np.lexsort(X.T)]


def test_partitions_are_split_by_draws_of_their_own():
    rows = make_rows(40)
    plan = SplitPlan(0.25, (1, 2), 3)
    first, second = (split_rows(rows, i, plan)[VALIDATION].X for i in (0, 1))
    assert first.shape == second.shape
    assert (first != second).any()
    # A single one is split as rows in memory are.
    (alone,) = [split_rows(rows, 0, SplitPlan(0.25, (1, 2), 1))[VALIDATION].X]
    _, judge = Part(*rows).split(0.25, np.random.default_rng([1, 2]))
    assert_array_equal(alone, judge.X)


@pytest.mark.parametrize("positives", [1, 2])
def test_labels_that_are_rare_in_each_partition_judge_too(positives):
    # Each has one row or two of the label: the nearest whole share of these is none.
    Y = np.zeros((50, 3), dtype=np.uint8)
    Y[:positives, 0] = 1
    Y[::2, 1] = 1
    plan = SplitPlan(0.2, (1, 2), 200)
    parts = [split_rows((np.ones((50, 1)), Y, None), i, plan) for i in range(200)]
    judging = sum(part[VALIDATION].Y.sum(axis=0, dtype=int) for part in parts)
    expected = 200 * Y.sum(axis=0) * 0.2
    assert sum(len(part[VALIDATION].Y) for part in parts) == 2000
    # Four deviations of so many draws.
    assert abs(judging[0] - expected[0]) < 4 * (expected[0] * 0.8) ** 0.5
    assert abs(judging[1] - expected[1]) < 0.02 * expected[1]


def test_what_has_changed_is_refused():
    X, Y, _ = make_rows(40)
    plan = SplitPlan(0.25, (1, 2), 3)
    known = survey_of(split_rows((X, Y, None), 1, plan), 1).checksums
    sample_of(
        split_rows((X, Y, None), 1, plan), 1, shares=SHARES, seed=(1,), checksums=known
    )
    for other in ((X[::-1], Y[::-1], None), (X + 1e-9, Y, None), (X, 1 - Y, None)):
        parts = split_rows(other, 1, plan)
        with pytest.raises(ValueError, match="Partition 1 is not what it was"):
            sample_of(parts, 1, shares=SHARES, seed=(1,), checksums=known)


SHARES = {TRAIN: 0.5, VALIDATION: 0.5}


def test_rows_tell_what_they_weigh():
    for sparse in (False, True):
        X, Y, weight = make_rows(1000, 3, True, sparse)
        arrays = (X.data, X.indices, X.indptr) if sparse else (X,)
        assert Part(X, Y, weight).__sizeof__() > sum(a.nbytes for a in arrays)


# Surveys


def survey(rows, index=0, fraction=0.0):
    return survey_of(split_rows(rows, index, SplitPlan(fraction, (1,), 5)), index)


def test_a_survey_by_hand():
    found = survey(([[1.0], [3.0]], [[1, 0], [1, 1]], None))
    assert found.n_rows == {TRAIN: 2}
    assert_array_equal(found.positives, [2, 1])
    assert found.shape == (1, 2)
    scaling = Scaling.from_moments(found.moments)
    assert_array_equal(scaling.mean, [2.0])
    assert_array_equal(scaling.scale, [1.0])


def test_surveys_add_up():
    rows = make_rows(60)
    parts = [tuple(part[a : a + 20] for part in rows[:2]) for a in (0, 20, 40)]
    indices = (0, 1, 5)
    one, two, judge = (
        survey((*part, None), i) for part, i in zip(parts, indices, strict=True)
    )
    assert judge.moments is None
    assert_array_equal(judge.positives, [0, 0])
    both = one + two + judge
    assert both.n_rows == {TRAIN: 40, VALIDATION: 20}
    assert_array_equal(both.positives, rows[1][:40].sum(axis=0))
    scaling = Scaling.from_moments(both.moments)
    np.testing.assert_allclose(scaling.mean, rows[0][:40].mean(axis=0))
    np.testing.assert_allclose(scaling.scale, rows[0][:40].std(axis=0))
    assert (judge + one).moments is one.moments


def test_there_is_nothing_to_survey():
    assert survey_of({}, 0) is None


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_are_taken_of_a_few_rows_at_a_time(monkeypatch, sparse, weighted):
    rows = make_rows(50, weighted=weighted, sparse=sparse)
    at_once = Scaling.from_moments(survey(rows).moments)
    monkeypatch.setattr(_partition_rows, "_TOGETHER", 3 * 7)
    bit_by_bit = Scaling.from_moments(survey(rows).moments)
    np.testing.assert_allclose(bit_by_bit.mean, at_once.mean, rtol=1e-12)
    np.testing.assert_allclose(bit_by_bit.scale, at_once.scale, rtol=1e-12)


def test_partitions_of_other_columns_do_not_add_up():
    one, other = (Survey({TRAIN: 1}, np.zeros(2), (d, 2), None) for d in (3, 4))
    with pytest.raises(ValueError, match="3 features and 2 labels in one and 4 and 2"):
        one + other


# Digests


def test_digests_tell_partitions_apart():
    X, Y, weight = make_rows(10, weighted=True)
    same = digest_of((X, Y, weight), 0)
    assert digest_of((np.asfortranarray(X), Y.astype(float), weight), 5) == same
    others = [
        (X[::-1], Y, weight),
        (X, 1 - Y, weight),
        (X, Y, weight + 1),
        (X, Y, None),
        (X.astype(np.float32), Y, weight),
        (X[:9], Y[:9], weight[:9]),
        (sp.csr_array(X), Y, weight),
    ]
    found = {digest_of(rows, 0) for rows in others}
    assert len(found) == len(others)
    assert same not in found


# Samples


def test_a_sample_is_a_share_of_each_part():
    plan = SplitPlan(0.5, (1,), 5)
    parts = split_rows(make_rows(40, weighted=True), 2, plan)
    shares = {TRAIN: 0.25, VALIDATION: 1.0}
    found = sample_of(parts, 2, shares=shares, seed=(3,))
    assert {name: len(part.Y) for name, part in found.items()} == {
        TRAIN: 5,
        VALIDATION: 20,
    }
    assert_array_equal(found[VALIDATION].X, parts[VALIDATION].X)
    assert_array_equal(found[VALIDATION].weight, parts[VALIDATION].weight)
    other = sample_of(parts, 3, shares=shares, seed=(3,))
    assert (other[TRAIN].X != found[TRAIN].X).any()


def test_samples_are_joined_in_order():
    samples = [
        {TRAIN: Part(*make_rows(2, seed=0))},
        {},
        {TRAIN: Part(*make_rows(3, seed=1, sparse=True))},
    ]
    found = joined(samples, TRAIN)
    assert sp.issparse(found.X)
    assert found.X.shape == (5, 3)
    assert found.weight is None
    assert_array_equal(found.Y[2:], samples[2][TRAIN].Y)
    assert_array_equal(found.X.toarray()[:2], samples[0][TRAIN].X)
    assert joined(samples, VALIDATION) is None


def test_weights_are_those_of_all_or_of_none():
    samples = [{TRAIN: Part(*make_rows(2, weighted=w))} for w in (True, False)]
    with pytest.raises(ValueError, match="Some partitions have row weights"):
        joined(samples, TRAIN)


# Engines


@pytest.mark.parametrize(
    ("device", "kind"),
    [(None, NumpyEngine), ("auto", NumpyEngine), ("cpu", TorchEngine)],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_rows_are_held_by_engines(monkeypatch, device, kind, sparse):
    monkeypatch.setattr(_partition_rows, "find_device", lambda device: "cpu")
    layout = Layout(n_features=3, n_labels=2, embedding_dim=4)
    losses = get_losses(("hamming", "lrap"))
    plan = EnginePlan(layout, Scaling.identity(3), losses, device, 10)
    parts = split_rows(make_rows(20, sparse=sparse), 3, SplitPlan(0.5, (1,), 5))
    held = plan.hold(parts, 3)
    assert held.index == 3
    assert set(held.engines) == {TRAIN, VALIDATION}
    assert all(type(engine) is kind for engine in held.engines.values())
    assert all(engine.n_rows == 10 for engine in held.engines.values())
    thetas = np.random.default_rng(0).normal(size=(4, layout.size)).astype(np.float32)
    plain = EnginePlan(layout, Scaling.identity(3), losses, None, 10)
    np.testing.assert_allclose(
        held.engines[TRAIN].losses(thetas),
        plain.hold(parts, 3).engines[TRAIN].losses(thetas),
        atol=1e-6,
    )
