import pytest

from clml.experiments.consistency import ConsistencyRecord, write_consistency
from clml.plots import write_figures

MEASURES = ("hamming", "lrap", "micro_f1", "contribution", "geometric_mean")
OF_A_RUN = ("trajectory", "probabilities", "calibration", "surrogate", "front")
OF_METHODS = ("contributions", "measure")


def test_every_figure_is_written(results, tmp_path):
    record = ConsistencyRecord("CLML", 50, 5, 0, "hamming", 0.2, 0.1)
    write_consistency([record], results.folder / "consistency.csv")
    files, skipped = write_figures(results, tmp_path / "new" / "figures", ["svg"])
    assert skipped == []
    names = {path.name for path in files}
    assert names == {path.name for path in (tmp_path / "new" / "figures").iterdir()}
    assert names == {
        *(f"critical_difference_{measure}.svg" for measure in MEASURES),
        *(f"critical_difference_{measure}_printed.svg" for measure in MEASURES),
        # The name of a dataset is no path.
        *(
            f"{kind}_{name}.svg"
            for kind in (*OF_A_RUN, *OF_METHODS)
            for name in ("emotions", "a_b_c")
        ),
        "ablation_emotions.svg",
        "ablation_a_b_c.svg",
        "consistency.svg",
    }


def test_what_has_no_data_is_named(results, tmp_path):
    for record in results.records:
        record["artifact"] = None
    results.records[:] = [r for r in results.records if r["dataset"] == "emotions"]
    results.plan["ablation"] = None
    files, skipped = write_figures(results, tmp_path, ["svg"])
    assert {path.name for path in files} == {
        *(f"critical_difference_{measure}_printed.svg" for measure in MEASURES),
        *(f"{kind}_emotions.svg" for kind in OF_METHODS),
    }
    assert len(skipped) == 5 + 2 * 5 + 2 + len(OF_METHODS)
    assert skipped[0] == (
        "critical_difference_hamming: ranks need at least 2 methods and 2 datasets "
        "that all of them have, got 2 and 1"
    )
    assert skipped[-2].startswith("ablation: no dataset has two runs")
    assert skipped[-1] == "consistency: the results have no consistency.csv"
    assert any("left no arrays" in reason for reason in skipped)


def test_runs_of_the_control_are_drawn(results, tmp_path):
    _, skipped = write_figures(results, tmp_path, (), control="other")
    assert "front_emotions: the first run of other left no arrays" in skipped


def test_two_losses_have_no_trajectory(results, artifact, tmp_path):
    import numpy as np

    for name in ("incumbent_train", "loss_names"):
        artifact[f"history/{name}"] = artifact[f"history/{name}"][..., :2]
    np.savez(results.folder / "artifacts" / "00.npz", **artifact)
    _, skipped = write_figures(results, tmp_path, ())
    assert any(r.startswith("trajectory_emotions: losses must have") for r in skipped)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"formats": "svg"}, "formats must be a sequence"),
        ({"formats": ["gif"]}, "formats must be a sequence of some of"),
        ({"control": "nobody"}, "control must be one of"),
    ],
)
def test_bad_input(results, options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        write_figures(results, tmp_path / "figures", **options)
    assert not (tmp_path / "figures").exists()
