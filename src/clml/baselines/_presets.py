"""Published settings by name of dataset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self


class PresetsMixin:
    """An estimator whose authors published settings for datasets."""

    #: Published settings by name of dataset.
    PRESETS: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    @classmethod
    def from_preset(cls, name: str, **parameters: Any) -> Self:
        """Return an estimator with the settings published for a dataset.

        Parameters
        ----------
        name : str
            A key of ``PRESETS``, in any case.
        **parameters : any
            Further parameters of the constructor; they override the preset.
        """
        if name.lower() not in cls.PRESETS:
            raise ValueError(
                f"{cls.__name__} has no preset {name!r}. There are: "
                f"{', '.join(sorted(cls.PRESETS)) or 'none'}."
            )
        return cls(**{**cls.PRESETS[name.lower()], **parameters})
