"""Probabilities of candidate edges, learned from the stream itself."""
