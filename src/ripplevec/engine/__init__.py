"""The state of a model on one machine: its update by batches, its reads, and the checks of a saved state."""
