"""The script that measures members on a GPU, run on the CPU."""

import csv
from functools import partial

import pytest
import torch

from clml import CLMLClassifier


@pytest.fixture(scope="module")
def script(import_benchmark):
    return import_benchmark("gpu_members")


def test_a_table(script, tmp_path, monkeypatch):
    def small(name):
        assert name == "made"
        X, Y = script.make_multilabel_classification(40, 5, n_classes=3, random_state=0)
        return type("Made", (), {"X": X, "Y": Y})

    monkeypatch.setattr(script, "load_dataset", small)
    quick = partial(CLMLClassifier, n_members=2, shrinkage=0.5)
    monkeypatch.setattr(script, "CLMLClassifier", quick)
    given = ["--datasets", "made", "--device", "cpu", "--cpu", "--epochs", "1"]
    for _ in range(2):  # what was measured before is replaced
        script.main([*given, "--results", str(tmp_path)])
    with (tmp_path / "gpu_members.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert [line["where"] for line in lines] == [
        "CPU, PyTorch, 1 threads",
        "CPU, NumPy, 1 threads",
    ]
    assert [line["same_bits"] for line in lines] == ["yes", ""]
    assert all(float(line["fit_s"]) >= float(line["epochs_s"]) >= 0 for line in lines)
    assert lines[0]["hamming"] == lines[1]["hamming"]
    table = (tmp_path / "gpu_members.md").read_text(encoding="utf-8")
    assert table.count("\n| made | 28 x 5, 3 | CPU") == 2


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so(script):
    with pytest.raises(SystemExit, match="sees no GPU here"):
        script.main([])
