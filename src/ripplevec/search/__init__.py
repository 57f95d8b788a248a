"""Nearest-neighbor search by cosine: exact, and approximate through an index."""
