"""Graph storage: vertex ids, growable weighted adjacency lists, and validation of batches."""
