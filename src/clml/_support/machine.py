"""What belongs to the machine of whoever fits a model, and not to the model."""

from __future__ import annotations

#: Parameters that name a place: the folder of a fit's states, the cluster that it sends
#: rows to, the folder where joblib caches what it unpickles later.
PLACES = ("checkpoint", "client", "memory")


def names_place(parameter: str) -> bool:
    """Tell whether a parameter names a place, its own or that of an inner estimator.

    Examples
    --------
    >>> from clml._support.machine import names_place
    >>> names_place("client"), names_place("step__client"), names_place("client_id")
    (True, True, False)
    """
    return parameter.rpartition("__")[2] in PLACES
