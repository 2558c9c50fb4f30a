from itertools import chain

import numpy as np
import pytest

from clml.losses import (
    CallableLoss,
    Loss,
    Statistic,
    _registry,
    get_loss,
    get_losses,
    list_losses,
    loss_values,
    register_loss,
)

ROLES = {
    "objective": [
        "coverage",
        "example_f1",
        "hamming",
        "jaccard",
        "lrap",
        "macro_f1",
        "micro_f1",
        "one_error",
        "precision_at_1",
        "precision_at_3",
        "precision_at_5",
        "ranking_loss",
        "subset_zero_one",
    ],
    "tracked": ["binary_cross_entropy", "row_log_loss"],
    "evaluation": ["macro_auc", "macro_average_precision"],
}

rng = np.random.default_rng(0)
Y = rng.integers(0, 2, (25, 6))
SCORES = rng.normal(size=(4, 25, 6))


@pytest.fixture
def registry(monkeypatch):
    """Let a test register losses that nobody else sees."""
    copy = dict(_registry._REGISTRY)
    monkeypatch.setattr(_registry, "_REGISTRY", copy)
    return copy


@pytest.fixture(params=list_losses())
def name(request):
    return request.param


@pytest.mark.parametrize("role", ROLES)
def test_roles(role):
    assert list_losses(role=role) == ROLES[role]


def test_all_roles_together():
    assert list_losses() == sorted(chain(*ROLES.values()))


@pytest.mark.parametrize("role", ["objectives", "", 1])
def test_unknown_role(role):
    with pytest.raises(ValueError, match=r"role must be one of .* got"):
        list_losses(role=role)


def test_every_loss_has_its_name(name):
    assert get_loss(name).name == name


def test_a_population_is_its_members(name):
    together = loss_values(Y, SCORES, losses=(name,))
    assert together.shape == (4, 1)
    assert together.dtype == np.float64
    alone = [loss_values(Y, scores, losses=(name,)) for scores in SCORES]
    np.testing.assert_array_equal(together, alone)
    assert len(np.unique(together)) > 1


def test_smaller_is_better(name):
    better = np.where(Y == 1, 4.0, -4.0) + SCORES
    good = loss_values(Y, better, losses=(name,))
    bad = loss_values(Y, -better, losses=(name,))
    assert (good < bad).all()


def test_order_of_rows_and_labels_does_not_matter(name):
    rows, labels = rng.permutation(25), rng.permutation(6)
    np.testing.assert_allclose(
        loss_values(Y[rows][:, labels], SCORES[:, rows][..., labels], losses=(name,)),
        loss_values(Y, SCORES, losses=(name,)),
        rtol=1e-12,
    )


@pytest.mark.parametrize("spelling", ["precision_at_2", "precision@2"])
def test_precision_at_any_k(spelling):
    assert get_loss(spelling).name == "precision_at_2"
    values = loss_values([[1, 0, 1]], [[3.0, 2.0, 1.0]], losses=(spelling,))
    assert values == [0.5]


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("haming", "Did you mean 'hamming'"),
        ("LRAP", "Did you mean 'lrap'"),
        ("micro-f1", "Did you mean 'micro_f1'"),
        ("rankingloss", "Did you mean 'ranking_loss'"),
        ("precision_at_0", "Did you mean 'precision_at_"),
        ("zzz", r"Unknown loss 'zzz'\. Known: \[.*'hamming'"),
        ("", r"Unknown loss ''\. Known"),
    ],
)
def test_unknown_name(wrong, hint):
    with pytest.raises(ValueError, match=hint):
        get_loss(wrong)
    with pytest.raises(ValueError, match="Unknown loss"):
        loss_values(Y, SCORES, losses=("hamming", wrong))


@pytest.mark.parametrize("given", [None, 3, 0.5, ("hamming",), object()])
def test_not_a_loss(given):
    with pytest.raises(TypeError, match="A loss must be a name, a Loss"):
        get_loss(given)


@pytest.mark.parametrize(
    ("losses", "error", "message"),
    [
        ("hamming", TypeError, r"losses must be a sequence.*got 'hamming'"),
        (None, TypeError, r"losses must be a sequence.*got None"),
        (3, TypeError, r"losses must be a sequence.*got 3"),
        (np.mean, TypeError, r"losses must be a sequence"),
        ((), ValueError, "at least one loss, got none"),
        (("hamming", "lrap", "hamming"), ValueError, r"distinct, got \['hamming'\]"),
        (("precision@2", "precision_at_2"), ValueError, r"\['precision_at_2'\]"),
        ((np.mean, np.mean), ValueError, r"distinct, got \['mean'\]"),
    ],
)
def test_bad_sequences_of_losses(losses, error, message):
    with pytest.raises(error, match=message):
        get_losses(losses)
    with pytest.raises(error, match=message):
        loss_values(Y, SCORES, losses=losses)


def test_losses_in_every_form():
    hamming = get_loss("hamming")
    found = get_losses(["lrap", hamming, type(get_loss("coverage")), np.mean])
    assert [loss.name for loss in found] == ["lrap", "hamming", "coverage", "mean"]
    assert found[1] is hamming
    assert isinstance(found[3], CallableLoss)


def test_a_registered_class_is_known_by_its_name(registry):
    @register_loss
    class Silence(Loss):
        name = "silence"
        statistics = (Statistic("silent", lambda Y, s, t: (s <= t).all(axis=-1)),)

        def close(self, sums, weight, n_labels):
            return sums["silent"] / weight

    assert Silence.__name__ == "Silence"
    assert "silence" in list_losses(role="objective")
    values = loss_values(Y, SCORES, losses=("silence", "hamming"))
    np.testing.assert_allclose(values[:, 0], (SCORES <= 0).all(-1).mean(-1))


def test_a_role_is_listed(registry):
    @register_loss
    class Watched(Loss):
        name = "watched"
        statistics = ("wrong",)
        role = "tracked"

    assert list_losses("tracked") == [*ROLES["tracked"], "watched"]
    assert "watched" not in list_losses("objective")


def test_an_instance_can_be_registered(registry):
    loss = get_loss("precision_at_2")
    assert register_loss(loss) is loss
    assert "precision_at_2" in list_losses()


def test_registering_again_replaces(registry):
    class Mine(Loss):
        name = "mine"

    register_loss(Mine)
    first = get_loss("mine")
    register_loss(Mine)
    assert get_loss("mine") is not first


def test_a_taken_name_is_refused(registry):
    class Impostor(Loss):
        name = "hamming"
        statistics = ("wrong",)

    before = dict(registry)
    with pytest.raises(ValueError, match=r"'hamming' is taken by Hamming"):
        register_loss(Impostor)
    assert registry == before


@pytest.mark.parametrize(
    ("attributes", "error", "message"),
    [
        ({}, TypeError, "must be a Loss with a name"),
        ({"name": 3}, TypeError, "must be a Loss with a name"),
        ({"name": "x", "statistics": ("nope",)}, ValueError, "statistic 'nope'"),
    ],
)
def test_bad_registration(registry, attributes, error, message):
    before = dict(registry)
    with pytest.raises(error, match=message):
        register_loss(type("Bad", (Loss,), attributes))
    assert registry == before


@pytest.mark.parametrize("given", [int, "hamming", np.mean])
def test_only_losses_are_registered(registry, given):
    with pytest.raises(TypeError, match="must be a Loss with a name"):
        register_loss(given)
