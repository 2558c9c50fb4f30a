import numpy as np
import pytest

from clml.network import Layout

SIZES = [(3, 2, 4, 1), (1, 1, 2, 1), (5, 3, 2, 2), (7, 1, 3, 3), (72, 6, 20, 1)]


@pytest.mark.parametrize(("d", "k", "c", "layers"), SIZES)
def test_size_formula(d, k, c, layers):
    layout = Layout(d, k, c, layers)
    assert layout.size == d * c + c + layers * (c * c + c) + c * k + k


def test_sizes_of_known_networks():
    # D·C + C + C² + C + C·K + K with C = 20.
    assert Layout(n_features=72, n_labels=6).size == 1440 + 20 + 420 + 120 + 6
    assert Layout(n_features=1185, n_labels=27).size == 24707


@pytest.mark.parametrize(("d", "k", "c", "layers"), SIZES)
@pytest.mark.parametrize("population", [None, 3])
def test_views_cover_every_entry_once(d, k, c, layers, population):
    layout = Layout(d, k, c, layers)
    shape = (layout.size,) if population is None else (population, layout.size)
    thetas = np.zeros(shape)
    views = layout.views(thetas)
    hidden = [name for i in range(layers) for name in (f"L{i + 1}", f"b_L{i + 1}")]
    assert list(views) == ["E", "b_E", *hidden, "Dec", "b_D"]
    for view in views.values():
        assert np.shares_memory(view, thetas)
        view += 1
    np.testing.assert_array_equal(thetas, np.ones(shape))


@pytest.mark.parametrize("population", [(), (4,), (2, 3)])
def test_shapes_of_the_views(population):
    layout = Layout(n_features=5, n_labels=3, embedding_dim=4, n_layers=2)
    views = layout.views(np.zeros((*population, layout.size)))
    shapes = {name: view.shape[len(population) :] for name, view in views.items()}
    assert shapes == {
        "E": (5, 4),
        "b_E": (4,),
        "L1": (4, 4),
        "b_L1": (4,),
        "L2": (4, 4),
        "b_L2": (4,),
        "Dec": (4, 3),
        "b_D": (3,),
    }
    assert all(v.shape[: len(population)] == population for v in views.values())


def test_order_in_theta():
    # D = 2, C = 2, K = 1: E 0-3, b_E 4-5, L1 6-9, b_L1 10-11, Dec 12-13, b_D 14.
    views = Layout(2, 1, 2).views(np.arange(15))
    np.testing.assert_array_equal(views["E"], [[0, 1], [2, 3]])
    np.testing.assert_array_equal(views["b_E"], [4, 5])
    np.testing.assert_array_equal(views["L1"], [[6, 7], [8, 9]])
    np.testing.assert_array_equal(views["b_L1"], [10, 11])
    np.testing.assert_array_equal(views["Dec"], [[12], [13]])
    np.testing.assert_array_equal(views["b_D"], [14])


def test_matrices_end_with_their_bias():
    layout = Layout(3, 2, 4, 2)
    thetas = np.arange(2.0 * layout.size).reshape(2, -1)
    matrices, views = layout.matrices(thetas), layout.views(thetas)
    assert [m.shape[1:] for m in matrices] == list(layout.shapes)
    for matrix, name, bias in zip(
        matrices, ("E", "L1", "L2", "Dec"), ("b_E", "b_L1", "b_L2", "b_D"), strict=True
    ):
        assert np.shares_memory(matrix, thetas)
        np.testing.assert_array_equal(matrix[:, :-1], views[name])
        np.testing.assert_array_equal(matrix[:, -1], views[bias])


@pytest.mark.parametrize(
    "stored",
    [
        lambda thetas: np.asfortranarray(thetas),
        lambda thetas: np.repeat(thetas, 2, axis=1)[:, ::2],
        lambda thetas: thetas[:, ::-1][:, ::-1],
    ],
)
def test_strided_thetas_are_viewed_too(stored):
    layout = Layout(3, 2, 4)
    thetas = stored(np.arange(3.0 * layout.size).reshape(3, -1))
    expected = layout.views(np.ascontiguousarray(thetas))
    for name, view in layout.views(thetas).items():
        assert np.shares_memory(view, thetas)
        np.testing.assert_array_equal(view, expected[name])


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"n_features": 0}, "n_features must be an integer of at least 1, got 0"),
        ({"n_labels": 0}, "n_labels must be an integer of at least 1, got 0"),
        ({"n_labels": -2}, "n_labels .* got -2"),
        ({"embedding_dim": 1}, "embedding_dim must be .* at least 2, got 1"),
        ({"n_layers": 0}, "n_layers must be an integer of at least 1, got 0"),
        ({"n_features": 2.0}, r"n_features must be an integer .* got 2\.0"),
        ({"embedding_dim": "20"}, "embedding_dim must be an integer .* got '20'"),
        ({"n_layers": None}, "n_layers must be an integer .* got None"),
    ],
)
def test_bad_sizes(sizes, message):
    with pytest.raises(ValueError, match=message):
        Layout(**{"n_features": 3, "n_labels": 2, **sizes})


def test_numpy_integers_are_sizes():
    assert Layout(np.int64(3), np.int32(2), np.int8(4)).size == Layout(3, 2, 4).size


@pytest.mark.parametrize("shape", [(45,), (47,), (46, 1), (2, 45), (0,)])
def test_theta_of_another_length(shape):
    layout = Layout(3, 2, 4)
    for function in (layout.views, layout.matrices):
        with pytest.raises(ValueError, match=r"theta must have 46 entries.*got shape"):
            function(np.zeros(shape))
