"""A file as a live stream again: its events in order, at their own times or at a steady rate."""
