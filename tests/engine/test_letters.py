"""Letters: what candidates come out of, elsewhere."""

import pickle

import numpy as np
import pytest

from clml.engine.letters import Letter, Whole


def test_the_candidates_themselves():
    thetas = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert Whole(thetas).open() is thetas
    found = pickle.loads(pickle.dumps(Whole(thetas))).open()
    np.testing.assert_array_equal(found, thetas)
    assert found.dtype == np.float32


def test_a_letter_has_to_be_opened():
    with pytest.raises(TypeError, match="abstract"):
        Letter()
