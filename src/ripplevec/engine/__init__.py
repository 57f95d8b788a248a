"""The model state, the batch step that changes it, and the reads it answers."""
