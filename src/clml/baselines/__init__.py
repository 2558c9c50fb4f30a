"""The methods that CLML is compared with, as estimators of their own."""

__all__: list[str] = []
