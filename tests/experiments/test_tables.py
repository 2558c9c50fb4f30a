import csv
import html.parser
import io
import math

import numpy as np
import pytest
from sklearn.utils import Bunch

from clml.datasets.bunch import label_figures
from clml.experiments import (
    PAPER_RESULTS,
    Cell,
    Results,
    Table,
    ablation_table,
    all_tables,
    contribution_table,
    cost_table,
    dataset_table,
    failed_table,
    friedman_table,
    measure_by_method,
    measure_table,
    medians_table,
    pairwise_table,
    ranks_table,
    to_csv,
    to_html,
    to_latex,
    to_markdown,
    write_tables,
)
from clml.experiments._paper_comparison import common_part, slip_notes
from clml.experiments._table import MISSING, marked_best
from clml.experiments._table_formats import escape_latex, escape_markdown
from clml.experiments.plan import Plan

LOSSES = ("hamming", "lrap", "micro_f1", "row_log_loss")
VARIANT = "CLML-paper embedding_dim=40"
NASTY = "a|b_<c>&\\*d"


def as_printed(dataset, method):
    """Return the paper's losses of a method, which our run then agrees with."""
    name = "CLML" if method.startswith("CLML") else method
    values = [PAPER_RESULTS.value(dataset, name, loss) for loss in LOSSES[:3]]
    return [0.5 if math.isnan(v) else v for v in values] + [3.0]


def make_results(methods, datasets, failing=()):
    records = []
    for dataset in datasets:
        for method in (*methods, VARIANT):
            if method == VARIANT and dataset != "emotions":
                continue
            for split in range(2):
                # The two splits lie on both sides of the printed loss.
                sign = 1 if split else -1
                losses = {
                    name: value + 0.001 * sign
                    for name, value in zip(
                        LOSSES, as_printed(dataset, method), strict=True
                    )
                }
                done = (dataset, method) not in failing
                parts = {"train": losses, "validation": losses, "test": losses}
                records.append(
                    {
                        "key": f"{dataset}-{method}-{split}",
                        "dataset": dataset,
                        "method": method,
                        "split": split,
                        "seed": 0,
                        "status": "done" if done else "failed",
                        "reason": None if done else "time-out after 60 s | <b>",
                        "losses": parts if done else None,
                        "seconds": {"fit": 2.0 + split, "predict": 0.5}
                        if done
                        else None,
                        "peak_memory_mb": 100.0 if done else None,
                    }
                )
    plan = {
        "datasets": [{"name": dataset} for dataset in datasets],
        "methods": [
            *({"name": method, "group": "main"} for method in methods),
            {"name": VARIANT, "group": "ablation"},
        ],
        "losses": list(LOSSES),
        "notes": ["Epochs were cut."],
        "ablation": {
            "method": "CLML-paper",
            "setting": "network__embedding_dim",
            "values": [20, 40],
            "names": ["CLML-paper", VARIANT],
            "datasets": ["emotions"],
        },
    }
    return Results(plan, records)


@pytest.fixture(scope="module")
def results():
    return make_results(
        ("DELA", "CLML-paper", "CLML", NASTY),
        ("emotions", "yeast", "cal500", "own"),
        failing=[("yeast", "DELA")],
    )


def texts(table, row):
    return [cell.text for cell in table.rows[row]]


def nothing_at_hand(name):
    return None


def test_losses_beside_the_printed_ones(results):
    table = measure_by_method(results, "hamming")
    assert table.columns == ("dataset", "DELA", "CLML-paper", "CLML", NASTY)
    assert texts(table, 0) == [
        "emotions",
        "0.216 ± 0.001 (0.216)",
        "0.205 ± 0.001 (0.205)",
        "0.205 ± 0.001",  # the run with the paper's settings stands for the paper's
        "0.500 ± 0.001",
    ]
    assert [cell.best for cell in table.rows[0]] == [False, False, True, True, False]
    assert texts(table, 1)[1] == f"{MISSING} (0.226)"
    assert texts(table, 3)[1:] == ["0.500 ± 0.001"] * 4
    assert texts(table, 4)[0] == "mean rank (3 datasets)"
    assert "Epochs were cut." in table.notes


