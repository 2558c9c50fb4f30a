"""Evolutions of maps that take a moment: what they find is tested elsewhere."""

from __future__ import annotations

from dataclasses import replace

from clml._training import own_losses as _own_losses


def shorten_maps(patch, n_epochs):
    """Let evolutions of maps end after some epochs."""
    for name in ("FULL", "_WITH_OWN_STATISTICS", "_WITH_FUNCTIONS"):
        budget = replace(getattr(_own_losses, name), max_epochs=n_epochs)
        patch.setattr(_own_losses, name, budget)
