"""Models as files, without pickle."""

from .models import load, save

__all__ = ["load", "save"]