def test_the_defaults_stand_beside_the_paper_where_its_settings_are_not():
    table = measure_by_method(make_results(("CLML", "DELA"), ("yeast",)), "lrap")
    assert texts(table, 0)[1] == "0.266 ± 0.001 (0.266)"


def test_a_mean_over_some_of_the_splits_is_marked_and_not_ranked():
    whole = make_results(("CLML", "DELA"), ("emotions", "yeast"))
    first = whole.records[0] | {"status": "failed", "losses": None}
    table = measure_by_method(Results(whole.plan, [first, *whole.records[1:]]), "lrap")
    assert texts(table, 0)[1] == "0.225‡ (0.224)"
    assert [cell.best for cell in table.rows[0][1:]] == [False, True]
    assert texts(table, 2)[0] == "mean rank (1 dataset)"
    assert any(note.startswith("‡") for note in table.notes)
    assert r"0.225\ddag{} (0.224)" in to_latex(table)


@pytest.mark.parametrize("measure", ["hamming", "contribution", "geometric_mean"])
def test_losses_of_the_paper(measure):
    table = measure_by_method(PAPER_RESULTS, measure)
    assert len(table.rows) == 10
    values = [[cell.value for cell in row[1:]] for row in table.rows[:9]]
    np.testing.assert_array_equal(values, PAPER_RESULTS.table(measure))
    assert any("IMDB-F" in note for note in table.notes)


def test_largest_contribution_is_the_best_and_zero_never():
    table = measure_by_method(PAPER_RESULTS, "contribution")
    marked = [[cell.best for cell in row[1:]] for row in table.rows[:9]]
    np.testing.assert_array_equal(
        np.argmax(marked, axis=1), PAPER_RESULTS.contribution.argmax(axis=1)
    )
    assert not any(cell.best for cell in marked_best([Cell(0.0)], largest=True))
    assert not any(cell.best for cell in marked_best([Cell(None), Cell(float("nan"))]))


def test_contributions_compare_among_the_same_methods(results):
    table = contribution_table(results)
    assert table.columns == ("dataset", "DELA", "CLML-paper")
    anew = measure_table(PAPER_RESULTS, "contribution", ["DELA", "CLML"])
    row = PAPER_RESULTS.datasets.index("emotions")
    assert [cell.printed for cell in table.rows[0][1:]] == anew[row].tolist()
    assert [cell.value for cell in table.rows[0][1:]] == pytest.approx(anew[row])
    assert "computed anew" in table.notes[0]
    # Among all methods nothing of the paper compares.
    assert all(
        c.printed is None or math.isnan(c.printed)
        for c in measure_by_method(results, "contribution").rows[0][1:]
    )


def test_contributions_of_all_seven_are_the_printed_ones():
    table = contribution_table(make_results(PAPER_RESULTS.methods, ("emotions",)))
    assert [cell.printed for cell in table.rows[0][1:]] == (
        PAPER_RESULTS.contribution[4].tolist()
    )


def test_medians(results):
    table = medians_table(results)
    # Datasets without gaps: emotions, cal500, own; the first two are the paper's.
    clml = next(row for row in table.rows if row[0].value == "CLML-paper")
    common = np.median([0.246669, 0.358231])
    assert clml[1].value == pytest.approx(0.358, abs=0.001)
    assert clml[2].value == pytest.approx(common, abs=0.001)
    assert clml[3].value == pytest.approx(common)
    assert clml[4].value == 0.240
    assert [cell.text for cell in table.rows[3][2:]] == [MISSING] * 3


def test_medians_of_the_paper():
    for row in medians_table(PAPER_RESULTS).rows:
        assert row[1].value == pytest.approx(row[2].value, abs=0.00051)


def test_friedman_table_of_the_paper():
    table = friedman_table(PAPER_RESULTS)
    found = {row[0].value: row for row in table.rows}
    assert [c.text for c in found["hamming"]] == [
        "hamming", "paper", "9", "7",
        "30.65†", "12.59", "3e-05", "35.69†", "15.51", "2e-05", "35.62",
    ]  # fmt: skip
    assert found["contribution"][4].text == "16.21†"
    assert found["contribution"][7].text == "2.88"


