"""Maps of given scores: how they are learnt, judged and calibrated."""
