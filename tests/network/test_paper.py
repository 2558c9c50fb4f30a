"""The paper's network as a value."""

import numpy as np
import pytest
from sklearn.base import clone

from clml.network import Layout, PaperNetwork


def test_a_value():
    network = PaperNetwork(8, dropout=0.5)
    assert repr(network) == "PaperNetwork(embedding_dim=8, dropout=0.5)"
    assert clone(network) == network != PaperNetwork(8)
    assert network.set_params(n_layers=2).n_layers == 2


def test_layouts():
    assert PaperNetwork().build(3, 2) == Layout(3, 2, 20, 1)
    assert PaperNetwork(n_layers=3).build(3, 2, default_width=64) == Layout(3, 2, 64, 3)
    given = PaperNetwork(np.int64(4)).build(3, 2, default_width=64)
    assert given == Layout(3, 2, 4, 1)
    assert type(given.embedding_dim) is int


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"embedding_dim": 1}, "embedding_dim of PaperNetwork .* least 2, got 1"),
        ({"embedding_dim": 2.5}, "embedding_dim of PaperNetwork .* got 2.5"),
        ({"embedding_dim": "wide"}, "embedding_dim of PaperNetwork .* got 'wide'"),
        ({"n_layers": 0}, "n_layers of PaperNetwork .* least 1, got 0"),
        ({"n_layers": True}, "n_layers of PaperNetwork .* got True"),
        ({"dropout": 1.0}, r"dropout of PaperNetwork must be in \[0, 1\), got 1.0"),
        ({"dropout": float("nan")}, "dropout of PaperNetwork"),
        ({"dropout": "some"}, "dropout of PaperNetwork"),
        ({"standardize": 1}, "standardize of PaperNetwork must be a bool, got 1"),
    ],
    ids=str,
)
def test_bad_parameters(settings, message):
    network = PaperNetwork(**settings)
    with pytest.raises(ValueError, match=message):
        network.check()
    with pytest.raises(ValueError, match=message):
        network.build(3, 2)