def test_friedman_table_compares_like_with_like(results):
    table = friedman_table(results)
    sizes = {row[1].value: (row[2].value, row[3].value) for row in table.rows}
    assert sizes == {
        "ours": (3, 4),
        "ours, common part": (2, 2),
        "paper, common part": (2, 2),
        "paper": (9, 7),
    }
    by = {(row[0].value, row[1].value): row for row in table.rows}
    ours = by["hamming", "ours, common part"]
    assert ours[4].value == by["hamming", "paper, common part"][4].value


def test_ranks_table_of_the_paper():
    table = ranks_table(PAPER_RESULTS)
    rows = {row[0].value: row for row in table.rows}
    assert rows["DELA"][-2].text == "2.83"
    assert rows["DELA"][-1].text == "2.90"
    assert rows["CLML"][-2].best
    assert rows["GNB-BR"][2].text == "6.50†"
    assert "Bonferroni-Dunn 2.687" in table.notes[1]


def test_pairwise_table():
    table = pairwise_table(PAPER_RESULTS)
    assert len(table.rows) == 21
    assert "0.082" in table.notes[1]
    against = pairwise_table(PAPER_RESULTS, "lrap", control="CLML")
    assert len(against.rows) == 6
    assert len(against.notes) == 1
    assert against.title.startswith("Methods against CLML by lrap")


@pytest.mark.parametrize(
    ("results", "keywords", "message"),
    [
        (PAPER_RESULTS, {"control": "X"}, "control must be one of .* got 'X'"),
        (make_results(("CLML",), ("flags", "yeast")), {}, "1 method"),
        (make_results(("CLML", "DELA"), ("flags",)), {}, "1 dataset"),
    ],
)
def test_pairwise_table_of_too_little(results, keywords, message):
    with pytest.raises(ValueError, match=message):
        pairwise_table(results, **keywords)


def test_ablation_beside_the_papers(results):
    table = ablation_table(results)
    assert texts(table, 0)[:3] == ["emotions", "20", "0.205 ± 0.001 (0.187)"]
    assert texts(table, 1)[:2] == ["emotions", "40"]
    assert texts(table, 1)[-1] == "3.000 ± 0.001 (3.246)"
    assert table.notes[0].startswith("Losses on the validation rows.")
    assert len(ablation_table(PAPER_RESULTS).rows) == 16


def test_ablation_without_validation_losses_or_of_another_setting(results):
    plan = {
        **results.plan,
        "ablation": {**results.plan["ablation"], "setting": "search__sigma0"},
    }
    records = [
        r | {"losses": r["losses"] and {"test": r["losses"]["test"]}}
        for r in results.records
    ]
    table = ablation_table(Results(plan, records))
    assert table.title == "Losses by sigma0"
    assert texts(table, 0)[2] == "0.205 ± 0.001"
    assert table.notes[0].startswith("Losses on the test rows.")


def test_ablation_of_lists_and_without_values(results):
    ablation = {**results.plan["ablation"], "setting": "losses"}
    lists = {**ablation, "values": [["hamming"], ["lrap", "hamming"]]}
    table = ablation_table(Results({**results.plan, "ablation": lists}, []))
    assert texts(table, 1)[:2] == ["emotions", '["lrap","hamming"]']
    nothing = {**ablation, "values": None, "names": None}
    assert ablation_table(Results({**results.plan, "ablation": nothing}, [])).rows == ()


def test_costs_and_failures(results):
    assert texts(cost_table(results, "fit"), 0)[1] == "2.50 ± 0.71"
    assert texts(cost_table(results, "memory"), 1)[1:3] == [MISSING, "100 ± 0"]
    failed = failed_table(results)
    assert [texts(failed, i) for i in range(len(failed.rows))] == [
        ["yeast", "DELA", str(split), "0", "time-out after 60 s | <b>"]
        for split in range(2)
    ]
    with pytest.raises(ValueError, match="what must be one of"):
        cost_table(results, "energy")


