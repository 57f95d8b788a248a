"""Influence sampling: which vertices a new vertex influences, by the weighted independent cascade model."""
