import os

import pytest
import torch

from clml.engine import _numpy

# Read when Triton is first imported: its kernels run without a GPU too, slowly.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"


@pytest.fixture(autouse=True)
def threads_even_for_small_work(monkeypatch):
    """Tiny data would otherwise never reach a second thread."""
    monkeypatch.setattr(_numpy, "_SMALL_WORK", 0)
