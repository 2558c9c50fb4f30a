import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from clml.losses import list_losses, loss_values

rng = np.random.default_rng(0)
Y = rng.integers(0, 2, (20, 6))
Y[3], Y[7] = 0, 1
SCORES = rng.integers(-3, 4, (5, 20, 6)).astype(float)
WEIGHT = rng.random(20)
PAIR = [[1, 0], [0, 1]]


def test_by_hand():
    # One wrong decision of four; rankings perfect; 2 hits, 3 predicted, 2 relevant.
    found = loss_values(PAIR, [[2.0, -1.0], [0.5, 3.0]])
    np.testing.assert_allclose(found, [1 / 4, 0, 1 - 4 / 5])


@pytest.mark.parametrize("names", [["lrap"], list_losses()])
@pytest.mark.parametrize("population", [None, 0, 1, 5])
def test_shapes(names, population):
    scores = SCORES[0] if population is None else SCORES[:population]
    found = loss_values(Y, scores, losses=names)
    expected = (len(names),) if population is None else (population, len(names))
    assert found.shape == expected
    assert found.dtype == np.float64


@pytest.fixture(params=list_losses())
def name(request):
    return request.param


@pytest.mark.parametrize(
    "form",
    [
        sp.csr_matrix,
        sp.csc_array,
        sp.coo_array,
        pd.DataFrame,
        np.asfortranarray,
        lambda Y: Y.astype(bool),
        lambda Y: Y.tolist(),
    ],
)
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_every_form_of_Y(form, weight):
    losses = list_losses()
    np.testing.assert_array_equal(
        loss_values(form(Y), SCORES, losses=losses, sample_weight=weight),
        loss_values(Y, SCORES, losses=losses, sample_weight=weight),
    )


