"""Other people's estimators: their scores, on folds and on all rows."""
