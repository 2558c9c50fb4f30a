import sys

import numpy as np
import pytest
import torch

from clml._support.torch import as_arrays, as_tensors, find_device, import_torch
from clml.baselines import MLPRelevanceClassifier


def test_devices():
    assert find_device("cpu").type == "cpu"
    assert find_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize(
    ("name", "message"),
    [("gpu", "device must be 'auto', 'cpu'"), ("cuda:99", "PyTorch sees [0-9]+ GPUs")],
)
def test_devices_that_are_not_there(name, message, small_data):
    with pytest.raises(ValueError, match=message):
        MLPRelevanceClassifier(device=name).fit(*small_data)


def test_missing_torch_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install 'clml\[torch\]'"):
        import_torch()


def test_arrays_and_back():
    weights = {"a": torch.ones(2, requires_grad=True)}
    arrays = as_arrays(weights)
    with torch.no_grad():
        weights["a"] += 1
    assert arrays["a"].tolist() == [1.0, 1.0] and arrays["a"].dtype == np.float32
    back = as_tensors(arrays, torch.device("cpu"), torch.float64)
    assert back["a"].dtype == torch.float64 and not back["a"].requires_grad