def test_dataset_table_of_data_at_hand(results):
    Y = np.array([[1, 0], [1, 0], [1, 0], [1, 1]])
    data = Bunch(Y=Y, n_instances=4, n_features=3, n_labels=2, **label_figures(Y))
    table = dataset_table(results, lambda name: data if name == "own" else None)
    assert texts(table, 3) == [
        "own", "4", "3", "2", "1.250", "0.625", "5", "4",
        "2", "100%", "2.5", "4.0", "0.050", "2.48",
    ]  # fmt: skip
    # What is not at hand has the paper's figures only.
    assert texts(table, 0)[:5] == ["emotions", "593", "72", "6", "1.869"]
    assert texts(table, 0)[8:] == [MISSING] * 6


def test_dataset_table_shows_where_the_paper_differs():
    Y = np.eye(6, dtype=int)[np.arange(593) % 6]
    data = Bunch(Y=Y, n_instances=593, n_features=72, n_labels=6, **label_figures(Y))
    table = dataset_table(make_results(("CLML",), ("emotions",)), lambda name: data)
    assert texts(table, 0)[1:5] == ["593", "72", "6", "1.000 (1.869)"]


@pytest.mark.parametrize(
    ("arguments", "known"),
    [
        ({"n_samples": 50, "random_state": 0}, True),
        ({"n_samples": 10**9, "random_state": 0}, False),
        ({"n_samples": 50, "random_state": 0, "n_features": 10**9}, False),
        ({"n_samples": "many", "random_state": 0}, False),
    ],
)
def test_dataset_table_makes_only_harmless_synthetic_data(arguments, known):
    plan = {"datasets": [{"name": "s", "synthetic": arguments}], "methods": ["M"]}
    table = dataset_table(Results(plan, []))
    assert texts(table, 0)[1] == ("50" if known else MISSING)


def test_the_papers_slips_are_named_where_they_show():
    assert slip_notes(["emotions"], ["C2AE"]) == ()
    assert len(slip_notes(["imdb-f", "flags"], ["C2AE"])) == 2


def test_markdown(results):
    lines = to_markdown(measure_by_method(results, "hamming")).splitlines()
    assert lines[0] == "### Hamming loss"
    assert lines[2].endswith("| a\\|b\\_\\<c\\>&\\\\\\*d |")
    assert lines[3] == "|---|--:|--:|--:|--:|"
    assert "**0.205 ± 0.001 (0.205)**" in lines[4]


def test_latex(results):
    text = to_latex(measure_by_method(results, "hamming"))
    assert r"a\textbar{}b\_\textless{}c\textgreater{}\&\textbackslash{}*d \\" in text
    assert r"\textbf{0.205} $\pm$ 0.001 (0.205)" in text
    assert text.count("{") == text.count("}")
    for command in (r"\toprule", r"\midrule", r"\bottomrule"):
        assert command in text
    small = to_latex(friedman_table(PAPER_RESULTS))
    assert r"$3 \times 10^{-5}$" in small
    assert r"30.65\dag{}" in small
    assert "$-$0.64" in to_latex(pairwise_table(PAPER_RESULTS))


def test_csv_has_the_numbers_in_full(results):
    rows = list(
        csv.DictReader(io.StringIO(to_csv(measure_by_method(results, "hamming"))))
    )
    assert float(rows[0]["DELA"]) == pytest.approx(0.216, abs=1e-12)
    assert float(rows[0]["DELA (printed)"]) == 0.216
    assert float(rows[0]["DELA (sd)"]) == pytest.approx(0.001 * math.sqrt(2))
    assert rows[1]["DELA"] == ""
    assert "CLML (printed)" not in rows[0]
    assert NASTY in rows[0]


def test_html_is_well_formed_and_escaped(results):
    seen = []

    class Parser(html.parser.HTMLParser):
        def handle_starttag(self, tag, attrs):
            seen.append(tag)

    for table in all_tables(results, nothing_at_hand):
        Parser().feed(to_html(table))
    assert set(seen) == {
        "table", "caption", "thead", "tbody", "tr", "th", "td", "strong", "p",
    }  # fmt: skip
    assert 'data-value="0.216' in to_html(measure_by_method(results, "hamming"))


