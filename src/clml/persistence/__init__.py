"""Models as files, without pickle."""

from ._models import load, save

__all__ = ["load", "save"]
