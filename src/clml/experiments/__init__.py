"""Experiments: plans and their runs, statistics over datasets, the paper's tables.

Tables are arrays (datasets, methods) of losses; smaller is better.
"""

from ._ablation_table import ablation_table
from ._dataset_table import dataset_table
from ._effect import cliffs_delta, rank_biserial, vargha_delaney
from ._friedman import FriedmanTest, friedman_test
from ._label_dispersion import LabelDispersion, label_dispersion
from ._pairwise import (
    BonferroniDunnTest,
    NemenyiTest,
    WilcoxonTests,
    bonferroni_dunn,
    holm,
    nemenyi,
    wilcoxon_holm,
)
from ._paper import PAPER_RESULTS, PaperResults
from ._ranks import (
    bonferroni_dunn_difference,
    mean_ranks,
    nemenyi_difference,
    rank_groups,
)
from ._run_tables import cost_table, failed_table
from ._significance_tables import friedman_table, pairwise_table, ranks_table
from ._table import Cell, Table
from ._table_formats import to_csv, to_html, to_latex, to_markdown
from ._tables import (
    all_tables,
    contribution_table,
    measure_by_method,
    medians_table,
    write_tables,
)
from .consistency import ConsistencyRecord, consistency_study, read_consistency
from .measures import measure_table
from .plan import Plan, read_plan
from .results import Results
from .runner import run_experiment

__all__ = [
    "PAPER_RESULTS",
    "BonferroniDunnTest",
    "Cell",
    "ConsistencyRecord",
    "FriedmanTest",
    "LabelDispersion",
    "NemenyiTest",
    "PaperResults",
    "Plan",
    "Results",
    "Table",
    "WilcoxonTests",
    "ablation_table",
    "all_tables",
    "bonferroni_dunn",
    "bonferroni_dunn_difference",
    "cliffs_delta",
    "consistency_study",
    "contribution_table",
    "cost_table",
    "dataset_table",
    "failed_table",
    "friedman_table",
    "friedman_test",
    "holm",
    "label_dispersion",
    "mean_ranks",
    "measure_by_method",
    "measure_table",
    "medians_table",
    "nemenyi",
    "nemenyi_difference",
    "pairwise_table",
    "rank_biserial",
    "rank_groups",
    "ranks_table",
    "read_consistency",
    "read_plan",
    "run_experiment",
    "to_csv",
    "to_html",
    "to_latex",
    "to_markdown",
    "vargha_delaney",
    "wilcoxon_holm",
    "write_tables",
]
