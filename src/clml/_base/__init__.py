"""What any multi-label estimator here is: rows and labels in, shapes out."""