@pytest.mark.parametrize(
    "form",
    [
        lambda s: s.astype(np.float32),
        lambda s: s.astype(int),
        lambda s: s.astype(np.float16),
        np.asfortranarray,
        lambda s: s.tolist(),
        lambda s: np.repeat(s, 2, axis=2)[..., ::2],
    ],
)
def test_every_form_of_scores(form):
    losses = list_losses()
    np.testing.assert_allclose(
        loss_values(Y, form(SCORES), losses=losses),
        loss_values(Y, SCORES, losses=losses),
        rtol=1e-12,
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_read_only_inputs_are_left_alone(dtype):
    arrays = [Y.astype(np.uint8), SCORES.astype(dtype), WEIGHT.copy()]
    before = [a.copy() for a in arrays]
    for array in arrays:
        array.flags.writeable = False
    found = loss_values(
        arrays[0], arrays[1], losses=list_losses(), sample_weight=arrays[2]
    )
    expected = loss_values(Y, SCORES, losses=list_losses(), sample_weight=WEIGHT)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_unit_weights_are_no_weights(name):
    np.testing.assert_allclose(
        loss_values(Y, SCORES, losses=(name,), sample_weight=np.full(20, 3.0)),
        loss_values(Y, SCORES, losses=(name,)),
        rtol=1e-12,
    )


def test_a_nan_score_gives_nan_and_the_others_stay(name):
    spoiled = SCORES.copy()
    spoiled[2, 19, 5] = np.nan
    found = loss_values(Y, spoiled, losses=(name,))
    assert np.isnan(found[2]).all()
    others = [0, 1, 3, 4]
    expected = loss_values(Y, SCORES[others], losses=(name,))
    np.testing.assert_array_equal(found[others], expected)
    assert np.isnan(loss_values(Y, spoiled[2], losses=(name,))).all()


DECIDED = ("hamming", "micro_f1", "macro_f1", "example_f1", "jaccard")
DECIDED += ("subset_zero_one",)
RANKED = ("lrap", "ranking_loss", "coverage", "one_error", "precision_at_3")
RANKED += ("macro_auc", "macro_average_precision")


@pytest.mark.parametrize("threshold", [-2, -0.5, 1.0, np.float32(2.5)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_threshold_moves_the_decisions_alone(threshold, dtype):
    scores = SCORES.astype(dtype)
    np.testing.assert_array_equal(
        loss_values(Y, scores, losses=DECIDED, threshold=threshold),
        loss_values(Y, scores - dtype(threshold), losses=DECIDED),
    )
    assert (
        loss_values(Y, scores, losses=DECIDED, threshold=threshold)
        != loss_values(Y, scores, losses=DECIDED)
    ).any()
    np.testing.assert_array_equal(
        loss_values(Y, scores, losses=RANKED, threshold=threshold),
        loss_values(Y, scores, losses=RANKED),
    )


def test_a_score_at_the_threshold_is_not_decided_for():
    assert loss_values([[0]], [[0.5]], losses=("hamming",), threshold=0.5) == [0]
    assert loss_values([[0]], [[0.0]], losses=("hamming",)) == [0]
    assert loss_values([[0]], [[5e-324]], losses=("hamming",)) == [1]


@pytest.mark.parametrize("losses", [("hamming",), ("hamming", "macro_f1")])
def test_a_threshold_is_read_in_the_precision_of_the_scores(losses):
    # 0.1 in float32 is more than 0.1 in float64: it must not be above itself.
    scores = np.full((1, 1), 0.1, dtype=np.float32)
    assert loss_values([[0]], scores, losses=losses, threshold=0.1)[0] == 0


def test_probabilities_with_a_threshold_are_the_logits():
    logits = SCORES / 2
    probabilities = 1 / (1 + np.exp(-logits))
    losses = DECIDED + RANKED
    np.testing.assert_array_equal(
        loss_values(Y, probabilities, losses=losses, threshold=0.5),
        loss_values(Y, logits, losses=losses),
    )


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"Y": [[2, 0], [0, 1]]}, ValueError, r"Y must be .* values \[0, 1, 2\]"),
        ({"Y": [[0.5, 0], [0, 1]]}, ValueError, r"Y .* values \[0\.0, 0\.5, 1\.0\]"),
        ({"Y": [[np.nan, 0], [0, 1]]}, ValueError, r"Y .* values \[0\.0, 1\.0, nan\]"),
        ({"Y": [1, 0]}, ValueError, r"Y must be an indicator.*got shape \(2,\)"),
        ({"Y": np.zeros((2, 0))}, ValueError, r"Y .*at least one label"),
        ({"Y": np.zeros((0, 2)), "scores": np.zeros((0, 2))}, ValueError, "0 rows"),
        ({"scores": [[1.0, 2.0]]}, ValueError, r"scores .*\(2, 2\).*got \(1, 2\)"),
        ({"scores": [[1.0], [2.0]]}, ValueError, r"scores .*got \(2, 1\)"),
        ({"scores": [1.0, 2.0]}, ValueError, r"scores .*got \(2,\)"),
        ({"scores": 1.0}, ValueError, r"scores .*got \(\)"),
        ({"scores": np.zeros((1, 1, 2, 2))}, ValueError, r"scores .*\(1, 1, 2, 2\)"),
        ({"scores": [["a", "b"]] * 2}, ValueError, "scores must be numbers"),
        ({"scores": [[1j, 0]] * 2}, ValueError, "scores must be numbers.*complex"),
        ({"scores": None}, ValueError, "scores must be numbers.*object"),
        ({"sample_weight": [1.0]}, ValueError, r"sample_weight .*\(2,\).*got \(1,\)"),
        ({"sample_weight": [[1.0, 1.0]]}, ValueError, r"sample_weight .*\(1, 2\)"),
        ({"sample_weight": [1.0, np.nan]}, ValueError, "sample_weight .*finite"),
        ({"sample_weight": [1.0, np.inf]}, ValueError, "sample_weight .*finite"),
        ({"sample_weight": [1.0, -1.0]}, ValueError, "sample_weight .*not negative"),
        ({"sample_weight": [0.0, 0.0]}, ValueError, "positive weight.*sum to 0"),
        ({"threshold": np.nan}, ValueError, "threshold must be finite, got nan"),
        ({"threshold": np.inf}, ValueError, "threshold must be finite, got inf"),
        ({"threshold": None}, TypeError, "threshold must be a number, got None"),
        ({"threshold": True}, TypeError, "threshold must be a number, got True"),
        ({"threshold": [0.5, 0.5]}, TypeError, "threshold must be a number"),
        ({"threshold": "0.5"}, TypeError, "threshold must be a number, got '0.5'"),
        ({"threshold": "half"}, TypeError, "threshold must be a number, got 'half'"),
        ({"threshold": 1j}, TypeError, "threshold must be a number, got 1j"),
        ({"losses": "hamming"}, TypeError, "losses must be a sequence"),
        ({"losses": ()}, ValueError, "at least one loss"),
        ({"losses": ("precision_at_3",)}, ValueError, "at least 3 labels, got 2"),
    ],
    ids=str,
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        loss_values(**{"Y": PAIR, "scores": [[1.0, 2.0], [3.0, 4.0]], **arguments})
