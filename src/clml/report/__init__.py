"""One self-contained HTML page from results or from a fitted estimator."""

from ._estimator import estimator_data, report_of
from .data import experiment_data, write_report
from .page import build_page

__all__ = [
    "build_page",
    "estimator_data",
    "experiment_data",
    "report_of",
    "write_report",
]