@pytest.mark.parametrize(
    ("function", "text", "expected"),
    [
        (escape_latex, "a_b & 5 % $x$", r"a\_b \& 5 \% \$x\$"),
        (escape_latex, "\\input{x}\n#", r"\textbackslash{}input\{x\} \#"),
        (escape_latex, "~^", r"\textasciitilde{}\textasciicircum{}"),
        (escape_latex, "a|b--c ``d''", r"a\textbar{}b-{}-c `{}`d'{}'"),
        (escape_latex, "a\ud800\x7f", r"a\textbackslash{}ud800\textbackslash{}x7f"),
        (escape_markdown, "a\nb|c", r"a b\|c"),
        (escape_markdown, "~~a~~ &lt; $x$", r"\~\~a\~\~ \&lt; \$x\$"),
        (escape_markdown, "C# a&b #", r"C\# a&b \#"),
        (escape_markdown, "a\x00\ud800", r"a\\x00\\ud800"),
        (escape_markdown, "micro_f1 _x_", r"micro_f1 \_x\_"),
        (escape_markdown, "<script>[a](b)", r"\<script\>\[a\](b)"),
    ],
)  # fmt: skip
def test_escapes(function, text, expected):
    assert function(text) == expected


@pytest.mark.parametrize("name", ["[2cm] x", "*x"])
def test_no_name_is_an_option_of_the_row_before(name):
    text = to_latex(Table("t", "T", (name, name), ((Cell(name), Cell(name)),) * 2))
    assert text.count(rf"    {{}}{name} & {name} \\") == 3
    best = to_latex(Table("t", "T", ("a",), ((Cell(name, best=True),),)))
    assert rf"    \textbf{{{name}}} \\" in best


def test_no_name_ends_the_label_of_a_table():
    assert r"\label{tab:a--b}" in to_latex(Table("a_}b", "T", ("a",), ()))


def test_csv_holds_no_formulas():
    row = (Cell("=1+1"), Cell("-1"), Cell(-0.5, spread=0.1), Cell(-math.inf))
    text = to_csv(Table("t", "T", ("@a", "b", "+c", "d"), (row,)))
    assert text == "'@a,b,'+c,'+c (sd),d\n'=1+1,-1,-0.5,0.1,-inf\n"


def test_halves_of_characters_are_written(tmp_path):
    plan = {"datasets": ["d\ud800"], "methods": ["M\ud800"], "losses": ["hamming"]}
    written = write_tables(Results(plan, []), tmp_path)
    tex = [p.read_text(encoding="utf-8") for p in written if p.suffix == ".tex"]
    assert any(r"M\textbackslash{}ud800" in text for text in tex)
    assert not any(r"\ud800" in text for text in tex)  # which TeX would not know


def test_rows_must_fit_the_columns():
    with pytest.raises(ValueError, match=r"2 cells each, .* got rows with \[1\]"):
        Table("t", "T", ("a", "b"), ((Cell(1),),))


def test_write_tables(results, tmp_path):
    written = write_tables(results, tmp_path / "new", load=nothing_at_hand)
    assert sorted(written) == sorted((tmp_path / "new").iterdir())
    names = {path.stem for path in written}
    assert names >= {
        "datasets", "hamming", "loss_row_log_loss", "contribution",
        "contribution_paper_methods", "normalised_contribution", "geometric_mean",
        "geometric_mean_medians", "mean_ranks", "friedman", "pairwise",
        "pairwise_control", "ablation", "failed", "seconds_fit", "seconds_predict",
        "peak_memory", "tables",
    }  # fmt: skip
    assert len(written) == 4 * (len(names) - 1) + 1
    again = write_tables(results, tmp_path / "new", ["md"], nothing_at_hand)
    assert set(again) < set(written)


