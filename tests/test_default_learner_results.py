"""Committed tables of the default learner are made of committed records."""

from pathlib import Path

import numpy as np
import pytest

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
TABLES = (
    "default_learner",
    "direct_or_surrogate",
    "distillation",
    "measure_ablation",
    "published",
)


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_made_of_the_records(name, import_benchmark, monkeypatch, tmp_path):
    script = import_benchmark(name)
    # Records are found by paths of their own.
    monkeypatch.setattr(script, "RESULTS", tmp_path)
    if name == "published":
        rows = {"chd49": 555, "water-quality": 1060, "plant-go": 978, "virus-go": 207}
        rows |= {"gnegative-go": 1392, "human-go": 3106, "yeast": 2417, "scene": 2407}
        sized = type("Sized", (), {})

        def load(dataset):
            found = sized()
            found.n_instances = rows[dataset]
            return found

        monkeypatch.setattr(script, "load_dataset", load)
    script.write_table()
    made = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    assert made == (RESULTS / f"{name}.md").read_text(encoding="utf-8")


def test_the_default_beside_its_rivals(import_benchmark):
    script = import_benchmark("default_learner")
    rows = script.read(script.ROWS)
    rows += [r for r in script.read(script.OTHERS) if r["method"] in script.RIVALS]
    logs = {rival: [] for rival in script.RIVALS}
    for name, n in script.SPLITS.items():
        mine = script.values(rows, name, n, method="CLML")
        assert len(mine) == n
        if name == script.NOT_IN_MEAN:
            assert np.mean(mine) < 0.0045
            continue
        for rival, found in logs.items():
            others = script.values(rows, name, n, method=rival)
            assert len(others) == n
            found.append(np.log(np.mean(mine) / np.mean(others)))
    forest, stacking = (np.array(found) for found in logs.values())
    assert len(forest) == 17
    assert np.exp(forest.mean()) < 0.97
    assert np.exp(forest.max()) < 1.05
    assert np.exp(stacking.mean()) < 1.0
