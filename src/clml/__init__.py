"""Multi-label learning by the Lebesgue measure."""