def test_write_tables_of_the_paper(tmp_path):
    written = write_tables(PAPER_RESULTS, tmp_path, formats=("csv",))
    assert tmp_path / "friedman.csv" in written
    assert "failed.csv" not in {path.name for path in written}


def test_write_tables_of_results_without_anything(tmp_path):
    plan = {"datasets": ["d"], "methods": ["M", "N"], "losses": list(LOSSES)}
    written = write_tables(Results(plan, []), tmp_path, formats=("md", "csv"))
    assert "pairwise.md" not in {path.name for path in written}
    assert "None failed" in (tmp_path / "failed.md").read_text(encoding="utf-8")


def test_names_of_losses_stay_in_the_folder(tmp_path):
    plan = {"datasets": ["d"], "methods": ["M"], "losses": ["../../etc/Own Loss"]}
    written = write_tables(Results(plan, []), tmp_path, formats=("md",))
    assert {path.parent for path in written} == {tmp_path}
    assert tmp_path / "loss__etc_own_loss.md" in written


@pytest.mark.parametrize("formats", [("pdf",), "md"])
def test_unknown_formats(formats, tmp_path):
    with pytest.raises(ValueError, match="formats must be among"):
        write_tables(PAPER_RESULTS, tmp_path, formats)


def test_contributions_of_all_seven_in_another_order():
    methods = PAPER_RESULTS.methods[::-1]
    for normalised in (False, True):
        results = make_results(methods, ("emotions",))
        table = contribution_table(results, normalised)
        printed = (
            PAPER_RESULTS.normalised_contribution
            if normalised
            else PAPER_RESULTS.contribution
        )
        found = [cell.printed for cell in table.rows[0][1:]]
        assert found == printed[4, ::-1].tolist()


def own_data(name, **more):
    """Return results on data of one's own, as a plan describes them."""
    results = make_results(("CLML", "DELA"), (name,))
    entry = {
        "name": name,
        "n_instances": 40,
        "n_features": 3,
        "n_labels": 2,
        "cardinality": 1.25,
        "label_counts": [40, 10],
        **more,
    }
    return Results({**results.plan, "datasets": [entry]}, results.records)


@pytest.mark.parametrize("name", ["emotions", "mine"])
@pytest.mark.parametrize("more", [{}, {"arrays": True}, {"path": "x.csv"}])
def test_data_of_ones_own_have_their_own_figures(name, more):
    results = own_data(name, **more)
    assert texts(dataset_table(results), 0) == [
        name, "40", "3", "2", "1.250", "0.625", "5", "4",
        MISSING, "0%", "2.5", "4.0", MISSING, MISSING,
    ]  # fmt: skip
    # Nor do the paper's losses stand beside theirs.
    assert "(" not in "".join(texts(measure_by_method(results, "hamming"), 0))
    assert common_part(results).rows == []


@pytest.mark.parametrize("mark", [{"arrays": True}, {"synthetic": {"n_labels": 3}}])
def test_data_of_ones_own_without_figures_have_none(mark):
    results = make_results(("CLML", "DELA"), ("emotions",))
    plan = {**results.plan, "datasets": [{"name": "emotions", **mark}]}
    marked = Results(plan, results.records)
    assert texts(dataset_table(marked), 0) == ["emotions", *[MISSING] * 13]


def test_the_papers_data_are_known_by_their_size():
    results = own_data("emotions", n_instances=590, n_labels=6, label_counts=[99] * 6)
    assert common_part(results).rows == [0]
    assert "(0.205)" in texts(measure_by_method(results, "hamming"), 0)[1]


def test_arrays_of_a_plan_are_marked(small_data):
    plan = Plan({"emotions": small_data, "flags": {"path": "x.csv"}}, ["CLML"])
    own, other = (spec.description() for spec in plan.datasets)
    assert own == {"name": "emotions", "arrays": True}
    assert "arrays" not in other


def test_costs_that_were_not_taken(results):
    records = [
        r | {"seconds": r["seconds"] and {"fit": 1.0, "predict": None}}
        for r in results.records
    ]
    table = cost_table(Results(results.plan, records), "predict")
    assert texts(table, 0)[1:] == [MISSING] * 4
