"""Live map page: its endpoints, the sampled points with their projection, and stream statistics."""
