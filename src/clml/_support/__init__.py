"""Python, NumPy, Numba, files and threads: what knows nothing of learning."""
