import pytest
import torch

from clml.engine._full_precision import full_precision


@pytest.fixture
def products():
    """What a process sets, and has again afterwards."""
    before = torch.get_float32_matmul_precision()
    yield torch.backends.cuda.matmul
    torch.set_float32_matmul_precision(before)


def test_nothing_is_touched_where_nothing_is_rounded(products):
    before = products.fp32_precision
    with full_precision():
        assert products.fp32_precision == before


def test_precision_is_full_and_then_as_it_was(products):
    torch.set_float32_matmul_precision("high")
    with pytest.raises(ZeroDivisionError), full_precision():
        assert products.fp32_precision == "ieee"
        assert torch.backends.mkldnn.matmul.fp32_precision == "ieee"
        raise ZeroDivisionError
    assert products.fp32_precision == "tf32"
    assert products.allow_tf32
    assert torch.get_float32_matmul_precision() == "high"


def test_the_last_one_out_restores(products):
    """Threads come and go in any order."""
    torch.set_float32_matmul_precision("high")
    first, second = full_precision(), full_precision()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert products.fp32_precision == "ieee"
    second.__exit__(None, None, None)
    assert products.fp32_precision == "tf32"
