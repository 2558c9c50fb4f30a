"""
Is the difference one? Ranks over many datasets
===============================================

A method that wins on a dataset may have been lucky. Over many datasets, ranks can be
tested: how far apart must the mean ranks of two methods be before chance is no
explanation? Here with the losses that the paper printed, of seven methods on nine
datasets.
"""

# %%
# The printed losses, and the test whether the methods differ at all.
import sys

import matplotlib.pyplot as plt

from clml.experiments import PAPER_RESULTS, friedman_test
from clml.plots import CriticalDifferenceDisplay

methods = PAPER_RESULTS.methods
for measure in ("hamming", "lrap", "micro_f1", "geometric_mean"):
    test = friedman_test(PAPER_RESULTS.table(measure))
    print(
        f"{measure:15s} Friedman {test.statistic:5.2f}, "
        f"critical {test.critical_value:.2f}, p = {test.pvalue:.1g}"
    )

# %%
# Which of them differ? Against one method that was named beforehand fewer comparisons
# are made than among all, so smaller differences count: the upper diagram marks with
# stars what differs from CLML, bars of the lower one join what cannot be told apart.
figure, (upper, lower) = plt.subplots(2, 1, figsize=(6.5, 4.8), layout="constrained")
table = PAPER_RESULTS.geometric_mean
against = CriticalDifferenceDisplay.from_table(table, methods, control="CLML")
against.plot(upper, title="Geometric mean of the losses: against CLML")
among = CriticalDifferenceDisplay.from_table(table, methods)
among.plot(lower, title="All against all")
for group in among.groups:
    print("cannot be told apart:", ", ".join(methods[i] for i in group))
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=110)
else:
    plt.show()
