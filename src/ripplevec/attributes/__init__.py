"""Attributes of vertices: their input, a low-rank projection of them, and the part of each vector that they give."""
