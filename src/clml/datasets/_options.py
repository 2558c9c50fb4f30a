"""The options that all readers of files share, and their check."""

from __future__ import annotations

from typing import Any

_CHOICES = {
    "nominals": ("onehot", "codes"),
    "missing_labels": ("error", "negative"),
}


def check_options(nominals: Any, drop_identifiers: Any, missing_labels: Any) -> None:
    """Refuse an option that is not one of its values."""
    for name, value in (("nominals", nominals), ("missing_labels", missing_labels)):
        if value not in _CHOICES[name]:
            raise ValueError(
                f"{name} must be one of {list(_CHOICES[name])}, got {value!r}."
            )
    if not isinstance(drop_identifiers, bool):
        raise TypeError(f"drop_identifiers must be a bool, got {drop_identifiers!r}.")
