"""Views: the spectral embeddings that vectors are composed of, their operators, solvers and coordinates."""
