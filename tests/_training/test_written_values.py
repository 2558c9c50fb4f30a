"""Values as tables."""

import json

import numpy as np
import pytest

from clml import CMA, Ascent, RankGradient
from clml._support.value import Value
from clml._training.written_values import (
    KINDS,
    read_value,
    with_values_read,
    with_values_written,
    write_value,
)
from clml.encoding import (
    Bins,
    Encoding,
    GaussianKernel,
    LaplaceKernel,
    Quantiles,
    Robust,
    Standardized,
)
from clml.network import PaperNetwork, WideNetwork

VALUES = [
    Ascent(init="surrogate", weight_decay=0.1),
    CMA(population_size=None, ties=None),
    RankGradient(epoch_rows=0.5),
    PaperNetwork(8, dropout=0.5),
    WideNetwork((8, 4), activation="tanh"),
    Bins(8),
    GaussianKernel(Bins(4), width=0.5),
    LaplaceKernel(n_landmarks=64),
    Quantiles(),
    Robust(2.0),
    Standardized(indicators="scaled"),
]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_there_and_back_through_json(value):
    written = json.loads(json.dumps(write_value(value)))
    found = read_value(written)
    assert type(found) is type(value)
    assert write_value(found) == written
    given = value.get_params(deep=False)
    lists = {k: list(v) for k, v in given.items() if isinstance(v, tuple)}
    assert found == type(value)(**given | lists)


def test_every_kind_has_a_name():
    assert {type(value) for value in VALUES} == set(KINDS.values())
    kinds = {kind for kind in _below(Value) if kind.__module__.startswith("clml.")}
    bases = {Encoding, *LaplaceKernel.__mro__[1:2], *CMA.__mro__[1:3]}
    assert kinds - bases == set(KINDS.values())


def _below(kind):
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)


def test_numbers_of_numpy():
    written = write_value(CMA(sigma0=np.float32(0.5), population_size=np.int64(4)))
    assert json.loads(json.dumps(written))["population_size"] == 4
    assert write_value(WideNetwork(np.array([8, 4])))["hidden"] == [8, 4]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"kind": "swarm"}, r"kind must be one of \['ascent'.*got 'swarm'"),
        ({"kind": ["cma"]}, r"got \['cma'\]"),
        ({"kind": None}, "got None"),
        ({}, "got None"),
        ({"kind": "cma", "smoothing": 1}, "has the parameters .*got 'smoothing'"),
        ({"kind": "cma", "self": 1}, "got 'self'"),
        ({"kind": "cma", "__class__": 1}, "got '__class__'"),
        ({"kind": "cma", "sigma0": {}}, "sigma0 of kind = 'cma' must be a number"),
        ({"kind": "wide", "hidden": [[8]]}, r"hidden of kind = 'wide' .*\[\[8\]\]"),
    ],
    ids=str,
)
def test_tables_that_stand_for_nothing(written, message):
    with pytest.raises(ValueError, match=message):
        read_value(written)


def test_values_of_ones_own_have_no_table():
    class Own(CMA):
        pass

    with pytest.raises(TypeError, match="got Own"):
        write_value(Own())
    own = Own()
    assert with_values_written(own) is own


def test_within_lists_and_tables():
    settings = {"a": [Bins(4), 1], "b": {"c": CMA()}, "d": (1, 2)}
    written = with_values_written(settings)
    assert written["a"][0]["kind"] == "bins"
    assert written["b"]["c"]["kind"] == "cma"
    assert with_values_read(written) == settings
